"""The streams by which providers reply, and what they refuse in the requests that follow."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from toolwire.protocols import get
from toolwire.vocabulary.calls import ToolCall

Call = tuple[str, dict[str, Any]]

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
USAGE = {"input_tokens": 40, "output_tokens": 4}


class Voice:
    """A provider's way to reply. It gives each call an id and each thought a signature, and wants them back.

    `rule` is for `Provider.rule`.
    """

    def __init__(self, api: str, protocol: str) -> None:
        self.api, self.protocol = api, protocol
        self._numbers = count(1)
        self._signed = dict[str, tuple[str, str]]()
        """The signature and the thought that belong to a call, by the call's id."""

    def reply(self, text: str = "", *calls: Call, thought: str = "") -> list[Any]:
        """The events of one reply."""
        if self.protocol != self.api and calls:
            text += str(get(self.protocol).render([ToolCall(name, given) for name, given in calls]))
            calls = ()
        named = [(f"call_{next(self._numbers)}", *call) for call in calls]
        signature = base64.b64encode(f"signature {next(self._numbers)}".encode()).decode() if thought else ""
        if thought:
            # Gemini signs the first call of a reply, and the others think before all of them.
            signed = named[:1] if self.api == "gemini" else named
            self._signed |= {call[0]: (signature, thought) for call in signed}
        return _STREAMS[self.api](text, named, thought, signature)

    def rule(self, body: dict[str, Any]) -> None:
        """Refuses unknown roles, empty messages, and signatures that are altered or missing."""
        _RULES[self.api](body, self._signed)


def _halves(text: str) -> Iterable[str]:
    middle = len(text) // 2
    return (piece for piece in (text[:middle], text[middle:]) if piece)


Named = Sequence[tuple[str, str, dict[str, Any]]]


def _chat(text: str, calls: Named, thought: str, signature: str) -> list[Any]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if calls and not text else ""}]
    deltas += [{"reasoning_content": piece} for piece in _halves(thought)]
    deltas += [{"content": piece} for piece in _halves(text)]
    for at, (call_id, name, given) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": at, "id": call_id, "type": "function", "function": function}]})
        pieces = _halves(json.dumps(given))
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": piece}}]} for piece in pieces]
    choices: list[Any] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    used = {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44}
    return [*({**HEAD, "choices": [choice]} for choice in choices), {**HEAD, "choices": [], "usage": used}]


def _messages(text: str, calls: Named, thought: str, signature: str) -> list[Any]:
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thought:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _halves(thought)]
        sign = {"type": "signature_delta", "signature": signature}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*deltas, sign]))
    if text:
        pieces = [{"type": "text_delta", "text": piece} for piece in _halves(text)]
        blocks.append(({"type": "text", "text": ""}, pieces))
    for call_id, name, given in calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _halves(json.dumps(given))]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas))
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": USAGE}
    events: list[Any] = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    for at, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": start})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": delta, "usage": USAGE}, {"type": "message_stop"}]


def _responses(text: str, calls: Named, thought: str, signature: str) -> list[Any]:
    items: list[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = []
    if thought:
        start = {"type": "reasoning", "id": f"rs_{signature[-6:]}", "summary": []}
        summary = [{"type": "summary_text", "text": thought}]
        items.append((start, {**start, "summary": summary, "encrypted_content": signature}, []))
    if text:
        start = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        part = {"type": "output_text", "annotations": [], "text": text}
        delta = {"type": "response.output_text.delta", "content_index": 0, "logprobs": [], "item_id": "msg_1"}
        deltas = [{**delta, "delta": piece} for piece in _halves(text)]
        items.append(({**start, "content": [], "status": "in_progress"}, {**start, "content": [part]}, deltas))
    for call_id, name, given in calls:
        whole = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
        whole |= {"status": "completed", "arguments": json.dumps(given)}
        delta = {"type": "response.function_call_arguments.delta", "item_id": whole["id"]}
        deltas = [{**delta, "delta": piece} for piece in _halves(json.dumps(given))]
        items.append(({**whole, "arguments": "", "status": "in_progress"}, whole, deltas))
    response = {"id": "r", "object": "response", "created_at": 1.0, "model": "m", "status": "completed", "tools": []}
    response |= {"output": [whole for _, whole, _ in items], "parallel_tool_calls": True, "tool_choice": "auto"}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    used = {**USAGE, "total_tokens": 44, **details}
    events: list[Any] = [{"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}}]
    for at, (start, whole, deltas) in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": at, "item": start})
        events += [{"output_index": at, **delta} for delta in deltas]
        events.append({"type": "response.output_item.done", "output_index": at, "item": whole})
    events.append({"type": "response.completed", "response": {**response, "usage": used}})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _gemini(text: str, calls: Named, thought: str, signature: str) -> list[Any]:
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in _halves(thought)]
    parts += [{"text": piece} for piece in _halves(text)]
    for at, (call_id, name, given) in enumerate(calls):
        signed = {"thoughtSignature": signature} if signature and not at else {}
        parts.append({"functionCall": {"name": name, "args": given, "id": call_id}, **signed})
    chunks: list[Any] = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    used = {"promptTokenCount": 40, "candidatesTokenCount": 4}
    end = {"content": {"role": "model", "parts": []}, "finishReason": "STOP"}
    return [*chunks, {"candidates": [end], "usageMetadata": used}]


def _chat_rule(body: dict[str, Any], signed: dict[str, tuple[str, str]]) -> None:
    for message in body["messages"]:
        role = message["role"]
        assert role in ("system", "user", "assistant", "tool"), f"unknown role {role!r}"
        assert message.get("content") or message.get("tool_calls") or role == "tool", "a message is empty"


def _messages_rule(body: dict[str, Any], signed: dict[str, tuple[str, str]]) -> None:
    given = {signature for signature, _ in signed.values()}
    for message in body["messages"]:
        assert message["role"] in ("user", "assistant"), f"unknown role {message['role']!r}"
        assert message["content"], "all messages must have non-empty content"
        blocks = message["content"] if isinstance(message["content"], list) else []
        thoughts = {(one["signature"], one["thinking"]) for one in blocks if one["type"] == "thinking"}
        assert {signature for signature, _ in thoughts} <= given, "invalid signature in thinking block"
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip(), "text content blocks must be non-empty"
            if block["type"] == "tool_use" and block["id"] in signed:
                assert blocks[0]["type"] == "thinking", "an assistant message must start with a thinking block"
                assert signed[block["id"]] in thoughts, "thinking blocks cannot be modified"


def _responses_rule(body: dict[str, Any], signed: dict[str, tuple[str, str]]) -> None:
    thoughts = set[tuple[str, str]]()
    for item in body["input"]:
        if "role" in item:
            assert item["role"] in ("user", "assistant", "system", "developer"), f"unknown role {item['role']!r}"
            assert item["content"], "a message is empty"
        if item.get("type") == "reasoning":
            thoughts.add((item["encrypted_content"], item["summary"][0]["text"]))
        if item.get("type") == "function_call" and item["call_id"] in signed:
            assert signed[item["call_id"]] in thoughts, "function_call was provided without its reasoning item"


def _gemini_rule(body: dict[str, Any], signed: dict[str, tuple[str, str]]) -> None:
    for content in body["contents"]:
        assert content["role"] in ("user", "model"), f"unknown role {content['role']!r}"
        assert content["parts"], "a content has no parts"
        for part in content["parts"]:
            assert set(part) - {"thought", "thoughtSignature"}, "a part has no data"
            assert part.get("text") != "" or "thoughtSignature" in part, "a part has an empty text"
            call = part.get("functionCall", {})
            if call.get("id") in signed:
                # The SDK writes bytes in the alphabet for URLs.
                found = part.get("thoughtSignature", "").replace("-", "+").replace("_", "/")
                assert found == signed[call["id"]][0], "a function call has no thought_signature, or another one"


_STREAMS: dict[str, Callable[[str, Named, str, str], list[Any]]] = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
}
_RULES = {
    "openai": _chat_rule,
    "openai-responses": _responses_rule,
    "anthropic": _messages_rule,
    "gemini": _gemini_rule,
}
