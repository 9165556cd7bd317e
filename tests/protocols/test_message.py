"""`Reply.message`: the assistant's message goes back to its provider with all that the provider needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import Message, MessageParam, RawContentBlockDeltaEvent, RawContentBlockStartEvent
from google import genai
from google.genai import types
from openai.types.chat import ChatCompletion, ChatCompletionAssistantMessageParam, ChatCompletionChunk
from openai.types.responses import Response, ResponseInputItemParam, ResponseOutputItemDoneEvent

from tests.processor import LINEAR, growth
from tests.protocols.providers import provider
from tests.protocols.sdk_types import accepted
from toolwire import Reply, Session, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.native.assembly import NO_CONTENT, grow, join_pieces
from toolwire.protocols.native.streams.native_stream import STREAM_LIMIT_CHARACTERS

OPENAI, RESPONSES, ANTHROPIC, GEMINI = map(get, ("openai", "openai-responses", "anthropic", "gemini"))


def add(a: int, b: int | None = 1) -> int:
    """Adds."""
    return a + (b or 0)


def streamed(protocol: Any, pieces: Iterable[Any]) -> Reply:
    stream = protocol.stream([add])
    for piece in pieces:
        stream.feed(piece)
    return stream.reply()


# Anthropic

THINKING = {"type": "thinking", "thinking": "Hm, add.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "sums"}}
CITED = {
    "type": "text",
    "text": "Let me see.",
    "citations": [
        {
            "type": "char_location",
            "cited_text": "s",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 1,
        }
    ],
}
USE = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 2, "b": None}}


def message(*content: dict[str, Any], reason: str = "tool_use") -> dict[str, Any]:
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**whole, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}]


def json_deltas(text: str, size: int = 4) -> list[dict[str, Any]]:
    places = range(0, len(text), size)
    return [{"type": "input_json_delta", "partial_json": text[place : place + size]} for place in places]


CLAUDE_EVENTS = [
    {"type": "message_start", "message": {**message(), "stop_reason": None}},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm, "},
        {"type": "thinking_delta", "thinking": "add."},
        {"type": "signature_delta", "signature": "c2ln"},
    ),
    *block(1, HIDDEN),
    *block(2, {**SEARCH, "input": {}}, *json_deltas('{"query": "sums"}')),
    *block(
        3,
        {"type": "text", "text": "", "citations": []},
        {"type": "citations_delta", "citation": CITED["citations"][0]},
        {"type": "text_delta", "text": "Let me "},
        {"type": "text_delta", "text": "see."},
    ),
    *block(4, {**USE, "input": {}}, *json_deltas('{"a": 2, "b": null}')),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
]
CLAUDE = {"role": "assistant", "content": [THINKING, HIDDEN, SEARCH, CITED, USE]}


def test_claude_gets_its_blocks_back_with_their_signatures() -> None:
    whole = Message.model_validate(message(*CLAUDE["content"]))
    forms = (whole, whole.to_json(), whole.content, message(*CLAUDE["content"]), {**CLAUDE, "content": whole.content})
    assert [ANTHROPIC.parse(form, [add]).message for form in forms] == [CLAUDE] * len(forms)
    assert accepted(MessageParam, {**CLAUDE, "content": [THINKING, HIDDEN, USE]})


def test_claudes_stream_gives_the_same_message() -> None:
    assert streamed(ANTHROPIC, CLAUDE_EVENTS).message == CLAUDE
    # The control: the events are the SDK's, and it puts the same message together.
    with provider() as server, anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        server.script = [CLAUDE_EVENTS, CLAUDE_EVENTS]
        request: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
        raw = list(client.messages.create(**request, stream=True))
        with client.messages.stream(**request) as events:
            helped = list(events)
            final = events.get_final_message()
    assert {RawContentBlockStartEvent, RawContentBlockDeltaEvent} <= set(map(type, raw))
    assert streamed(ANTHROPIC, raw).message == CLAUDE
    assert streamed(ANTHROPIC, helped).message == CLAUDE
    assert ANTHROPIC.parse(final).message == CLAUDE


def test_claudes_thinking_that_broke_off_does_not_go_back() -> None:
    begun = CLAUDE_EVENTS[1:3]
    assert streamed(ANTHROPIC, begun).message["content"] == [{"type": "text", "text": NO_CONTENT}]


def test_claudes_arguments_that_are_not_json_go_back_as_an_object() -> None:
    begun = block(0, {**USE, "input": {}}, *json_deltas('{"a": [2, }, "'))
    found = streamed(ANTHROPIC, begun)
    assert (len(found.refused_calls), found.message["content"]) == (
        1,
        [{**USE, "input": {"INVALID_JSON": '{"a": [2, }, "'}}],
    )


def test_claude_gets_no_empty_text_back() -> None:
    found = ANTHROPIC.parse(message({"type": "text", "text": ""}, USE), [add])
    assert found.message["content"] == [USE]


# OpenAI chat


def completion(**fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": "tool_calls"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chunk(**delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def tool_call(call_id: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "add", "arguments": arguments}, **more}


SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
DETAILS = [
    {"type": "reasoning.text", "text": "Hm, add.", "format": "x-v1", "index": 0, "signature": "c2ln"},
    {"type": "reasoning.encrypted", "data": "ZGF0YQ==", "format": "x-v1", "index": 1},
]
CHAT = {
    "role": "assistant",
    "content": "Let me see.",
    "reasoning_content": "Hm, add.",
    "reasoning_details": DETAILS,
    "tool_calls": [tool_call("a", '{"a": 1}', **SIGNED), tool_call("b", '{"a": 2}')],
}
CHAT_CHUNKS = [
    chunk(role="assistant", content="", reasoning_content="Hm, "),
    chunk(reasoning_content="add.", reasoning_details=[{**DETAILS[0], "text": "Hm, ", "signature": None}]),
    chunk(reasoning_details=[{**DETAILS[0], "text": "add."}, DETAILS[1]]),
    chunk(content="Let me "),
    chunk(content="see."),
    chunk(tool_calls=[{"index": 0, **tool_call("a", "", **SIGNED)}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}, {"index": 1, **tool_call("b", "")}]),
    chunk(tool_calls=[{"index": 1, "function": {"arguments": '{"a": 2}'}}]),
]


def test_a_chat_message_goes_back_with_the_fields_of_other_servers() -> None:
    whole = ChatCompletion.model_validate(completion(**CHAT))
    forms = (whole, whole.choices[0].message, whole.model_dump(), whole.to_json(), completion(**CHAT))
    assert [OPENAI.parse(form, [add]).message for form in forms] == [CHAT] * len(forms)


def test_a_chat_stream_gives_the_same_message() -> None:
    assert streamed(OPENAI, CHAT_CHUNKS).message == CHAT
    assert streamed(OPENAI, map(json.dumps, CHAT_CHUNKS)).message == CHAT
    assert streamed(OPENAI, map(ChatCompletionChunk.model_validate, CHAT_CHUNKS)).message == CHAT


def test_a_chat_message_is_one_of_the_sdk() -> None:
    body = completion(content=None, tool_calls=[tool_call("a", "{}")], refusal=None, annotations=[], audio={"id": "s"})
    found = OPENAI.parse(body, [add]).message
    assert found == {"role": "assistant", "content": None, "tool_calls": [tool_call("a", "{}")], "audio": {"id": "s"}}
    assert accepted(ChatCompletionAssistantMessageParam, found)


def test_a_call_without_an_id_or_arguments_goes_back_with_those_of_its_answer() -> None:
    body = {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": ""}}]}
    whole = OPENAI.parse(body, [add])
    pieces = [chunk(tool_calls=[{"index": 0, "function": {"name": "add", "arguments": ""}}])]
    for found in (whole, streamed(OPENAI, pieces)):
        (written,) = found.message["tool_calls"]
        (call,) = found.calls or found.refused_calls
        assert call.id.startswith("made_")
        assert written == tool_call(call.id, "{}")


def test_a_server_that_numbers_nothing_gets_its_calls_back() -> None:
    pieces = [
        chunk(tool_calls=[{"id": "a", "function": {"name": "add", "arguments": '{"a"'}}]),
        chunk(tool_calls=[{"function": {"arguments": ": 1}"}}]),
        chunk(tool_calls=[{"id": "b", "function": {"name": "add", "arguments": '{"a": 2}'}}]),
    ]
    assert streamed(OPENAI, pieces).message["tool_calls"] == [tool_call("a", '{"a": 1}'), tool_call("b", '{"a": 2}')]


# OpenAI responses

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0FBQUFB"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "add",
    "arguments": '{"a": 1}',
    "status": "completed",
}
ITEMS = [REASONING, SAID, CALL]


def response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    whole = {"id": "r", "object": "response", "created_at": 1.0, "model": "m", "status": status, "tools": []}
    return {**whole, "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto"}


def item_events(index: int, item: dict[str, Any], begun: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    place: dict[str, Any] = {"output_index": index, "sequence_number": 0}
    events: list[Any] = [{"type": "response.output_item.added", **place, "item": {**item, **begun}}]
    events += [{**place, "item_id": item["id"], **delta} for delta in deltas]
    return [*events, {"type": "response.output_item.done", **place, "item": item}]


RESPONSE_EVENTS = [
    {"type": "response.created", "sequence_number": 0, "response": response(status="in_progress")},
    *item_events(0, REASONING, {"encrypted_content": ""}),
    *item_events(
        1,
        SAID,
        {"status": "in_progress", "content": []},
        *(
            {"type": "response.output_text.delta", "content_index": 0, "delta": text, "logprobs": []}
            for text in ("Let me ", "see.")
        ),
    ),
    *item_events(
        2,
        CALL,
        {"status": "in_progress", "arguments": ""},
        *({"type": "response.function_call_arguments.delta", "delta": text} for text in ('{"a"', ": 1}")),
    ),
    {"type": "response.completed", "sequence_number": 0, "response": response(*ITEMS)},
]


def test_output_items_go_back_with_the_encrypted_reasoning() -> None:
    whole = Response.model_validate(response(*ITEMS))
    forms = (whole, whole.output, whole.to_json(), response(*ITEMS), ITEMS)
    assert [RESPONSES.parse(form, [add]).message for form in forms] == [ITEMS] * len(forms)
    assert all(accepted(ResponseInputItemParam, item) for item in ITEMS)


def test_a_stream_of_output_items_gives_the_same_items() -> None:
    assert streamed(RESPONSES, RESPONSE_EVENTS).message == ITEMS
    with provider() as server, openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        server.script = [RESPONSE_EVENTS]
        events = list(client.responses.create(model="m", input=[], stream=True))
    assert ResponseOutputItemDoneEvent in set(map(type, events))
    assert streamed(RESPONSES, events).message == ITEMS


def test_items_that_broke_off_go_back_as_far_as_the_provider_takes_them() -> None:
    begun = [event for event in RESPONSE_EVENTS if not event["type"].endswith((".done", ".completed"))]
    found = streamed(RESPONSES, begun)
    assert [item["type"] for item in found.message] == ["message", "function_call"]
    assert found.message[0]["content"] == SAID["content"]
    assert (found.message[1]["arguments"], found.message[1]["call_id"]) == ('{"a": 1}', "call_1")


# Gemini

SIGNED_CALL = {"functionCall": {"name": "add", "args": {"a": 1, "b": None}}, "thoughtSignature": "c2ln"}
PARTS = [{"text": "Hm, add.", "thought": True}, {"text": "Let me see."}, SIGNED_CALL, {"functionCall": {"name": "now"}}]


def contents(*parts: dict[str, Any], reason: str | None = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, **({"finishReason": reason} if reason else {})}
    return {"candidates": [candidate]}


CONTENT = types.Content.model_validate({"role": "model", "parts": PARTS})
GEMINI_CHUNKS = [
    contents({"text": "Hm, ", "thought": True}, reason=None),
    contents({"text": "add.", "thought": True}, {"text": "Let me "}, reason=None),
    contents({"text": "see."}, SIGNED_CALL, reason=None),
    contents({"functionCall": {"name": "now"}}, {"text": ""}),
]


def test_gemini_gets_its_parts_back_with_their_signatures() -> None:
    body = contents(*PARTS)
    whole = types.GenerateContentResponse.model_validate(body)
    assert GEMINI.parse(body, [add]).message == {"role": "model", "parts": PARTS}
    for form in (whole, whole.candidates[0].content, whole.model_dump(), whole.model_dump_json()):  # type: ignore[index]
        found = GEMINI.parse(form, [add]).message
        json.dumps(found)
        assert types.Content.model_validate(found) == CONTENT
    assert CONTENT.parts[2].thought_signature == b"sig"  # type: ignore[index]


def test_geminis_stream_gives_the_same_parts() -> None:
    assert streamed(GEMINI, GEMINI_CHUNKS).message == {"role": "model", "parts": PARTS}
    with provider() as server:
        server.script = [GEMINI_CHUNKS]
        client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url))
        chunks = list(client.models.generate_content_stream(model="m", contents="?"))
    found = streamed(GEMINI, chunks).message
    json.dumps(found)
    assert types.Content.model_validate(found) == CONTENT


def test_geminis_signature_on_an_empty_text_stays_a_part_of_its_own() -> None:
    signed = {"text": "", "thoughtSignature": "c2ln"}
    pieces = [contents({"text": "So"}, reason=None), contents(signed, reason=None), contents({"text": "."})]
    assert streamed(GEMINI, pieces).message["parts"] == [{"text": "So"}, signed, {"text": "."}]


# All


@pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC, GEMINI])
def test_a_reply_without_content_can_go_back(protocol: Any) -> None:
    for found in (protocol.parse(None), protocol.parse("")):
        assert NO_CONTENT in json.dumps(found.message)


@pytest.mark.parametrize("protocol", [OPENAI, RESPONSES, ANTHROPIC, GEMINI])
def test_a_text_given_to_a_native_protocol_becomes_its_message(protocol: Any) -> None:
    for text in ("Hello.", '{"choices": ['):
        assert json.dumps(text) in json.dumps(protocol.parse(text).message)


@pytest.mark.parametrize("name", ["attp", "xml", "json"])
@pytest.mark.parametrize("text", ["Hello.", "<tool_call>", "[tool_call]\r\n", "水 <tool_call>{}</tool_call>"])
def test_a_text_protocol_gives_the_text_as_the_model_wrote_it(name: str, text: str) -> None:
    protocol = get(name)
    for form in (text, text.encode()):
        stream = protocol.stream([add])
        for place in range(len(form)):
            stream.feed(form[place : place + 1])
        assert protocol.parse(form, [add]).message == text
        if isinstance(form, str) or name != "attp":
            assert stream.reply().message == text
    assert protocol.parse("\ud800").message == "\ufffd"  # A provider's JSON cannot hold a lone surrogate.


@pytest.mark.parametrize(
    ("size", "is_refused"), [(STREAM_LIMIT_CHARACTERS, True), (STREAM_LIMIT_CHARACTERS // 2, False)]
)
def test_a_stream_holds_encrypted_data_up_to_a_limit(size: int, is_refused: bool) -> None:
    events = block(0, {"type": "redacted_thinking", "data": "x" * size})
    found = streamed(ANTHROPIC, [*events, *block(1, USE), *CLAUDE_EVENTS[-2:]])
    assert found.is_refused is is_refused
    assert len(json.dumps(found.message)) < size + 1_000
    if is_refused:
        assert "The stream of the reply is longer than 16,777,216 characters." in found.problems[0].message
        assert found.is_complete


def _grown(pieces: int) -> None:
    found: dict[str, Any] = {}
    for _ in range(pieces):
        grow(found, "partial_json", "x" * 500)
    assert len(join_pieces(found)["partial_json"]) == 500 * pieces


def test_a_text_in_many_pieces_takes_time_in_proportion() -> None:
    assert growth(_grown, 2_000, 8_000) < LINEAR


def test_a_turn_that_is_resumed_still_has_the_message(tmp_path: Path) -> None:
    tool = ToolSpec.from_function(add, permission="confirm")
    store = f"sqlite:///{tmp_path}/runs.db"
    waiting = asyncio.run(Session([tool], protocol="anthropic", store=store).turn(streamed(ANTHROPIC, CLAUDE_EVENTS)))
    assert waiting.reply.message == CLAUDE
    assert waiting.suspended is not None
    decided = [{"request_id": waiting.suspended.pending[0].id, "verdict": "deny"}]
    done = asyncio.run(Session([tool], protocol="anthropic", store=store).resume(waiting.suspended.run_id, decided))
    assert (done.reply.message, done.messages[0]["content"][0]["tool_use_id"]) == (CLAUDE, "toolu_1")
