"""ATTP while it comes in."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolwire import ToolCall
from toolwire.protocols import get
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
