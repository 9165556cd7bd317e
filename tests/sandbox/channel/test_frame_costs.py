"""Frames cost the host little, whatever they hold: at most 64 MB, and no other thread is blocked for long."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from tests.sandbox.channel.test_channel import HASH_PERIOD, RAW_PLACE, raw
from tests.sandbox.costs import cost_of
from tests.sandbox.programs import TOOLS
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.frames import CallFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.child import wire as child_wire
from toolwire.sandbox.limits import Limits

MEMORY_MB = 64
HELD_UP_S = 0.2
READ_BYTES = 65_536
ROOM = 4_190_000
"""Bytes of arguments that fit into one frame."""


def call(value: bytes) -> bytes:
    data = b'["call",1,2,false,{"value":' + value + b"}]"
    return len(data).to_bytes(4, "big") + data


def many(item: bytes, room: int = ROOM) -> bytes:
    return call(b"[" + b",".join([item] * (room // (len(item) + 1))) + b"]")


def raw_call(value: Any, *strings: bytes) -> bytes:
    return raw([len(one) for one in strings], ["call", 1, 2, False, {"value": value}], *strings)


def names(count: int) -> list[Any]:
    return [RAW_PLACE] * count


def keys(count: int) -> bytes:
    return call(b"{" + b",".join(b'"%x":null' % n for n in range(count)) + b"}")


def tuples_of_one_hash(count: int, length: int, others: int) -> bytes:
    long = [{"$t": "tuple", "v": [0.5] * length + [n * HASH_PERIOD]} for n in range(count)]
    return call(json.dumps({"$t": "set", "v": [*long, *range(1, others)]}, separators=(",", ":")).encode())


HOSTILE: dict[str, bytes] = {
    "1 MB named 400 times": raw_call(names(400), b"x" * 1_000_000),
    "1 MB named 20,000 times": raw_call(names(20_000), b"x" * 1_000_000),
    "1 MB named in 20,000 tuples": raw_call([{"$t": "tuple", "v": names(1)}] * 20_000, b"x" * 1_000_000),
    "wide text": raw_call(names(1), b"x" * ROOM + "\U0001f600".encode()),
    "wide text in JSON": call(b'"' + b"x" * ROOM + "\U0001f600".encode() + b'"'),
    "wide text by an escape": call(b'"' + b"x" * ROOM + b'\\ud83d\\ude00"'),
    "wide texts": many(b'"' + b"x" * 3000 + "\U0001f600".encode() + b'"'),
    "lone surrogates": raw_call(names(1), b"\xed\xa0\x80" * (ROOM // 3)),
    "lone surrogates in JSON": call(b'"' + b"\xed\xa0\x80" * (ROOM // 3) + b'"'),
    "keys": keys(300_000),
    "as many keys as pass": keys(100_000),
    "empty lists": many(b"[]"),
    "as many empty lists as pass": many(b"[]", 560_000),
    "lists in lists": many(b"[" * 60 + b"]" * 60, 270_000),
    "objects": many(b'{"":0}', 350_000),
    "objects beside a wide text": raw_call([RAW_PLACE, [{"": 0}] * 70_000], b"x" * 3_000_000 + "\U0001f600".encode()),
    "fractions": many(b"1.5"),
    "as many fractions as pass": many(b"1.5", 1_500_000),
    "integers of 4,299 digits": many(b"9" * 4299),
    "sets": many(b'{"$t":"set","v":[0,1,2,3,4]}', 700_000),
    "dates": many(b'{"$t":"date","v":"2020-01-01"}', 900_000),
    "empty raw strings": raw_call([{"$t": "raw", "v": n} for n in range(1024)], *[b""] * 1024),
    "tuples of one hash": tuples_of_one_hash(30, 10_000, 0),
    "tuples of one hash among others": tuples_of_one_hash(500, 600, 10_000),
}


def channel() -> Channel:
    return Channel(TOOLS, Limits())


def read(data: bytes) -> None:
    reader = channel()
    with suppress(ProtocolViolation):
        for start in range(0, len(data), READ_BYTES):
            list(reader.receive(data[start : start + READ_BYTES]))


LIKE_OTHERS = (
    *("as many keys as pass", "as many fractions as pass", "as many empty lists as pass", "lone surrogates in JSON"),
    *("objects", "lists in lists", "tuples of one hash among others"),
)
"""Frames that another one resembles. To trace the memory of one takes seconds."""


@pytest.mark.threat(65)
@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in LIKE_OTHERS])
def test_no_frame_costs_much(name: str) -> None:
    check_cost(name)


@pytest.mark.threat(65)
def test_no_frame_that_resembles_another_costs_much(whole: bool) -> None:
    for name in LIKE_OTHERS if whole else LIKE_OTHERS[:1]:
        check_cost(name)


def check_cost(name: str) -> None:
    cost = cost_of(lambda: read(HOSTILE[name]), enough_s=HELD_UP_S)
    assert (cost.memory_mb < MEMORY_MB, cost.held_up_s <= HELD_UP_S) == (True, True), (name, cost)


@pytest.fixture
def endless_integers() -> Generator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.threat(45)
@pytest.mark.usefixtures("endless_integers")
def test_a_host_that_reads_integers_of_any_length_reads_none_from_a_program() -> None:
    cost = cost_of(lambda: read(call(b"9" * 1_000_000)))
    assert cost.processor_s < HELD_UP_S
    assert [type(frame) for frame in channel().receive(call(b"[" + b"9" * 4300 + b"," + b"1]"))] == [CallFrame]


HONEST: dict[str, Any] = {
    "one long text": "x" * 3_600_000,
    "one long text that is wide": "x" * 3_600_000 + "\U0001f600",
    "one long text of lone surrogates": "\ud83d" * 1_200_000,
    "texts": [f"{n}" * 20_000 for n in range(60)],
    "the same text 60 times": ["x" * 60_000] * 60,
    "Chinese": ["中文" * 20] * 20_000,
    "numbers": list(range(300_000)),
    "fractions": [n / 7 for n in range(150_000)],
    "records": [{"id": n, "name": "abc"} for n in range(45_000)],
    "a mapping": {hex(n): None for n in range(100_000)},
    "powers of two": {2**n for n in range(1800)},
    "pairs of powers of two": {(2**n, n) for n in range(1800)},
}


@pytest.mark.parametrize("value", HONEST.values(), ids=HONEST.keys())
def test_frames_of_an_honest_program_arrive_unchanged(value: Any) -> None:
    data = child_wire.encode('["call",1,2,false,', {"value": value}, 1 << 22)
    reader = channel()
    found = [
        frame for start in range(0, len(data), READ_BYTES) for frame in reader.receive(data[start : start + READ_BYTES])
    ]
    assert [frame.arguments for frame in found if isinstance(frame, CallFrame)] == [{"value": value}]


def test_a_frame_is_read_when_it_is_taken_and_not_before() -> None:
    taken: list[str] = []
    reader = channel()
    frames = iter(reader.receive(_print("a") + _print("b") + b"\0\0\0\1x"))
    taken += [next(frames).text, next(frames).text]  # pyright: ignore
    assert taken == ["a", "b"]
    with pytest.raises(ProtocolViolation):
        next(frames)


def _print(text: str) -> bytes:
    data = json.dumps(["print", text]).encode()
    return len(data).to_bytes(4, "big") + data
