"""The variables that a program's process sends: its own code's text is read, and any other is a violation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.channel.test_channel import frame, raw
from tests.sandbox.programs import TOOLS
from toolwire.sandbox.channel.channel import FRAME_SLACK, Channel
from toolwire.sandbox.channel.frames import Frame, VariablesFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.limits import Limits
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES

FITS = VARIABLES_LIMIT_BYTES - len('a""')


def text(values: Any = None, functions: Any = None, left_out: Any = None) -> str:
    return json.dumps([values or {}, functions or {}, left_out or {}])


def read(*pieces: bytes, has_variables: bool = True) -> list[Frame]:
    channel = Channel(TOOLS, Limits(call_bytes=1000, result_bytes=1000), has_variables=has_variables)
    return [found for piece in pieces for found in channel.receive(piece)]


def test_values_are_read_and_written_again_by_the_host() -> None:
    sent = text({"a": [1, {"$t": "set", "v": [3, 2]}], "b": {"$t": "tuple", "v": []}}, {"f": 3}, {"m": "module"})
    assert read(frame("variables", sent)) == [
        VariablesFrame({"a": '[1,{"$t":"set","v":[2,3]}]', "b": '{"$t":"tuple","v":[]}'}, {"f": 3}, {"m": "module"})
    ]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (["variables"], "variables that are not text"),
        (["variables", {}], "variables that are not text"),
        (["variables", "x"], "a frame that is not JSON"),
        (["variables", "[{}]"], "variables that are not complete"),
        (["variables", text({"a b": 1})], "variables that are not complete"),
        (["variables", text(None, {"f": 0})], "a function without its line"),
        (["variables", text(None, {"f": "def f(): pass"})], "a function without its line"),
        (["variables", text(None, None, {"a": ["m"]})], "a reason that is not text"),
        (["variables", text(None, None, {"a": "m" * 101})], "a reason that is not text"),
        (
            ["variables", text({"f": {"$t": "source", "v": "def f(): pass"}})],
            "a value that cannot be read: an unknown tag",
        ),
        (
            ["variables", text({"a": {"$t": "set", "v": [[]]}})],
            "a value that cannot be read: a value that is not of the type set",
        ),
    ],
)
def test_any_other_text_is_a_violation(sent: list[Any], reason: str) -> None:
    with pytest.raises(ProtocolViolation) as violation:
        read(frame(*sent))
    assert str(violation.value) == reason


def test_they_come_once_and_only_if_they_are_kept() -> None:
    once = frame("variables", text())
    assert len(read(once)) == 1
    for pieces, has_variables in (((once, once), True), ((once,), False)):
        with pytest.raises(ProtocolViolation, match=r"^a frame of an unknown kind$"):
            read(*pieces, has_variables=has_variables)


def test_more_than_the_limit_is_a_violation_before_it_is_read() -> None:
    def sent(size: int) -> bytes:
        whole = text({"a": "x" * size}).encode()
        return raw([len(whole)], ["variables", {"$t": "raw", "v": 0}], whole)

    assert len(read(sent(FITS))) == 1
    with pytest.raises(ProtocolViolation, match=r"^more than 1,048,576 bytes of variables$"):
        read(sent(FITS + 1))
    with pytest.raises(ProtocolViolation, match="raw strings are larger than"):
        read(sent(VARIABLES_LIMIT_BYTES + FRAME_SLACK))


def test_text_that_grows_in_memory_is_refused_unread() -> None:
    whole = text({"a": [[]] * 230_000}).encode()
    with pytest.raises(ProtocolViolation, match="bytes once read"):
        read(raw([len(whole)], ["variables", {"$t": "raw", "v": 0}], whole))
