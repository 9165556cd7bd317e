"""Encrypts values and binds each to its place in the database.

Without the key, a value cannot be read, changed or moved.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolwire.permission.approval import DecisionRefused

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
        self._cipher = AESGCM(_derived(key, b"toolwire seal 1"))
        self._mac_key = _derived(key, b"toolwire mac 1")
        self.wire_key = _derived(key, b"toolwire wire 1")
        """The key that signs the portable forms of suspended runs."""

    def seal(self, data: bytes, *place: str) -> bytes:
        """Encrypts the data and binds it to its place: moved to another row, it does not open."""
        return self._sealed(os.urandom(_NONCE_BYTES), data, place)

    def seal_all(self, drafts: Sequence[Draft]) -> list[bytes]:
        """Seals many values. One request for random bytes serves all nonces."""
        nonces = os.urandom(_NONCE_BYTES * len(drafts))
        return [
            self._sealed(nonces[start : start + _NONCE_BYTES], draft.data, draft.place)
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
            return self._cipher.decrypt(sealed[1:start], sealed[start:], _bound(place))
        except (InvalidTag, ValueError) as error:
            raise DecisionRefused(
                "bad_mac", f"{' '.join(place)} was changed in the store, or was written with another key"
            ) from error

    def _sealed(self, nonce: bytes, data: bytes, place: tuple[str, ...]) -> bytes:
        return _VERSION + nonce + self._cipher.encrypt(nonce, data, _bound(place))

    def mac(self, *parts: str) -> bytes:
        """Returns a message authentication code over the parts. It cannot be made without the key."""
        return hmac.digest(self._mac_key, _bound(parts), hashlib.sha256)


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, purpose, hashlib.sha256)


def _bound(parts: tuple[str, ...]) -> bytes:
    """Encodes the parts so that different parts never give the same bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([len(part).to_bytes(4, "big") + part for part in encoded])
