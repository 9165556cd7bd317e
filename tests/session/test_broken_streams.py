"""A loop over the SDKs' own streams, each broken at every event: it goes on, and never ends with a wrong answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.protocols.providers import Provider, provider
from toolwire import ConfigurationError, Session

PAID: list[int] = []
ANSWER = "Paid 5, and not 50."


def pay(amount: int) -> str:
    """Pays."""
    PAID.append(amount)
    return f"paid {amount}"


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def chat_stream(*deltas: dict[str, Any], reason: str) -> list[Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    return [{**head, "choices": [choice]} for choice in choices]


def message_stream(start: dict[str, Any], *deltas: dict[str, Any], reason: str) -> list[Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def response_stream(item: dict[str, Any], begun: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    whole = {"id": "r", "object": "response", "created_at": 1.0, "model": "m", "status": "completed", "tools": []}
    whole |= {"output": [item], "parallel_tool_calls": True, "tool_choice": "auto"}
    events = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *({"output_index": 0, "item_id": item["id"], **delta} for delta in deltas),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay", "status": "completed"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
TEXT_PART = {"type": "output_text", "annotations": []}
ARGUMENTS_DELTA = {"type": "response.function_call_arguments.delta"}
TEXT_DELTA = {"type": "response.output_text.delta", "content_index": 0, "logprobs": []}


def gemini_stream(*parts: dict[str, Any]) -> list[Any]:
    contents = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    return [*contents, {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}]


def ask_chat(server: Provider, session: Session, messages: list[Any]) -> Iterable[Any]:
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        create: Any = client.chat.completions.create
        yield from create(model="m", messages=messages, tools=session.request_tools, stream=True)


def ask_responses(server: Provider, session: Session, messages: list[Any]) -> Iterable[Any]:
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        create: Any = client.responses.create
        yield from create(model="m", input=messages, tools=session.request_tools, stream=True)


def ask_anthropic(server: Provider, session: Session, messages: list[Any]) -> Iterable[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        create: Any = client.messages.create
        yield from create(model="m", max_tokens=9, messages=messages, tools=session.request_tools, stream=True)


def ask_gemini(server: Provider, session: Session, messages: list[Any]) -> Iterable[Any]:
    with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url)) as client:
        config = types.GenerateContentConfig(tools=session.request_tools)
        yield from client.models.generate_content_stream(model="m", contents=messages, config=config)


USE = {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {}}
CALL_START = {"index": 0, "id": "a", "type": "function", "function": {"name": "pay", "arguments": ""}}
PROVIDERS: dict[str, tuple[Callable[..., Iterable[Any]], list[Any], list[Any], Any]] = {
    "openai": (
        ask_chat,
        chat_stream(
            {"role": "assistant", "content": None, "tool_calls": [CALL_START]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"amount": 5'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": "0}"}}]},
            reason="tool_calls",
        ),
        chat_stream({"content": "Paid 5, "}, {"content": "and not 50."}, reason="stop"),
        {"role": "user", "content": "Pay."},
    ),
    "openai-responses": (
        ask_responses,
        response_stream(
            {**ITEM, "arguments": '{"amount": 50}'},
            {**ITEM, "arguments": "", "status": "in_progress"},
            {**ARGUMENTS_DELTA, "delta": '{"amount": 5'},
            {**ARGUMENTS_DELTA, "delta": "0}"},
        ),
        response_stream(
            {**SAID, "content": [{**TEXT_PART, "text": ANSWER}]},
            {**SAID, "content": [], "status": "in_progress"},
            {**TEXT_DELTA, "delta": "Paid 5, "},
            {**TEXT_DELTA, "delta": "and not 50."},
        ),
        {"role": "user", "content": "Pay."},
    ),
    "anthropic": (
        ask_anthropic,
        message_stream(
            USE,
            {"type": "input_json_delta", "partial_json": '{"amount": 5'},
            {"type": "input_json_delta", "partial_json": "0}"},
            reason="tool_use",
        ),
        message_stream(
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "Paid 5, "},
            {"type": "text_delta", "text": "and not 50."},
            reason="end_turn",
        ),
        {"role": "user", "content": "Pay."},
    ),
    "gemini": (
        ask_gemini,
        gemini_stream({"functionCall": {"name": "pay", "args": {"amount": 50}}}),
        gemini_stream({"text": "Paid 5, "}, {"text": "and not 50."}),
        {"role": "user", "parts": [{"text": "Pay."}]},
    ),
}


def follow(server: Provider, name: str, script: list[list[Any]]) -> str | None:
    """Returns the answer of the loop of the README over streams. None if the host reads of a broken stream."""
    ask, *_, first = PROVIDERS[name]
    server.script = list(script)
    session, messages = Session([pay], protocol=name), [first]
    while True:
        stream = session.stream()
        for piece in ask(server, session, messages):
            stream.feed(piece)
        try:
            turn = session.run_turn(stream.reply())
        except ConfigurationError:
            return None
        if turn.is_final:
            return turn.answer
        said = turn.reply.message
        messages += [*(said if isinstance(said, list) else [said]), *turn.messages]


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("broken", ["calls", "text"])
def test_a_loop_whose_streams_break_never_ends_with_a_wrong_answer(server: Provider, name: str, broken: str) -> None:
    _, calls, text, _ = PROVIDERS[name]
    for count in range(len(calls if broken == "calls" else text)):
        PAID.clear()
        cut = (calls if broken == "calls" else text)[:count]
        answer = follow(server, name, [cut, calls, text])
        # Without a piece of the reply the host reads of it; else the model is told, and the loop goes on.
        assert (answer, PAID) in ((ANSWER, [50]), (None, [])), f"{count} events"
        assert answer is not None or count < 2


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_second_broken_stream_in_a_row_ends_the_loop(server: Provider, name: str) -> None:
    PAID.clear()
    _, calls, text, _ = PROVIDERS[name]
    assert follow(server, name, [calls[:-1], calls[:-1], calls, text]) is None
    assert PAID == []
