"""Encrypts values and binds each to its place in the database.

Without the key, a value cannot be read, changed or moved. The key comes from the environment or from a file that only
its owner can read.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import stat
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolwire.journal.database.location import Location
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

_VERSION = b"\x01"
_NONCE_BYTES = 12


class Draft(NamedTuple):
    """A value that is sealed later, together with others. `data` does not change in between."""

    sealer: Sealer
    data: bytes
    place: tuple[str, ...]


class Sealer:
    """Seals and opens values with one key. Thread-safe."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(_derive_key(key, b"toolwire seal 1"))
        self._mac_key = _derive_key(key, b"toolwire mac 1")
        self.wire_key = _derive_key(key, b"toolwire wire 1")
        """The key that signs the portable forms of suspended runs."""

    def seal(self, data: bytes, *place: str) -> bytes:
        """Encrypts the data and binds it to its place: moved to another row, it does not open."""
        return self._encrypt(os.urandom(_NONCE_BYTES), data, place)

    def seal_all(self, drafts: Sequence[Draft]) -> list[bytes]:
        """Seals many values. One request for random bytes serves all nonces."""
        nonces = os.urandom(_NONCE_BYTES * len(drafts))
        return [
            self._encrypt(nonces[start : start + _NONCE_BYTES], draft.data, draft.place)
            for start, draft in zip(range(0, len(nonces), _NONCE_BYTES), drafts, strict=True)
        ]

    def open(self, sealed: bytes, *place: str) -> bytes:
        """Decrypts a sealed value.

        Raises:
            DecisionRefused: `bad_mac`: the value was changed or moved, or it was sealed with another key.
        """
        start = len(_VERSION) + _NONCE_BYTES
        try:
            if sealed[:1] != _VERSION:
                raise InvalidTag
            return self._cipher.decrypt(sealed[1:start], sealed[start:], _encode_place(place))
        except (InvalidTag, ValueError) as error:
            raise DecisionRefused(
                "bad_mac", f"{' '.join(place)} was changed in the store, or was written with another key"
            ) from error

    def _encrypt(self, nonce: bytes, data: bytes, place: tuple[str, ...]) -> bytes:
        return _VERSION + nonce + self._cipher.encrypt(nonce, data, _encode_place(place))

    def mac(self, *parts: str) -> bytes:
        """Returns a message authentication code over the parts. It cannot be made without the key."""
        return hmac.digest(self._mac_key, _encode_place(parts), sha256)


def _derive_key(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, purpose, sha256)


def _encode_place(parts: tuple[str, ...]) -> bytes:
    """Encodes the parts so that different parts never give the same bytes."""
    encoded = [utf8_bytes(part) for part in parts]
    return b"".join([len(part).to_bytes(4, "big") + part for part in encoded])


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
        return _parse_key(written, KEY_VARIABLE)
    path = key_path(location)
    if is_new and not path.exists():
        try:
            _make(path)
        except OSError as error:
            raise StoreUnavailable(
                f"the key of {location.shown} cannot be kept at {path}: {error.strerror}\nSet {KEY_VARIABLE}, for "
                "example to the output of: openssl rand -hex 32"
            ) from error
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise StoreUnavailable(f"the key {path} can be read by others\nRun: chmod 600 {path}")
        return _parse_key(path.read_text("ascii", "replace"), str(path))
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


def _parse_key(written: str, source: str) -> bytes:
    written = written.strip()
    for decode in (bytes.fromhex, partial(base64.b64decode, validate=True)):
        with contextlib.suppress(ValueError):
            key = decode(written)
            if len(key) == KEY_BYTES:
                return key
    raise ConfigurationError(f"{source} holds no key: give {KEY_BYTES} bytes as 64 hex digits, or as base64")


def _make(path: Path) -> None:
    """Creates the key file atomically. If two processes create it at once, the first file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(file, os.urandom(KEY_BYTES).hex().encode() + b"\n")
        os.fsync(file)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(file)
        draft.unlink()
