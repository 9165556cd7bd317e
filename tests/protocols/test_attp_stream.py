"""ATTP while it comes in."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import ToolCall
from toolwire.protocols import get
from toolwire.protocols.attp.stream import LATER_LIMIT
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted

ATTP = get("attp")
REPLY = """\
thought = "Look."

[tool_call]
status = "success"
target = "look"
code = '''
for word in ["a", ''.join("b")]:
    print(word)
'''
"""
CODE = 'for word in ["a", \'\'.join("b")]:\n    print(word)\n'


def test_the_program_is_told_as_it_comes() -> None:
    stream = ATTP.stream()
    events = [event for line in REPLY.splitlines(keepends=True) for event in stream.feed(line)]
    first, second = CODE.splitlines(keepends=True)
    assert events == [
        CallStarted(index=0, name="code_execution"),
        ArgumentsDelta(index=0, text=first, parameter="code"),
        ArgumentsDelta(index=0, text=second, parameter="code"),
        CallEnded(index=0, call=stream.reply().calls[0]),
    ]
    assert stream.reply() == ATTP.parse(REPLY)


@given(st.lists(st.integers(0, len(REPLY)), max_size=12))
def test_however_it_is_cut_it_is_the_same(cuts: list[int]) -> None:
    stream = ATTP.stream()
    places = [0, *sorted(cuts), len(REPLY)]
    events = [event for start, end in itertools.pairwise(places) for event in stream.feed(REPLY[start:end])]
    assert "".join(event.text for event in events if isinstance(event, ArgumentsDelta)) == CODE
    assert stream.reply() == ATTP.parse(REPLY)


def test_a_reply_that_breaks_off_has_no_call() -> None:
    stream = ATTP.stream()
    events = stream.feed(REPLY[: REPLY.index("print")])
    assert not any(isinstance(event, CallEnded) for event in events)


def test_a_reply_too_long_is_refused_without_keeping_it() -> None:
    stream = ATTP.stream()
    for _ in range(300):
        stream.feed("x" * 1_000)
    assert stream.reply().is_refused
    assert stream.feed("more") == []


def test_the_calls_arguments_are_those_of_the_reply() -> None:
    stream = ATTP.stream()
    ended = [event for event in stream.feed(REPLY) if isinstance(event, CallEnded)]
    assert [type(event.call) for event in ended] == [ToolCall]


LATER = REPLY.replace('"b"', '"c"')
TABLE = LATER[LATER.index("[tool_call]") :]


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("rest", "count"),
    [
        (f"\n{LATER}", 2),
        (f"\n{LATER}\n{REPLY}\n{LATER.replace('Look', 'And')}\n{LATER.replace('print', 'len')}", 3),
        (f"\nRequest: And c.\nReply:\n{LATER}", 1),
        (f"\nThen:\n{LATER}", 1),
    ],
    ids=["a second", "some twice", "a request", "prose"],
)
def test_each_program_that_is_read_is_told(rest: str, count: int, size: int) -> None:
    text, stream = REPLY + rest, ATTP.stream()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events = [event for piece in pieces for event in stream.feed(piece)]
    ended = [(event.index, event.call) for event in events if isinstance(event, CallEnded)]
    assert stream.reply() == ATTP.parse(text)
    assert len(ended) == count
    assert stream.reply().is_refused or ended == list(enumerate(stream.reply().calls))
    assert [event.index for event in events if isinstance(event, CallStarted)] == list(range(count))


def test_later_programs_are_told_up_to_a_size() -> None:
    rest = f"{LATER}\n{LATER.replace('print', 'len')}"
    for size, count in ((0, 3), (LATER_LIMIT // 2, 3), (LATER_LIMIT, 2)):
        stream = ATTP.stream()
        events = stream.feed(REPLY.replace("Look", "x" * size) + "\n" + rest)
        assert (len(stream.reply().calls), sum(isinstance(event, CallEnded) for event in events)) == (3, count)
