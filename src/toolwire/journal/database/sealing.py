"""Encrypts values and binds each to its place in the database. Long values are compressed first.

Without the key, a value cannot be read, changed or moved. The key comes from the environment or from a file that only
its owner can read.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import stat
import zlib
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

COMPRESSED_FROM_BYTES = 1024
"""Size above which a value is compressed. Below it, a row gains little and each seal would cost twice as much."""

COMPRESSED_LIMIT_BYTES = 64 * 1024 * 1024
"""Size of the largest value that is compressed: that of a document, the largest value of most stores.

A larger one is sealed as it is. So a compressed value never unpacks to more.
"""

_PLAIN = b"\x01"
_COMPRESSED = b"\x02"
"""The first byte of a sealed value: its form. The seal covers it. Older stores have the first form alone."""
_NONCE_BYTES = 12
_SIZE_BYTES = 4
_LEVEL = 1
"""Level 6 makes texts of 10 KB 13 % smaller and takes three times as long, on the path of every call."""
_SMALL_BYTES = 4096
_SMALL_WINDOW = (-12, 5)
_WINDOW = (-15, 8)
"""Bits of the window, negative for a stream without a header: the seal is the checksum. And the level of memory.

A small window needs less memory, which takes a third of the time to clear.
"""


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
        """Decrypts a sealed value, and unpacks a compressed one after its seal was checked.

        Raises:
            DecisionRefused: `bad_mac`: the value was changed or moved, it was sealed with another key, or it does not
                unpack to the size that it states.
        """
        form, start = sealed[:1], 1 + _NONCE_BYTES
        try:
            if form not in (_PLAIN, _COMPRESSED):
                raise InvalidTag
            data = self._cipher.decrypt(sealed[1:start], sealed[start:], _bound(form, place))
            return data if form == _PLAIN else _unpack(data)
        except (InvalidTag, ValueError, zlib.error) as error:
            raise DecisionRefused(
                "bad_mac", f"{' '.join(place)} was changed in the store, or was written with another key"
            ) from error

    def _encrypt(self, nonce: bytes, data: bytes, place: tuple[str, ...]) -> bytes:
        form, data = _pack(data)
        return form + nonce + self._cipher.encrypt(nonce, data, _bound(form, place))

    def mac(self, *parts: str) -> bytes:
        """Returns a message authentication code over the parts. It cannot be made without the key."""
        return hmac.digest(self._mac_key, _encode_place(parts), sha256)


def _bound(form: bytes, place: tuple[str, ...]) -> bytes:
    """Returns the data to which a seal is bound. A place begins with a length, whose first byte is 0."""
    encoded = _encode_place(place)
    return encoded if form == _PLAIN else form + encoded


def _pack(data: bytes) -> tuple[bytes, bytes]:
    """Returns the form and the data to seal: compressed if that makes them smaller."""
    if not COMPRESSED_FROM_BYTES < len(data) <= COMPRESSED_LIMIT_BYTES:
        return _PLAIN, data
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, *(_SMALL_WINDOW if len(data) <= _SMALL_BYTES else _WINDOW))
    packed = len(data).to_bytes(_SIZE_BYTES, "big") + packer.compress(data) + packer.flush()
    return (_COMPRESSED, packed) if len(packed) < len(data) else (_PLAIN, data)


def _unpack(packed: bytes) -> bytes:
    """Returns the data that `_pack` compressed.

    Raises:
        ValueError: They are larger than the limit, or not of the size that they state.
        zlib.error: They are damaged.
    """
    size = int.from_bytes(packed[:_SIZE_BYTES], "big")
    if size > COMPRESSED_LIMIT_BYTES:
        raise ValueError(f"{size:,} bytes, and {COMPRESSED_LIMIT_BYTES:,} are unpacked")
    unpacker = zlib.decompressobj(_WINDOW[0])
    # One byte more than stated: the end of the stream is then reached, or the excess seen.
    data = unpacker.decompress(packed[_SIZE_BYTES:], size + 1)
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"it states {size:,} bytes")
    return data


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

    A store in memory has a random key: nothing else reads it.

    Raises:
        ConfigurationError: `TOOLWIRE_KEY` or the key file does not hold a valid key.
        StoreUnavailable: The key file is missing, cannot be read, or is open to other users.
    """
    if location.is_memory:
        return os.urandom(KEY_BYTES)
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
