"""The key that seals a store, from the environment or from a file that only its owner can read."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import stat
from hashlib import sha256
from pathlib import Path

from toolwire.journal.location import Location
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

KEY_BYTES = 32
KEY_VARIABLE = "TOOLWIRE_KEY"
"""Environment variable that holds the key: 32 bytes as 64 hex digits or as base64."""


def key_of(location: Location, *, is_new: bool) -> bytes:
    """Returns the key from `TOOLWIRE_KEY`, or else from the key file. A new store without a key file gets one.

    Raises:
        ConfigurationError: `TOOLWIRE_KEY` or the key file does not hold a valid key.
        StoreUnavailable: The key file is missing, cannot be read, or is open to other users.
    """
    written = os.environ.get(KEY_VARIABLE)
    if written:
        return _read(written, KEY_VARIABLE)
    path = key_path(location)
    if is_new and not path.exists():
        _make(path)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise StoreUnavailable(f"the key {path} can be read by others\nRun: chmod 600 {path}")
        return _read(path.read_text("ascii", "replace"), str(path))
    except OSError as error:
        raise StoreUnavailable(
            f"{location.shown} is sealed with a key that is not here: set {KEY_VARIABLE}, or put the key file at {path}"
        ) from error


def key_path(location: Location) -> Path:
    """Returns the path of the key file: beside a database file; for a server, in the user's state folder."""
    if location.path is not None:
        return location.path.with_name(location.path.name + ".key")
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    server = location.url.set(password=None).render_as_string()
    return Path(state) / "toolwire" / f"{sha256(server.encode()).hexdigest()[:16]}.key"


def _read(written: str, source: str) -> bytes:
    written = written.strip()
    for decode in (bytes.fromhex, _base64):
        with contextlib.suppress(ValueError):
            key = decode(written)
            if len(key) == KEY_BYTES:
                return key
    raise ConfigurationError(f"{source} holds no key: give {KEY_BYTES} bytes as 64 hex digits, or as base64")


def _base64(written: str) -> bytes:
    try:
        return base64.b64decode(written, validate=True)
    except binascii.Error as error:
        raise ValueError from error


def _make(path: Path) -> None:
    """Creates the key file atomically. If two processes create it at once, the first file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, os.urandom(KEY_BYTES).hex().encode() + b"\n")
        os.fsync(file)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(file)
        draft.unlink()
