"""Anthropic's messages."""

from __future__ import annotations

import itertools
import json
from typing import Any

from anthropic.types import Message, MessageParam, ToolParam
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.sdk_types import accepted
from toolwire import ToolCall, ToolResult, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, TextDelta

ANTHROPIC = get("anthropic")


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def now() -> str:
    """Tells the time."""
    return "noon"


def message(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**whole, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage, **more}


def tool_use(given_: dict[str, Any], name: str = "add", call_id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given_}


def test_tools_are_as_the_sdk_has_them_with_names_it_takes() -> None:
    odd = ToolSpec.from_jsonschema(
        name="7.tool", description="Odd.", input_schema={"type": "object", "properties": {"@id": {"type": "string"}}}
    )
    told: Any = ANTHROPIC.describe([add, odd])
    assert all(accepted(ToolParam, tool) for tool in told)
    assert told == [
        {
            "name": "add",
            "description": "Adds.",
            "input_schema": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"default": 1, "type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
        {
            "name": "_x37__dot_tool",
            "description": "Odd.",
            "input_schema": {"type": "object", "properties": {"_x40_id": {"type": "string"}}},
        },
    ]
    found = ANTHROPIC.parse([tool_use({"_x40_id": "x"}, "_x37__dot_tool")], [add, odd])
    assert [(call.name, call.arguments) for call in found.calls] == [("7.tool", {"@id": "x"})]


def test_the_sdks_object_its_content_and_its_mapping_read_the_same() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    whole = Message.model_validate(message(thinking, {"type": "text", "text": "Now."}, tool_use({"a": 2, "b": None})))
    found = ANTHROPIC.parse(whole, [add])
    assert found.calls == (ToolCall("add", {"a": 2, "b": None}, id="toolu_1"),)
    assert (found.text, found.thought, found.problems) == ("Now.", "Hm.", ())
    for form in (whole.content, whole.model_dump(), whole.to_json(), {"role": "assistant", "content": whole.content}):
        assert ANTHROPIC.parse(form, [add]) == found


def test_a_message_that_makes_calls_is_one_of_the_sdks() -> None:
    assert accepted(MessageParam, ANTHROPIC.render([ToolCall("add", {"a": 1}, id="x"), ToolCall("a.b", {"ä": "ü"})]))


def test_results_are_one_message_of_the_sdks() -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    link: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    odd: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AAAA"}}
    empty: Any = {"type": "text", "text": ""}
    seen = ToolResult(True, None, content=[empty, image, link, odd], call=ToolCall("see", id="a"))
    failed = ToolResult(False, error="no", call=ToolCall("add", id="b"))
    messages: Any = ANTHROPIC.format([seen, failed])
    assert accepted(list[MessageParam], messages)
    assert messages == [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [
                        image,
                        link,
                        {"type": "text", "text": "[image: image/tiff, 3 bytes, which are not PNG, JPEG, GIF or WebP]"},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "b", "content": failed.text, "is_error": True},
            ],
        }
    ]
    assert ANTHROPIC.format([]) == []


def test_a_refusal_is_a_failure() -> None:
    found = ANTHROPIC.parse(message({"type": "text", "text": "I won't."}, stop_reason="refusal"))
    assert (found.failure, found.calls) == ("I won't.", ())


def test_a_tool_that_the_provider_runs_itself_is_left_alone() -> None:
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    found = ANTHROPIC.parse(message(server, result, {"type": "text", "text": "Found."}, stop_reason="end_turn"))
    assert (found.text, found.calls, found.problems) == ("Found.", (), ())


def test_an_object_given_as_text_is_decoded_where_the_tool_wants_one() -> None:
    def store(values: dict[str, int], text: str) -> None:
        """Stores."""

    found = ANTHROPIC.parse([tool_use({"values": '{"a": 1}', "text": '{"a": 1}'}, "store")], [store])
    assert found.calls[0].arguments == {"values": {"a": 1}, "text": '{"a": 1}'}
    assert [(problem.repaired, problem.place) for problem in found.problems] == [(True, "call 1 (store), values")]


def test_input_that_is_not_an_object_is_refused() -> None:
    found = ANTHROPIC.parse([{**tool_use({}), "input": [1]}], [add])
    assert found.problems[0].message == (
        "The arguments are not an object. Write one JSON object with the parameters' names as keys."
    )


def events_of(*blocks: dict[str, Any], cuts: list[int] | None = None, reason: str = "tool_use") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message()}]
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        text = block["text"] if is_text else json.dumps(block["input"]) if block["input"] else ""
        start = {**block, "text": ""} if is_text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        places = [0, *sorted(min(cut, len(text)) for cut in cuts or []), len(text)]
        for begin, end in itertools.pairwise(places):
            kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
            delta = {"type": kind, key: text[begin:end]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


def test_a_stream_tells_of_arguments_as_they_come() -> None:
    stream = ANTHROPIC.stream([add, now])
    blocks = [{"type": "text", "text": "So"}, tool_use({"a": 1}), tool_use({}, "now", "toolu_2")]
    events = [event for item in events_of(*blocks, cuts=[3]) for event in stream.feed(item)]
    assert events == [
        TextDelta(text="So"),
        CallStarted(index=0, name="add", id="toolu_1"),
        ArgumentsDelta(index=0, text='{"a'),
        ArgumentsDelta(index=0, text='": 1}'),
        CallEnded(index=0, call=ToolCall("add", {"a": 1}, id="toolu_1", raw_text='{"a": 1}')),
        CallStarted(index=1, name="now", id="toolu_2"),
        CallEnded(index=1, call=ToolCall("now", {}, id="toolu_2")),
    ]


@given(
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    st.lists(st.integers(0, 40)),
)
def test_however_a_reply_is_cut_into_pieces_it_is_the_same(text: str, given_: dict[str, Any], cuts: list[int]) -> None:
    blocks = [{"type": "text", "text": text}, tool_use(given_, "note"), tool_use({"a": 1}, call_id="toolu_2")]
    stream = ANTHROPIC.stream()
    for event in events_of(*blocks, cuts=cuts):
        stream.feed(event)
    whole = ANTHROPIC.parse(message(*blocks))
    found = stream.reply()
    assert (found.text, found.problems) == (whole.text, whole.problems)
    assert [(call.name, call.arguments, call.id) for call in found.calls] == [
        (call.name, call.arguments, call.id) for call in whole.calls
    ]


def test_a_stream_that_breaks_off_runs_nothing() -> None:
    stream = ANTHROPIC.stream([add])
    for event in events_of(tool_use({"a": 1}), reason="max_tokens"):
        stream.feed(event)
    assert (stream.reply().calls, len(stream.reply().refused_calls)) == ((), 1)
