"""OpenAI's responses."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import FunctionToolParam, Response, ResponseInputItemParam

from tests.protocols.sdk_types import accepted
from toolwire import ToolCall, ToolResult
from toolwire.protocols import get
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, TextDelta

RESPONSES = get("openai-responses")


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def store(values: dict[str, int]) -> None:
    """Stores."""


def function_call(arguments: str, call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": arguments, **more}


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole = {"id": "r", "object": "response", "created_at": 1.0, "model": "m", "status": "completed", "tools": []}
    return {**whole, "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto", **more}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": list(content)}


def said(text: str) -> dict[str, Any]:
    return message({"type": "output_text", "text": text, "annotations": []})


def test_tools_are_as_the_sdk_has_them_and_say_whether_they_are_strict() -> None:
    told: Any = RESPONSES.describe([add, store])
    assert all(accepted(FunctionToolParam, tool) for tool in told)
    assert [(tool["type"], tool["name"], tool["strict"]) for tool in told] == [
        ("function", "add", True),
        ("function", "store", False),
    ]


def test_the_sdks_object_its_output_and_its_mapping_read_the_same() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]}
    whole = Response.model_validate(response(reasoning, said("Now."), function_call('{"a": 2, "b": null}')))
    found = RESPONSES.parse(whole, [add])
    assert found.calls == (ToolCall("add", {"a": 2}, id="call_1", raw_text='{"a": 2, "b": null}'),)
    assert (found.text, found.thought, found.problems) == ("Now.", "Hm.", ())
    for form in (whole.output, whole.model_dump(), whole.to_json()):
        assert RESPONSES.parse(form, [add]) == found


def test_items_that_make_calls_are_the_sdks() -> None:
    made: Any = RESPONSES.render([ToolCall("add", {"a": 1}, id="x"), ToolCall("a.b", {"t": "ü"})])
    assert all(accepted(ResponseInputItemParam, item) for item in made)


def test_results_are_items_of_the_sdks() -> None:
    image: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    sound: Any = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "AAAA"}}
    result = ToolResult(True, None, content=[{"type": "text", "text": "t"}, image, sound], call=ToolCall("s", id="c1"))
    items: Any = RESPONSES.format([result, ToolResult(False, error="no", call=ToolCall("add", id="c2"))])
    assert all(accepted(ResponseInputItemParam, item) for item in items)
    assert items[0] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "t"},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
            {"type": "input_text", "text": "[audio]"},
        ],
    }
    assert items[1]["output"].startswith("no\n")


def test_a_refusal_is_a_failure() -> None:
    found = RESPONSES.parse(response(message({"type": "refusal", "refusal": "I won't."})))
    assert (found.failure, found.calls) == ("I won't.", ())


def test_an_item_that_is_not_whole_runs_nothing() -> None:
    found = RESPONSES.parse(response(function_call('{"a": 1}', status="incomplete")), [add])
    assert (found.calls, len(found.refused_calls)) == ((), 1)
    assert found.problems[0].message.startswith("The reply broke off inside a call")


def test_calls_that_the_provider_runs_are_left_alone() -> None:
    search = {"type": "web_search_call", "id": "w", "status": "completed"}
    found = RESPONSES.parse(response(search, said("Found.")), [add])
    assert (found.text, found.calls, found.problems) == ("Found.", (), ())


def events_of(*output: dict[str, Any], cuts: list[int] | None = None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for index, item in enumerate(output):
        place = {"output_index": index}
        key, kind = ("text", "output_text") if item["type"] == "message" else ("arguments", "function_call_arguments")
        text = item["content"][0]["text"] if item["type"] == "message" else item[key]
        empty = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", **place, "item": empty})
        places = [0, *sorted(min(cut, len(text)) for cut in cuts or []), len(text)]
        parts = [text[start:end] for start, end in itertools.pairwise(places)]
        events += [{"type": f"response.{kind}.delta", **place, "delta": part} for part in parts]
        events.append({"type": "response.output_item.done", **place, "item": item})
    return [*events, {"type": "response.completed", "response": response(*output)}]


def test_a_stream_tells_of_arguments_as_they_come() -> None:
    stream = RESPONSES.stream([add])
    events = [
        event for item in events_of(said("So"), function_call('{"a": 1}'), cuts=[3]) for event in stream.feed(item)
    ]
    made = ToolCall("add", {"a": 1}, id="call_1", raw_text='{"a": 1}')
    assert events == [
        TextDelta(text="So"),
        CallStarted(index=0, name="add", id="call_1"),
        ArgumentsDelta(index=0, text='{"a'),
        ArgumentsDelta(index=0, text='": 1}'),
        CallEnded(index=0, call=made),
    ]
    assert stream.reply().calls == (made,)


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.integers(0, 40), max_size=6))
def test_however_a_reply_is_cut_into_pieces_it_is_the_same(text: str, word: str, cuts: list[int]) -> None:
    made: Any = RESPONSES.render([ToolCall("note", {"word": word}, id="a"), ToolCall("add", {"a": 1}, id="b")])
    output = [said(text), *made]
    stream = RESPONSES.stream()
    for event in events_of(*output, cuts=cuts):
        stream.feed(event)
    assert stream.reply() == RESPONSES.parse(response(*output))


def test_a_stream_that_breaks_off_runs_nothing() -> None:
    stream = RESPONSES.stream([add])
    for event in events_of(function_call('{"a": 1}'))[:-2]:
        stream.feed(event)
    end = response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    stream.feed({"type": "response.incomplete", "response": end})
    assert (stream.reply().calls, len(stream.reply().refused_calls)) == ((), 1)
