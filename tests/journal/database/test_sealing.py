"""Sealed values: the compressed form, and what a forged one does."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

import pytest

from toolwire.journal.database import sealing
from toolwire.journal.database.sealing import Draft, Sealer
from toolwire.permission.approval import DecisionRefused

SEALER = Sealer(b"k" * 32)
TEXT = b'{"word": "budget"} ' * 4_000
PLACE = ("steps", "r_1", "1", "ended")


def seal_packed(packed: bytes) -> bytes:
    """Seals bytes as a compressed value, as only the holder of the key can."""
    nonce = os.urandom(12)
    return b"\x02" + nonce + SEALER._cipher.encrypt(nonce, packed, sealing._bound(b"\x02", PLACE))


def packed(data: bytes, *, states: int | None = None) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    size = len(data) if states is None else states
    return size.to_bytes(4, "big") + packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("size", "form"), [(0, 1), (1024, 1), (1025, 2), (4096, 2), (4097, 2), (65_536, 2), (65_537, 1)]
)
def test_a_value_is_compressed_from_the_first_limit_to_the_second(
    monkeypatch: pytest.MonkeyPatch, size: int, form: int
) -> None:
    monkeypatch.setattr(sealing, "COMPRESSED_LIMIT_BYTES", 65_536)
    for sealed in (SEALER.seal(TEXT[:size], *PLACE), *SEALER.seal_all([Draft(SEALER, TEXT[:size], PLACE)])):
        assert sealed[0] == form
        assert (len(sealed) < size) == (form == 2)
        assert SEALER.open(sealed, *PLACE) == TEXT[:size]


def test_the_limit_is_that_of_the_largest_document() -> None:
    assert sealing.COMPRESSED_LIMIT_BYTES == 64 * 1024 * 1024
    largest = bytes(sealing.COMPRESSED_LIMIT_BYTES)
    sealed = SEALER.seal(largest, *PLACE)
    assert len(sealed) < 1_000_000
    assert SEALER.open(sealed, *PLACE) == largest


def test_a_value_that_would_not_get_smaller_stays_as_it_is() -> None:
    data = os.urandom(5_000)
    sealed = SEALER.seal(data, *PLACE)
    assert (sealed[0], len(sealed)) == (1, 1 + 12 + 5_000 + 16)
    assert SEALER.open(sealed, *PLACE) == data


def test_values_of_older_stores_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(sealing, "COMPRESSED_FROM_BYTES", 1 << 40)
        sealed = SEALER.seal(TEXT, *PLACE)
    assert (sealed[0], len(sealed)) == (1, 1 + 12 + len(TEXT) + 16)
    assert SEALER.open(sealed, *PLACE) == TEXT


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(lambda: packed(bytes(50_000_000), states=100), id="unpacks to more than it states"),
        pytest.param(lambda: packed(b"", states=65_537), id="states more than the limit"),
        pytest.param(lambda: packed(TEXT, states=len(TEXT) + 1), id="unpacks to less than it states"),
        pytest.param(lambda: packed(TEXT)[:-1], id="is cut"),
        pytest.param(lambda: packed(TEXT) + b"x", id="goes on after its end"),
        pytest.param(lambda: b"\0\0\0", id="has no size"),
        pytest.param(lambda: b"\0\0\0\x01xxxx", id="is not compressed"),
    ],
)
def test_a_bomb_is_refused_even_from_the_holder_of_the_key(
    monkeypatch: pytest.MonkeyPatch, bomb: Callable[[], bytes]
) -> None:
    monkeypatch.setattr(sealing, "COMPRESSED_LIMIT_BYTES", 65_536)
    # The control: what is packed as it should be opens.
    assert SEALER.open(seal_packed(packed(TEXT[:65_536])), *PLACE) == TEXT[:65_536]
    with pytest.raises(DecisionRefused) as refused:
        SEALER.open(seal_packed(bomb()), *PLACE)
    assert refused.value.code == "bad_mac"


def test_nothing_is_unpacked_before_its_seal_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack(data: bytes) -> bytes:
        unpacked.append(data)
        return original(data)

    unpacked, original = list[bytes](), sealing._unpack
    monkeypatch.setattr(sealing, "_unpack", unpack)
    sealed = SEALER.seal(TEXT, *PLACE)
    for forged in (sealed[:-1] + bytes([sealed[-1] ^ 1]), Sealer(b"x" * 32).seal(TEXT, *PLACE)):
        with pytest.raises(DecisionRefused):
            SEALER.open(forged, *PLACE)
    assert unpacked == []
    # The control: the spy sees an honest value.
    assert SEALER.open(sealed, *PLACE) == TEXT
    assert len(unpacked) == 1


def test_the_form_of_a_value_cannot_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = SEALER.seal(TEXT, *PLACE)
    changed = b"\x01" + sealed[1:]
    with pytest.raises(DecisionRefused) as refused:
        SEALER.open(changed, *PLACE)
    assert refused.value.code == "bad_mac"
    with pytest.raises(DecisionRefused):
        SEALER.open(b"\x03" + sealed[1:], *PLACE)
    # The control: were the form not sealed, the packed bytes would pass for the value.
    monkeypatch.setattr(sealing, "_bound", lambda _, place: sealing._encode_place(place))
    unbound = SEALER.seal(TEXT, *PLACE)
    assert SEALER.open(b"\x01" + unbound[1:], *PLACE) not in (TEXT, b"")
