"""OpenAI's chat completions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
)

from tests.protocols.sdk_types import accepted
from toolwire import ToolCall, ToolResult
from toolwire.protocols import get
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, TextDelta
from toolwire.types import Problem

OPENAI = get("openai")


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def store(values: dict[str, int]) -> None:
    """Stores."""


def completion(message: dict[str, Any], reason: str = "tool_calls") -> ChatCompletion:
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, **message}}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return ChatCompletion.model_validate(whole)


def call(arguments: str, name: str = "add", call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_tools_are_as_the_sdk_has_them_and_strict_where_they_can_be() -> None:
    told: Any = OPENAI.describe([add, store])
    assert all(accepted(ChatCompletionFunctionToolParam, tool) for tool in told)
    assert told == [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": "Adds.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "integer"},
                        "b": {"type": ["integer", "null"], "description": "null: the default, 1."},
                    },
                    "required": ["a", "b"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        },
        {
            "type": "function",
            "function": {
                "name": "store",
                "description": "Stores.",
                "parameters": {
                    "type": "object",
                    "properties": {"values": {"type": "object", "additionalProperties": {"type": "integer"}}},
                    "required": ["values"],
                    "additionalProperties": False,
                },
            },
        },
    ]


def test_the_sdks_object_its_mapping_and_its_json_read_the_same() -> None:
    whole = completion({"content": "Let me see.", "tool_calls": [call('{"a": 2, "b": null}')]})
    found = OPENAI.parse(whole, [add])
    assert found.calls == (ToolCall("add", {"a": 2}, id="call_1", raw_text='{"a": 2, "b": null}'),)
    assert (found.text, found.problems) == ("Let me see.", ())
    for form in (whole.model_dump(), whole.to_json(), whole.choices[0].message, whole.to_json().encode()):
        assert OPENAI.parse(form, [add]) == found


def test_a_message_that_makes_calls_is_one_of_the_sdks() -> None:
    made = OPENAI.render([ToolCall("add", {"a": 1}, id="x"), ToolCall("a.b", {"t": "ü"})])
    assert accepted(ChatCompletionAssistantMessageParam, made)


def test_results_are_messages_of_the_sdks() -> None:
    sound: Any = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "AAAA"}}
    image: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    odd: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AAAA"}}
    result = ToolResult(True, None, content=[sound, image, odd], call=ToolCall("see", id="call_1"))
    messages: Any = OPENAI.format([result, ToolResult(True, 5, call=ToolCall("add", id="call_2"))])
    assert all(accepted(ChatCompletionMessageParam, message) for message in messages)
    assert messages == [
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "[audio]\n[image]\n[image: image/tiff, 3 bytes, which are not PNG, JPEG, GIF or WebP]",
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "5"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Returned by the tool 'see' for call call_1:"},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ],
        },
    ]


def test_a_refusal_is_a_failure() -> None:
    found = OPENAI.parse(completion({"refusal": "I won't."}, reason="stop"))
    assert (found.failure, found.calls, OPENAI.refuse(found)) == ("I won't.", (), [])


def test_a_slip_in_the_arguments_is_repaired_and_told() -> None:
    found = OPENAI.parse(completion({"tool_calls": [call("{'a': 1, 'b': 2,}")]}), [add])
    assert found.calls[0].arguments == {"a": 1, "b": 2}
    assert found.problems
    assert all(problem.repaired and problem.place.startswith("call 1 (add)") for problem in found.problems)


def test_arguments_that_break_off_run_nothing_though_the_provider_says_that_all_is_well() -> None:
    found = OPENAI.parse(
        completion({"tool_calls": [call('{"a": 1, "b": '), call('{"a": 1}', call_id="call_2")]}), [add]
    )
    assert (found.calls, [refused.id for refused in found.refused_calls]) == ((), ["call_1", "call_2"])
    answers: Any = OPENAI.refuse(found)
    assert [answer["tool_call_id"] for answer in answers] == ["call_1", "call_2"]
    assert answers[1]["content"] == (
        "Another call of the same reply could not be read. Make this one in your next reply.\n"
        "Nothing of the reply was run."
    )


def test_a_call_without_a_name_or_id_is_named_and_answered() -> None:
    body = {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}
    found = OPENAI.parse(body, [add])
    assert found.problems == (
        Problem(message="The call has no name. Write the name of a tool.", repaired=False, place="call 1 ()"),
    )
    assert found.refused_calls[0].id.startswith("made_0_")
    assert OPENAI.parse(body, [add]) == found


def chunk(**delta: Any) -> dict[str, Any]:
    reason = delta.pop("finish_reason", None)
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {"index": index, **more, "function": {"arguments": arguments, **({"name": name} if name else {})}}


def test_a_stream_tells_of_arguments_as_they_come() -> None:
    stream = OPENAI.stream([add])
    pieces = [
        chunk(role="assistant", content="So"),
        chunk(tool_calls=[piece(0, "", id="a", type="function", name="add")]),
        chunk(tool_calls=[piece(0, '{"a"')]),
        chunk(tool_calls=[piece(0, ": 1}")]),
        chunk(tool_calls=[piece(1, '{"a": 2}', id="b", type="function", name="add")]),
        chunk(finish_reason="tool_calls"),
    ]
    events = [event for item in pieces for event in stream.feed(ChatCompletionChunk.model_validate(item))]
    first = ToolCall("add", {"a": 1}, id="a", raw_text='{"a": 1}')
    second = ToolCall("add", {"a": 2}, id="b", raw_text='{"a": 2}')
    assert events == [
        TextDelta(text="So"),
        CallStarted(index=0, name="add", id="a"),
        ArgumentsDelta(index=0, text='{"a"'),
        ArgumentsDelta(index=0, text=": 1}"),
        CallStarted(index=1, name="add", id="b"),
        ArgumentsDelta(index=1, text='{"a": 2}'),
        # More of the first call may come until the reply ends.
        CallEnded(index=0, call=first),
        CallEnded(index=1, call=second),
    ]
    assert stream.reply().calls == (first, second)


def test_a_stream_of_a_server_that_numbers_nothing_is_read_too() -> None:
    stream = OPENAI.stream([add])
    for item in ([{"id": "a", "function": {"name": "add"}}], [{"function": {"arguments": '{"a": 1}'}}]):
        stream.feed(chunk(tool_calls=item))
    stream.feed(chunk(tool_calls=[{"id": "b", "function": {"name": "add", "arguments": '{"a": 2}'}}]))
    stream.feed(chunk(finish_reason="tool_calls"))
    assert [(found.id, found.arguments) for found in stream.reply().calls] == [("a", {"a": 1}), ("b", {"a": 2})]


@given(st.lists(st.text(max_size=12), max_size=4), st.lists(st.integers(0, 60), max_size=6), st.text(max_size=9))
def test_however_a_reply_is_cut_into_pieces_it_is_the_same(words: list[str], cuts: list[int], content: str) -> None:
    made: Any = OPENAI.render([ToolCall("note", {"words": words}, id="a"), ToolCall("add", {"a": 1}, id="b")])
    whole = OPENAI.parse({**made, "content": content})
    stream = OPENAI.stream()
    for text in _cut(content, cuts):
        stream.feed(chunk(content=text))
    for index, item in enumerate(made["tool_calls"]):
        stream.feed(chunk(tool_calls=[piece(index, "", id=item["id"], name=item["function"]["name"])]))
        for text in _cut(item["function"]["arguments"], cuts):
            stream.feed(chunk(tool_calls=[piece(index, text)]))
    stream.feed(chunk(finish_reason="tool_calls"))
    assert stream.reply() == whole


def _cut(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def test_a_stream_without_an_end_of_its_limits_stops_keeping() -> None:
    stream = OPENAI.stream([add])
    stream.feed(chunk(tool_calls=[piece(0, "", id="a", name="add")]))
    for _ in range(300):
        stream.feed(chunk(tool_calls=[piece(0, "x" * 1_000)]))
    found = stream.reply()
    assert found.calls == ()
    assert (
        Problem(
            message="The arguments of all calls have 300000 characters; the limit is 262144. Write less.",
            repaired=False,
        )
        in found.problems
    )


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_stream_that_breaks_off_runs_nothing(reason: str) -> None:
    stream = OPENAI.stream([add])
    stream.feed(chunk(tool_calls=[piece(0, '{"a": 1}', id="a", name="add")]))
    stream.feed(chunk(finish_reason=reason))
    assert (stream.reply().calls, len(stream.reply().refused_calls)) == ((), 1)
