"""A reply in XML while it comes in."""

from __future__ import annotations

import pytest

from toolwire.protocols import get
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.vocabulary.calls import ToolCall

XML = get("xml")
CALL = "<tool_call>\n  <name>add</name>\n  <params>\n    <a><![CDATA[1]]></a>\n  </params>\n</tool_call>"


def add(a: int, b: int = 0) -> int:
    """Adds."""
    return a + b


def events_of(pieces: list[str]) -> list[StreamEvent]:
    stream = XML.stream([add])
    return [event for piece in pieces for event in stream.feed(piece)]


def test_arguments_come_as_they_arrive() -> None:
    stream = XML.stream([add])
    assert stream.feed("I add.\n<tool_c") == [TextDelta(text="I add."), TextDelta(text="\n")]
    assert stream.feed("all><name>add</name><params><a><![CDATA[12") == [CallStarted(index=0, name="add")]
    assert stream.feed("34]") == [ArgumentsDelta(index=0, text="123", parameter="a")]
    assert stream.feed("]></a></params></tool_call>") == [
        ArgumentsDelta(index=0, text="4", parameter="a"),
        CallEnded(index=0, call=stream.reply().calls[0]),
    ]
    assert stream.reply().calls[0].arguments == {"a": 1234}


def test_two_calls_have_two_places() -> None:
    ended = [event for event in events_of(list(CALL + "\n" + CALL)) if isinstance(event, CallEnded)]
    call = ToolCall("add", {"a": 1}, raw_text=CALL)
    assert ended == [CallEnded(index=0, call=call), CallEnded(index=1, call=call)]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{CALL}</think>Done.",
        f"So:\n```xml\n{CALL}\n```\n",
        f"<tool_result><![CDATA[</tool_result>{CALL}]]></tool_result>",
        f"`{CALL.replace(chr(10), '')}`",
        f"> {CALL}",
        f"<!-- {CALL} -->",
        f"“{CALL}”",
        "Use <tool_call> for that.",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_no_call_begins_in_what_is_thought_or_quoted(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert {type(event) for event in events_of(pieces)} <= {TextDelta}


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("text", [CALL, f"```xml\n{CALL}\n```", CALL[len("<tool_call>\n  ") :], f"It's `x`:\n{CALL}"])
def test_each_call_that_is_read_is_told(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    ended = [event.call for event in events_of(pieces) if isinstance(event, CallEnded)]
    assert ended == list(XML.parse(text, [add]).calls) != []


def test_after_a_slip_nothing_more_is_told_and_the_reply_is_mended() -> None:
    text = CALL.replace("</a>", "</aa>")
    assert [type(event) for event in events_of([text])] == [CallStarted, ArgumentsDelta]
    stream = XML.stream([add])
    stream.feed(text)
    assert stream.reply() == XML.parse(text, [add])


def test_a_character_may_be_cut_in_two() -> None:
    stream = XML.stream()
    content = "茶".encode()
    assert (stream.feed(content[:1]), stream.feed(content[1:])) == ([], [TextDelta(text="茶")])
    assert stream.reply().text == "茶"


def test_past_the_limit_nothing_is_kept() -> None:
    stream = XML.stream()
    for _ in range(10):
        stream.feed("x" * 100_000)
    assert [problem.message for problem in stream.reply().problems] == [
        "The reply has 300000 bytes; the limit is 262144. Write a shorter one."
    ]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("value", ["a &lt; b", "a && b", "&amp;lt;", "plain", "a &#65; &unknown; b", "x&lt;"])
def test_the_pieces_of_a_value_outside_of_cdata_are_the_value_that_is_read(value: str, size: int) -> None:
    text = f"<tool_call><name>say</name><params><text>{value}</text></params></tool_call>"
    events = events_of([text[start : start + size] for start in range(0, len(text), size)])
    told = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    assert told == XML.parse(text).calls[0].arguments["text"]
    assert isinstance(events[-1], CallEnded)
