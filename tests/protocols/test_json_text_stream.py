"""JSON in text while it comes in: the same calls however it is cut, and arguments as they arrive."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor import LINEAR, growth, milliseconds
from tests.protocols.test_json_text import CALL, LEFT, REFUSED, TAKEN, search
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.protocols.text_formats import JSON_TEXT as PROTOCOL
from toolwire.vocabulary.calls import CODE_EXECUTION

SIZE = 65_536
LIMIT_MS = 100


def cut(text: str, seed: int) -> list[str]:
    chance, pieces, position = random.Random(seed), [], 0
    while position < len(text):
        size = len(text) if seed == 0 else 1 if seed == 1 else chance.randint(1, 12)
        pieces.append(text[position : position + size])
        position += size
    return pieces


def told(pieces: Iterable[str]) -> list[Any]:
    """The events, with neighbouring deltas joined and blank text left out."""
    stream, found = PROTOCOL.stream([search]), list[Any]()
    for event in (event for piece in pieces for event in stream.feed(piece)):
        said = _said(event)
        if found and said[0] == found[-1][0] and said[0] in ("text", "arguments"):
            said = (*said[:-1], found.pop()[-1] + said[-1])
        found.append(said)
    return [said for said in found if said[0] != "text" or said[1].strip()]


def _said(event: StreamEvent) -> tuple[Any, ...]:
    match event:
        case TextDelta():
            return ("text", event.text)
        case CallStarted():
            return ("call", event.index, event.name)
        case ArgumentsDelta():
            return ("arguments", event.index, event.parameter, event.text)
        case CallEnded():
            return ("end", event.index, event.call and dict(event.call.arguments))


REPLIES = [text for text, _ in TAKEN.values()] + list(LEFT.values())
REPLIES += [text for text, _ in REFUSED.values() if isinstance(text, str) and len(text) < 10_000]


@pytest.mark.parametrize("text", REPLIES)
def test_however_a_reply_is_cut_its_end_is_the_same(text: str) -> None:
    whole = PROTOCOL.parse(text, [search])
    events = told(cut(f"{text}\n", 0))
    for seed in range(1, 6):
        stream = PROTOCOL.stream([search])
        for piece in cut(text, seed):
            stream.feed(piece)
        assert stream.reply() == whole
        assert [said for said in told(cut(f"{text}\n", seed)) if said[0] != "text"] == [
            said for said in events if said[0] != "text"
        ]


@pytest.mark.parametrize("text", [text for text, _ in TAKEN.values()])
def test_the_calls_that_end_are_the_replys(text: str) -> None:
    ended = [said[2] for said in told([f"{text}\n"]) if said[0] == "end"]
    assert ended == [dict(call.arguments) for call in PROTOCOL.parse(text, [search]).calls]


def test_arguments_are_told_as_they_arrive() -> None:
    stream = PROTOCOL.stream()
    pieces = ["I se", 'arch.\n<tool_call>\n{"name": "sea', 'rch", "arguments": {"que', 'ry": "', "x }", '"}}\n', "</"]
    assert [stream.feed(piece) for piece in pieces] == [
        [TextDelta(text="I se")],
        [TextDelta(text="arch.\n")],
        [CallStarted(index=0, name="search"), ArgumentsDelta(index=0, text='{"que')],
        [ArgumentsDelta(index=0, text='ry": "')],
        [ArgumentsDelta(index=0, text="x }")],
        [
            ArgumentsDelta(index=0, text='"}'),
            CallEnded(index=0, call=PROTOCOL.parse('{"name": "search", "arguments": {"query": "x }"}}').calls[0]),
        ],
        [],
    ]


def test_arguments_before_the_name_are_told_with_it() -> None:
    assert told(cut('{"arguments": {"query": "x"}, "name": "search"}', 1)) == [
        ("call", 0, "search"),
        ("arguments", 0, "", '{"query": "x"}'),
        ("end", 0, {"query": "x"}),
    ]


def test_a_program_is_told_as_it_arrives() -> None:
    stream = PROTOCOL.stream()
    events = [event for piece in cut("```python\nx = 1\n__result__ = x\n```\n", 7) for event in stream.feed(piece)]
    assert events[0] == CallStarted(index=0, name=CODE_EXECUTION)
    text = "".join(event.text for event in events if isinstance(event, ArgumentsDelta) and event.parameter == "code")
    assert text == stream.reply().calls[0].arguments["code"] == "x = 1\n__result__ = x\n"


def test_bytes_may_be_cut_inside_of_a_character() -> None:
    whole = CALL.replace("x", "你好").encode()
    stream = PROTOCOL.stream()
    for place in range(len(whole)):
        stream.feed(whole[place : place + 1])
    assert stream.reply() == PROTOCOL.parse(whole)


def test_no_text_means_nothing_and_what_is_too_much_is_not_kept() -> None:
    stream = PROTOCOL.stream()
    assert [stream.feed(None), stream.feed("")] == [[], []]
    for _ in range(5):
        stream.feed("x" * 100_000)
    assert [problem.message for problem in stream.reply().problems] == [
        "The reply has 300000 bytes; the limit is 262144. Write a shorter one."
    ]


@given(st.text('{}[]:,"\\ \n<>/`tool_cangume|think', max_size=80), st.integers(0, 9))
def test_nothing_makes_it_raise(text: str, seed: int) -> None:
    stream = PROTOCOL.stream([search])
    for piece in cut(text, seed):
        stream.feed(piece)
    assert stream.reply() == PROTOCOL.parse(text, [search])


PUMPS: dict[str, Callable[[int], str]] = {
    "prose": lambda n: "it's one <word> [a] ```. " * (n // 24),
    "calls": lambda n: f"{CALL}\n" * (n // 48),
    "tags": lambda n: "a <tool_call> " * (n // 14),
    "tagged calls": lambda n: f"<tool_call>{CALL}\n" * (n // 59),
    "thinking": lambda n: "<think></think>" * (n // 15) + CALL,
    "fences": lambda n: f"```json\n{CALL}\n```\n" * (n // 60),
    "fences of data": lambda n: "```\n{\n```\n" * (n // 10),
    "damaged data": lambda n: '{"a": [\n\n' * (n // 9),
    "damaged calls": lambda n: "{'name': 'a', 'arguments': {}}\n" * (n // 31),
    "quotes": lambda n: "> x\n" * (n // 4),
    "angles": lambda n: "<" * n,
    "brackets behind": lambda n: CALL + "}" * n,
}


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(lambda text: PROTOCOL.parse(text, [search]), pump(SIZE // 4), pump(SIZE)) <= LINEAR


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_the_worst_text_is_read_in_time(pump: Callable[[int], str]) -> None:
    text = pump(SIZE)
    assert milliseconds(lambda: PROTOCOL.parse(text, [search]), enough=LIMIT_MS) <= LIMIT_MS


@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_a_stream_of_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(_stream, pump(SIZE // 16), pump(SIZE // 4)) <= LINEAR


def _stream(text: str) -> None:
    stream = PROTOCOL.stream()
    for position in range(0, len(text), 5):
        stream.feed(text[position : position + 5])
