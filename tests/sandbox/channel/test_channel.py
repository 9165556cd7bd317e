"""The channel as a state machine: frames of any cutting, and nothing but typed violations."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processor import milliseconds
from tests.sandbox.programs import TOOLS
from toolwire.sandbox import wire
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.frames import (
    CallFrame,
    DropFrame,
    FailedFrame,
    Frame,
    PrintFrame,
    ResultFrame,
    StoppedFrame,
    UnfitFrame,
    WaitFrame,
    WakeFrame,
)
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.child import wire as child_wire
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import AnswerError
from toolwire.sandbox.wire import WEIGHT_CAP, Oversized
from toolwire.vocabulary.errors import Unrepresentable

LIMITS = Limits(call_bytes=100_000, result_bytes=100_000)
CAP = 100_000 + 65_536


def channel() -> Channel:
    return Channel(TOOLS, LIMITS)


def frame(*parts: Any) -> bytes:
    data = json.dumps(parts).encode()
    return len(data).to_bytes(4, "big") + data


def raw(sizes: Any, parts: Any, *strings: bytes) -> bytes:
    return frame("raw", sizes, parts) + b"".join(strings)


RAW_PLACE = {"$t": "raw", "v": 0}

GOOD: list[tuple[bytes, Frame]] = [
    (frame("call", 1, 0, False, {"a": 1, "b": 2}), CallFrame(1, 0, False, {"a": 1, "b": 2})),
    (frame("call", 1, 2, True, {"value": {"$t": "tuple", "v": [1]}}), CallFrame(1, 2, True, {"value": (1,)})),
    (
        raw(
            [3, 2],
            ["call", 1, 2, False, {"value": [{"$t": "raw", "v": 0}, {"$t": "raw", "v": 1}]}],
            b"abc",
            b"\xc3\xbc",
        ),
        CallFrame(1, 2, False, {"value": ["abc", "ü"]}),
    ),
    (frame("print", "x\n"), PrintFrame("x\n")),
    (frame("wake", 1, 0.5), WakeFrame(1, 0.5)),
    (frame("result", True, "", {"$t": "set", "v": [1]}), ResultFrame(True, "", {1})),
    (frame("result", False, "notice", 5), ResultFrame(False, "notice", None)),
    (frame("failed", ["E", "m", "t", "h", 3]), FailedFrame("E", "m", "t", "h", 3)),
    (frame("stopped", ["cpu", "", None]), StoppedFrame("cpu", "", None)),
]


@pytest.mark.parametrize(("data", "expected"), GOOD)
def test_a_frame_is_read_however_it_is_cut(data: bytes, expected: Frame) -> None:
    assert list(channel().receive(data)) == [expected]
    byte_by_byte = channel()
    assert [found for place in range(len(data)) for found in byte_by_byte.receive(data[place : place + 1])] == [
        expected
    ]


def test_several_frames_come_in_one_piece() -> None:
    data = (
        frame("call", 1, 0, False, {"a": 1, "b": 2}) + frame("print", "x") + frame("drop", 1) + frame("print", "y")[:5]
    )
    reader = channel()
    assert list(reader.receive(data)) == [CallFrame(1, 0, False, {"a": 1, "b": 2}), PrintFrame("x"), DropFrame(1)]
    assert reader.missing == len(frame("print", "y")) - 5
    assert list(reader.receive(frame("print", "y")[5:])) == [PrintFrame("y")]
    assert reader.missing == 0


def test_a_call_that_was_given_up_unsent_and_one_that_was_left_are_told_apart() -> None:
    data = frame("call", 1, 0, None, {"a": 1, "b": 2}) + frame("call", 2, 0, True, {"a": 1, "b": 2}) + frame("left", 2)
    assert list(channel().receive(data)) == [
        CallFrame(1, 0, True, {"a": 1, "b": 2}, is_withdrawn=True),
        CallFrame(2, 0, True, {"a": 1, "b": 2}),
        DropFrame(2, is_left=True),
    ]


BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"\x00\x00\x00\x01x", "a frame that is not JSON"),
    "empty": (b"\x00\x00\x00\x00", "a frame that is not JSON"),
    "NaN": (frame("print", float("nan")), "a frame that is not JSON"),
    "no UTF-8": (b"\x00\x00\x00\x02\xff\xff", "a frame that is not JSON"),
    "two values": (b"\x00\x00\x00\x04[] 1", "a frame that is not one JSON list"),
    "an object": (b"\x00\x00\x00\x02{}", "a frame that is not one JSON list"),
    "an empty list": (b"\x00\x00\x00\x02[]", "a frame that is not one JSON list"),
    "unknown kind": (frame("exec", "x"), "a frame of an unknown kind"),
    "kind that is no text": (frame(["call"], 1), "a frame of an unknown kind"),
    "too long": (b"\xff\xff\xff\xff", f"a frame of 4,294,967,295 bytes, at most {CAP:,} are allowed"),
    "call, short": (frame("call", 1, 0, False), "a call that is not complete"),
    "call, second first": (frame("call", 2, 0, False, {}), "a call out of order"),
    "call, ordinal true": (frame("call", True, 0, False, {}), "a call out of order"),
    "call, unknown tool": (frame("call", 1, 99, False, {}), "a call of an unknown tool"),
    "call, tool before the first": (frame("call", 1, -1, False, {}), "a call of an unknown tool"),
    "call, tool by name": (frame("call", 1, "add", False, {}), "a call of an unknown tool"),
    "call, parallel 1": (frame("call", 1, 0, 1, {}), "a call that is not complete"),
    "call, arguments a list": (frame("call", 1, 0, False, []), "a call that is not complete"),
    "call, arguments a tag": (
        frame("call", 1, 0, False, {"$t": "tuple", "v": []}),
        "a call that is not complete",
    ),
    "call, unknown argument": (frame("call", 1, 0, False, {"c": 1}), "an argument that the tool does not have"),
    "call, rest no list": (frame("call", 1, 4, False, {"rest": {}}), "an argument that the tool does not have"),
    "call, more no dict": (frame("call", 1, 4, False, {"more": []}), "an argument that the tool does not have"),
    "unknown tag": (
        frame("call", 1, 2, False, {"value": {"$t": "object", "v": 1}}),
        "a value that cannot be read: an unknown tag",
    ),
    "tag that lies": (
        frame("call", 1, 2, False, {"value": {"$t": "date", "v": "x"}}),
        "a value that cannot be read: a value that is not of the type date",
    ),
    "leave of nothing": (frame("left", 1), "a drop of no known call"),
    "dropped and left": (
        frame("call", 1, 0, True, {"a": 1, "b": 2}) + frame("drop", 1) + frame("left", 1),
        "a second drop of one call",
    ),
    "drop of nothing": (frame("drop", 1), "a drop of no known call"),
    "print, no text": (frame("print", 1), "output that is not text"),
    "wake, negative": (frame("wake", 1, -1), "a timer out of range"),
    "wake, for ever": (frame("wake", 1, 1e300), "a timer out of range"),
    "wake, text": (frame("wake", 1, "1"), "a timer that is not complete"),
    "result, short": (frame("result", True), "a result that is not complete"),
    "result, long": (
        frame("result", True, "", ["x" * 1000] * 166),
        "a frame of 166,686 bytes, at most 165,536 are allowed",
    ),
    "failed, numbers": (frame("failed", [1, 2, 3, 4, 5]), "a failure that is not complete"),
    "failed, long": (frame("failed", ["E", "m" * 70_000, "", "", None]), "a failure that is not complete"),
    "failed, line 0": (frame("failed", ["E", "", "", "", 0]), "a failure that is not complete"),
    "stopped, own reason": (frame("stopped", ["bored", "", None]), "a stop that is not complete"),
    "raw, no sizes": (raw([], ["print", "x"]), "a frame whose raw strings are not announced as they must be"),
    "raw, size text": (raw(["1"], ["print", "x"]), f"a frame whose raw strings are larger than {CAP:,} bytes"),
    "raw, size negative": (raw([-1], ["print", "x"]), f"a frame whose raw strings are larger than {CAP:,} bytes"),
    "raw, too much": (raw([10**30], ["print", "x"]), f"a frame whose raw strings are larger than {CAP:,} bytes"),
    "raw, place": (
        raw([1], ["call", 1, 2, False, {"value": {"$t": "raw", "v": 1}}], b"x"),
        "a value that cannot be read: a place that names no string, or one that is in its place already",
    ),
    "raw, one place too many": (
        raw([1], ["call", 1, 2, False, {"value": [RAW_PLACE, RAW_PLACE]}], b"x"),
        "a value that cannot be read: a place that names no string, or one that is in its place already",
    ),
    "raw, one string too many": (
        raw([1, 1], ["call", 1, 2, False, {"value": RAW_PLACE}], b"xy"),
        "a value that cannot be read: a string that no place names",
    ),
    "raw within raw": (raw([1], ["raw", [1], ["print", RAW_PLACE]], b"x"), "a frame of an unknown kind"),
    "raw, no list": (raw([1], RAW_PLACE, b"x"), "a frame that is not one JSON list"),
    "dropped twice": (
        frame("call", 1, 0, True, {"a": 1, "b": 2}) + frame("drop", 1) + frame("drop", 1),
        "a second drop of one call",
    ),
    "print, empty": (frame("print", ""), "output without text"),
    "print, long": (frame("print", "x" * 65_537), "output that is not text"),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_anything_else_is_a_violation_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation) as violation:
        list(channel().receive(data))
    assert str(violation.value) == reason


GOOD_AGAIN: list[tuple[bytes, Frame]] = [
    (frame("call", 1, 0, False, 3, 7, {"a": 1, "b": 2}), CallFrame(1, 0, False, {"a": 1, "b": 2}, taken=3, line=7)),
    (frame("wait", 3, 0.5, None), WaitFrame(3, 0.5, None)),
    (frame("wait", 0, 0, 2.5), WaitFrame(0, 0, 2.5)),
    (frame("unfit", "the clock"), UnfitFrame("the clock")),
]
BAD_AGAIN: dict[str, tuple[bytes, str]] = {
    "call without a count": (frame("call", 1, 0, False, {"a": 1}), "a call that is not complete"),
    "call, a count too many": (frame("call", 1, 0, False, 0, 0, 0, {"a": 1}), "a call that is not complete"),
    "call, count text": (frame("call", 1, 0, False, "0", 1, {"a": 1}), "a call that is not complete"),
    "call, count true": (frame("call", 1, 0, False, True, 1, {"a": 1}), "a call that is not complete"),
    "call, count negative": (frame("call", 1, 0, False, -1, 1, {"a": 1}), "a call that is not complete"),
    "call, line text": (frame("call", 1, 0, False, 0, "1", {"a": 1}), "a call that is not complete"),
    "call, line negative": (frame("call", 1, 0, False, 0, -1, {"a": 1}), "a call that is not complete"),
    "call, count endless": (frame("call", 1, 0, False, 1 << 31, 1, {"a": 1}), "a call that is not complete"),
    "wait, short": (frame("wait", 1, 0.5), "a wait that is not complete"),
    "wait, count text": (frame("wait", "1", 0.5, None), "a wait that is not complete"),
    "wait, count negative": (frame("wait", -1, 0.5, None), "a wait that is not complete"),
    "wait, no time": (frame("wait", 1, None, None), "a wait that is not complete"),
    "wait, time negative": (frame("wait", 1, -0.5, None), "a wait that is not complete"),
    "wait, time endless": (frame("wait", 1, 1e300, None), "a wait that is not complete"),
    "wait, until text": (frame("wait", 1, 0.5, "1"), "a wait out of range"),
    "wait, until negative": (frame("wait", 1, 0.5, -1), "a wait out of range"),
    "wait, until endless": (frame("wait", 1, 0.5, 1e300), "a wait out of range"),
    "wake": (frame("wake", 1, 1), "a frame of an unknown kind"),
    "unfit, no text": (frame("unfit", 1), "a reason that is not text"),
    "unfit, long": (frame("unfit", "x" * 70_000), "a reason that is not text"),
}


def again() -> Channel:
    return Channel(TOOLS, LIMITS, resumable=True)


@pytest.mark.parametrize(("data", "expected"), GOOD_AGAIN)
def test_a_resumable_program_says_more(data: bytes, expected: Frame) -> None:
    assert list(again().receive(data)) == [expected]


@pytest.mark.parametrize(("data", "reason"), BAD_AGAIN.values(), ids=BAD_AGAIN.keys())
def test_output_outside_the_protocol_is_a_violation(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation) as violation:
        list(again().receive(data))
    assert str(violation.value) == reason


@pytest.mark.parametrize("data", [GOOD_AGAIN[0][0], GOOD_AGAIN[1][0], GOOD_AGAIN[3][0]])
def test_other_programs_may_not_say_it(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        list(channel().receive(data))


def nested(depth: int) -> bytes:
    data = b'["call",1,2,false,{"value":' + b"[" * depth + b"]" * depth + b"}]"
    return len(data).to_bytes(4, "big") + data


HASH_PERIOD = (1 << 61) - 1
BOMBS = {
    "lists nested 65 deep": nested(65),
    "lists nested 40,000 deep": nested(40_000),
    "an integer of 50,000 digits": b"\x00\x00\xc3\x6a" + b'["print", ' + b"9" * 50_000 + b"]",
    "a Decimal without end": frame("call", 1, 2, False, {"value": {"$t": "Decimal", "v": "1e999999999"}}),
    "4,000 numbers of one hash": frame(
        "call", 1, 2, False, {"value": {"$t": "set", "v": [n * HASH_PERIOD for n in range(4000)]}}
    ),
    "4,000 keys of one hash": frame(
        "call", 1, 2, False, {"value": {"$t": "dict", "v": [[n * HASH_PERIOD, 0] for n in range(4000)]}}
    ),
    "tags nested 40,000 deep": frame("call", 1, 2, False, {"value": 0}).replace(
        b"0}]", b'{"$t":"tuple","v":[' * 4000 + b"]}" * 4000 + b"}]"
    ),
}


@pytest.mark.threat(45)
@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_a_violation_at_once(data: bytes) -> None:
    data = (len(data) - 4).to_bytes(4, "big") + data[4:]

    def receive() -> None:
        with pytest.raises(ProtocolViolation):
            list(channel().receive(data))

    assert milliseconds(receive, enough=100) <= 100


def test_nothing_is_kept_of_a_frame_that_is_announced_too_long() -> None:
    reader = channel()
    with pytest.raises(ProtocolViolation):
        list(reader.receive(b"\x7f\xff\xff\xff" + b"x" * 1000))
    with pytest.raises(ProtocolViolation):
        _ = reader.missing


SCALARS = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=8)


def lists_and_mappings(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Named: on Python 3.13 hypothesis cannot analyse how a lambda of these lines uses its parameter."""
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.just("$t"), inner, max_size=3)


JSON = st.recursive(SCALARS, lists_and_mappings)
KINDS = st.sampled_from(
    ["call", "drop", "print", "wake", "wait", "unfit", "result", "failed", "stopped", "raw", "start", ""]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.binary(max_size=64)
        | st.tuples(KINDS, JSON).map(lambda p: frame(*p))
        | st.tuples(KINDS, JSON, JSON, JSON).map(lambda p: frame(*p))
        | st.tuples(KINDS, JSON, JSON, JSON, JSON).map(lambda p: frame(*p))
    ),
    st.booleans(),
)
def test_no_bytes_bring_anything_but_frames_or_a_violation(pieces: list[bytes], resumable: bool) -> None:
    reader = again() if resumable else channel()
    try:
        for piece in pieces:
            for found in reader.receive(piece):
                assert isinstance(found, Frame)
    except ProtocolViolation:
        pass


VALUES = st.recursive(
    SCALARS.filter(lambda value: value == value)
    | st.binary(max_size=8)
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False, min_value=-(10**9), max_value=10**9)
    | st.sets(st.integers() | st.text(max_size=3), max_size=3)
    | st.frozensets(st.integers(), max_size=3)
    | st.text(min_size=8, max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.just("$t"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.integers(1, 200))
def test_any_value_goes_there_and_back_as_itself(value: Any, cut: int) -> None:
    # Strings of eight characters count as long, so that small examples hold raw ones.
    with patch.object(wire, "RAW_FROM", 8), patch.object(child_wire, "RAW_FROM", 8):
        goes_there_and_back(value, cut)


def goes_there_and_back(value: Any, cut: int) -> None:
    there = channel().answer(1, value)
    received = reading(there, cut).receive()
    assert received[:2] == ["answer", 1]
    assert_same(received[2], value)
    back = child_wire.encode('["call",1,2,false,', {"value": value}, 1 << 22)
    reader = Channel(TOOLS, Limits())
    found = [one for place in range(0, len(back), cut) for one in reader.receive(back[place : place + cut])]
    assert len(found) == 1
    assert isinstance(found[0], CallFrame)
    assert_same(found[0].arguments["value"], value)


def reading(data: bytes, cut: int) -> child_wire.Wire:
    pieces = [data[place : place + cut] for place in range(0, len(data), cut)]
    return child_wire.Wire(lambda _: pieces.pop(0) if pieces else b"", len)


def assert_same(found: Any, value: Any) -> None:
    assert repr(found) == repr(value) or found == value
    assert type(found) is type(value)


def test_an_answer_that_cannot_be_sent_says_why() -> None:
    with pytest.raises(Unrepresentable):
        channel().answer(1, object())
    with pytest.raises(Oversized):
        channel().answer(1, "x" * 200_000)


def test_an_error_is_cut_to_what_a_program_reads() -> None:
    data = channel().error(1, AnswerError(type_name="E", message="m" * 100_000, family="tool"))
    assert reading(data, 65_536).receive() == ["error", 1, ["E", "m" * 65_536, "tool"]]


def test_the_child_sees_the_end_of_its_channel() -> None:
    for data in (b"", b"\x00\x00", frame("answer", 1, 2)[:-1]):
        with pytest.raises(child_wire.ChannelClosed):
            reading(data, 3).receive()


def test_a_frame_that_grows_when_it_is_read_is_refused_unread() -> None:
    items = (WEIGHT_CAP // 290) * 9 // 10
    fits = json.dumps(["call", 1, 2, False, {"value": [{"": 0}] * items}], separators=(",", ":")).encode()
    grows = json.dumps(["call", 1, 2, False, {"value": [{"": 0}] * (items * 3 // 2)}], separators=(",", ":")).encode()
    assert len(list(Channel(TOOLS, Limits()).receive(len(fits).to_bytes(4, "big") + fits))) == 1
    with pytest.raises(ProtocolViolation) as violation:
        list(Channel(TOOLS, Limits()).receive(len(grows).to_bytes(4, "big") + grows))
    assert "bytes once read, at most 25,165,824" in str(violation.value)
