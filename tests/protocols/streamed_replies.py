"""Whole replies of the four providers' APIs, made at random, and the streams in which each may arrive.

A seed stands for one reply and one stream of it. The streams have the forms that the providers, their compatible
servers and the SDKs' helpers send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from toolwire import ConfigurationError, Reply
from toolwire.protocols import get


def weather(city: str, days: int = 1) -> None:
    """Looks up the weather."""


def weather_map(city: str, layers: list[str] | None = None) -> None:
    """Draws a map of the weather."""


def now() -> None:
    """Tells the time."""


def note(**values: Any) -> None:
    """Notes values."""


TOOLS = [weather, weather_map, now, note]
WORDS = ["", "Oslo", "é水 😀", '"quoted"', "a{b}[c]", "\\", "line\nbreak", "}", "null", "x" * 40]


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A reply, whole and in pieces."""

    provider: str
    whole: Any
    pieces: list[Any]
    is_plain: bool
    """True if every reader must read the stream. Other streams may be refused."""


def streamed_reply(provider: str, seed: int) -> Streamed:
    """Returns the reply and the stream of this seed."""
    random = Random(f"{provider} {seed}")
    return _MAKERS[provider](random)


def difference(case: Streamed) -> str:
    """Returns how the stream is read differently from the whole reply. Empty if both are the same, or it is refused."""
    protocol = get(case.provider)
    stream = protocol.stream(TOOLS)
    for piece in case.pieces:
        stream.feed(piece)
    whole, found = protocol.parse(case.whole, TOOLS), stream.reply()
    if whole.is_refused:
        is_same = (found.problems, found.calls) == (whole.problems, ()) and "all thinking" in str(whole.problems)
        return "" if is_same else f"the whole reply is refused: {whole.problems}, the stream: {found}"
    if found.is_refused:
        said = "; ".join(problem.message for problem in found.problems)
        return f"a plain stream is refused: {said}" if case.is_plain or not said else ""
    if not stream.is_complete:
        return "the stream is not complete"
    return next((name for name in ("calls", "text", "ended", "message") if _of(found, name) != _of(whole, name)), "")


def broken_difference(case: Streamed, count: int) -> str:
    """Returns what is wrong with the reply of a stream that breaks off after `count` pieces. Empty if nothing is."""
    protocol = get(case.provider)
    stream = protocol.stream(TOOLS)
    for piece in case.pieces[:count]:
        stream.feed(piece)
    try:
        found = stream.reply()
    except ConfigurationError:
        return ""  # the first pieces of some streams belong to every reply
    if stream.is_complete:
        # What follows the end is news of usage.
        return difference(
            Streamed(provider=case.provider, whole=case.whole, pieces=case.pieces[:count], is_plain=False)
        )
    return "" if found.is_refused and not found.calls else f"a broken stream is read: {found}"


def _of(reply: Reply, name: str) -> Any:
    if name == "calls":
        return [(call.name, dict(call.arguments), call.id) for call in reply.calls]
    return getattr(reply, name)


# Parts of all replies


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter[Any](kind)


def _value(random: Random, depth: int = 2) -> Any:
    kind = random.randrange(8 if depth else 5)
    if kind < 2:
        return random.choice(WORDS)
    if kind < 5:
        return random.choice([0, -7, 1 << 60, 1.5, True, False, None])
    if kind == 5:
        return [_value(random, depth - 1) for _ in range(random.randrange(3))]
    return {random.choice(["a", "b", "é", "x.y"]): _value(random, depth - 1) for _ in range(random.randrange(3))}


def _call(random: Random) -> tuple[str, dict[str, Any]]:
    name = random.choice(["weather", "weather_map", "now", "note"])
    if name == "now":
        return name, {}
    if name == "note":
        return name, {f"k{place}": _value(random) for place in range(random.randrange(4))}
    more = {"days": random.randrange(9)} if name == "weather" else {"layers": random.choice([None, [], ["rain"]])}
    return name, {"city": random.choice(WORDS), **(more if random.random() < 0.5 else {})}


def _calls(random: Random) -> list[tuple[str, dict[str, Any]]]:
    return [_call(random) for _ in range(random.choice([0, 1, 1, 2, 2, 3, 5]))]


def _pieces(random: Random, text: str) -> list[str]:
    """Returns the text in pieces, some of which may be empty."""
    count = random.choice([0, 0, 1, 2, 5])
    places = sorted(random.randrange(len(text) + 1) for _ in range(count))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def _merged(random: Random, sequences: list[list[Any]], *, share: float, in_any_order: bool) -> list[Any]:
    """Returns the sequences one after the other, or with this probability mixed, with the order of each kept.

    Without `in_any_order` they begin in their order, because nothing else tells it.
    """
    if random.random() >= share:
        return [item for sequence in sequences for item in sequence]
    rest = [list(sequence) for sequence in sequences if sequence]
    begun = len(rest) if in_any_order else 1
    found: list[Any] = []
    while rest:
        place = random.randrange(min(begun, len(rest)))
        found.append(rest[place].pop(0))
        begun += place == begun - 1
        if not rest[place]:
            del rest[place]
            begun -= 1
        begun = max(begun, 1)
    return found


def _in_form(random: Random, pieces: list[Any], validate: Callable[[Any], Any] | None) -> list[Any]:
    """Returns the pieces as mappings, as JSON, or as the SDK's objects, which `validate` makes."""
    form = random.choice(["mapping", "json", "object"])
    if form == "json":
        return [json.dumps(piece, ensure_ascii=random.random() < 0.5) for piece in pieces]
    return [validate(piece) for piece in pieces] if form == "object" and validate else pieces


# Chat


def _chat(random: Random) -> Streamed:
    calls = _calls(random)
    text, thought = random.choice([None, *WORDS]), random.choice([None, "Hm. ", "é水"])
    has_ids = random.random() < 0.8
    written = [
        {
            **({"id": f"call_{place}"} if has_ids else {}),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"reasoning_content": thought} if thought else {})}
    message |= {"tool_calls": written} if written else {}
    reason = "tool_calls" if written else "stop"
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    # A server numbers its calls, gives all one number, or none.
    numbering = random.choice(["each", "each", "each", "one", "none"])
    has_all_ids = has_ids and random.random() < 0.3
    naming = random.choice(["whole", "whole", "pieces", "again"])
    giving = random.choice(["pieces", "pieces", "start", "object"])
    can_mix = numbering == "each" or has_all_ids
    sequences = [
        list(_chat_call(random, item, place, numbering, naming, giving, has_all_ids=has_all_ids))
        for place, item in enumerate(written)
    ]
    mixed = _merged(random, sequences, share=0.4 if can_mix else 0, in_any_order=numbering == "each")
    pieces: list[Any] = [_chunk(role="assistant", content="")]
    pieces += [_chunk(reasoning_content=piece) for piece in _pieces(random, thought or "") if thought]
    pieces += [_chunk(content=piece) for piece in _pieces(random, text or "")]
    while mixed:
        count = random.choice([1, 1, 1, 2])
        pieces.append(_chunk(tool_calls=mixed[:count]))
        mixed = mixed[count:]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    pieces += (
        [{"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}}]
        if random.random() < 0.5
        else []
    )
    is_plain = (numbering == "each" or has_ids) and naming != "again" and giving != "object"
    is_of_sdk = giving != "object" and has_ids and numbering == "each"
    pieces = _in_form(random, pieces, _chunk_object if is_of_sdk else None)
    if not isinstance(pieces[0], str) and random.random() < 0.2:
        pieces = [{"type": "chunk", "chunk": piece, "snapshot": {}} for piece in pieces]
    return Streamed(provider="openai", whole=whole, pieces=pieces, is_plain=is_plain)


def _chat_call(
    random: Random, item: dict[str, Any], place: int, numbering: str, naming: str, giving: str, *, has_all_ids: bool
) -> Iterator[dict[str, Any]]:
    """Yields the pieces of one call."""
    index = {"index": place if numbering == "each" else 0} if numbering != "none" else {}
    identity = {"id": item["id"], "type": "function"} if "id" in item else {}
    later = identity if has_all_ids else {}
    name, text = item["function"]["name"], item["function"]["arguments"]
    cut = random.randrange(1, len(name))
    if naming == "pieces":
        yield {**index, **identity, "function": {"name": name[:cut], "arguments": ""}}
        first = {"name": name[cut:]}
    else:
        yield from [{**index, **identity, "function": {"name": name, "arguments": ""}}] if giving == "pieces" else []
        first = {"name": name} if giving != "pieces" or naming == "again" else {}
    head = identity if naming != "pieces" and giving != "pieces" else later
    if giving == "object":
        yield {**index, **head, "function": {**first, "arguments": json.loads(text)}}
        return
    for number, piece in enumerate([text] if giving == "start" else _pieces(random, text)):
        again = first if number == 0 or (naming == "again" and later) else {}
        yield {**index, **(head if number == 0 else later), "function": {**again, "arguments": piece}}


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _chunk_object(piece: dict[str, Any]) -> ChatCompletionChunk:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return ChatCompletionChunk.model_validate({**head, **piece})


# Responses


def _responses(random: Random) -> Streamed:
    items: list[dict[str, Any]] = []
    if random.random() < 0.4:
        summary = [{"type": "summary_text", "text": text} for text in random.choice([[], ["Hm."], ["Hm.", "é"]])]
        items.append({"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": "Z0FB"})
    if random.random() < 0.6:
        texts = [random.choice(WORDS) for _ in range(random.choice([1, 1, 2]))]
        content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    for place, (name, arguments) in enumerate(_calls(random) or [("now", {})]):
        text = json.dumps(arguments, ensure_ascii=False)
        head = {"type": "function_call", "id": f"fc_{place}", "call_id": f"call_{place}", "status": "completed"}
        items.append({**head, "name": name, "arguments": text})
    whole = {"id": "r", "object": "response", "created_at": 1.0, "model": "m", "status": "completed", "tools": []}
    whole |= {"output": items, "parallel_tool_calls": True, "tool_choice": "auto"}
    has_one_index = random.random() < 0.2
    has_end = random.choice(["items", "response", "both", "both"])
    sequences = [
        list(_item_events(random, item, 0 if has_one_index else place, has_end=has_end != "response"))
        for place, item in enumerate(items)
    ]
    mixed = _merged(random, sequences, share=0.3, in_any_order=not has_one_index)
    begun = {**whole, "output": [], "status": "in_progress"}
    last = {**whole, "output": []} if has_end == "items" else whole
    pieces = [
        {"type": "response.created", "response": begun},
        *mixed,
        {"type": "response.completed", "response": last},
    ]
    pieces = [{"sequence_number": place, **piece} for place, piece in enumerate(pieces)]
    pieces = _in_form(random, pieces, _adapter(ResponseStreamEvent).validate_python)
    # With one index for all items, their order is known at the response's end alone.
    is_plain = not has_one_index or has_end != "items"
    return Streamed(provider="openai-responses", whole=whole, pieces=pieces, is_plain=is_plain)


def _item_events(random: Random, item: dict[str, Any], index: int, *, has_end: bool) -> Iterator[dict[str, Any]]:
    place = {"output_index": index, "item_id": item["id"]}
    empty = {"reasoning": "encrypted_content", "message": "content", "function_call": "arguments"}[item["type"]]
    begun = {**item, empty: [] if empty == "content" else ""}
    is_at_start = item["type"] == "function_call" and random.random() < 0.2
    begun |= {"summary": []} if "summary" in item else {"status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": item if is_at_start else begun}
    if item["type"] == "function_call":
        kind, text = "response.function_call_arguments", item["arguments"]
        pieces = [] if is_at_start or random.random() < 0.3 else _pieces(random, text)
        yield from ({**place, "type": f"{kind}.delta", "delta": piece} for piece in pieces)
        if not (pieces or is_at_start) or random.random() < 0.7:
            yield {**place, "type": f"{kind}.done", "name": item["name"], "arguments": text}
    for number, part in enumerate(item.get("content", item.get("summary", []))):
        is_message = item["type"] == "message"
        kind = "response.output_text" if is_message else "response.reasoning_summary_text"
        where = {**place, "content_index" if is_message else "summary_index": number}
        more = {"logprobs": []} if is_message else {}
        for piece in _pieces(random, part["text"]) if random.random() < 0.8 else []:
            yield {**where, **more, "type": f"{kind}.delta", "delta": piece}
        yield {**where, **more, "type": f"{kind}.done", "text": part["text"]}
    if has_end:
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


# Anthropic


def _anthropic(random: Random) -> Streamed:
    blocks: list[dict[str, Any]] = []
    if random.random() < 0.4:
        blocks.append({"type": "thinking", "thinking": random.choice(["Hm.", "é水"]), "signature": "c2ln"})
    if random.random() < 0.2:
        blocks.append({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "é"}})
    if random.random() < 0.7:
        blocks.append({"type": "text", "text": random.choice(WORDS)})
    for place, (name, arguments) in enumerate(_calls(random)):
        blocks.append({"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": arguments})
    reason = "tool_use" if blocks and blocks[-1]["type"] == "tool_use" else "end_turn"
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    whole |= {"stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    has_one_index = random.random() < 0.2
    sequences = [
        list(_block_events(random, block, 0 if has_one_index else place)) for place, block in enumerate(blocks)
    ]
    mixed = _merged(random, sequences, share=0 if has_one_index else 0.2, in_any_order=True)
    pieces = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}, *mixed]
    delta = {"stop_reason": reason, "stop_sequence": None}
    pieces += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]
    if random.random() < 0.2:
        pieces.insert(random.randrange(len(pieces)), {"type": "text", "text": "again", "snapshot": "again"})
    else:
        pieces = _in_form(random, pieces, _adapter(RawMessageStreamEvent).validate_python)
    return Streamed(provider="anthropic", whole=whole, pieces=pieces, is_plain=True)


def _block_events(random: Random, block: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    name, delta, key = {
        "text": ("text", "text_delta", "text"),
        "thinking": ("thinking", "thinking_delta", "thinking"),
    }.get(kind, ("input", "input_json_delta", "partial_json"))
    is_at_start = random.random() < 0.2
    begun = block if is_at_start else {**block, name: {} if name == "input" else ""}
    begun |= {"signature": ""} if kind == "thinking" else {}
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    value = json.dumps(block[name], ensure_ascii=False) if name == "input" else block[name]
    pieces = [] if is_at_start else _pieces(random, value)
    if value == "{}" and random.random() < 0.5:
        pieces = random.choice([[], [""]])
    place = {"type": "content_block_delta", "index": index}
    yield from ({**place, "delta": {"type": delta, key: piece}} for piece in pieces)
    if kind == "thinking":
        yield {**place, "delta": {"type": "signature_delta", "signature": block["signature"]}}
    yield {"type": "content_block_stop", "index": index}


# Gemini


def _gemini(random: Random) -> Streamed:
    parts: list[dict[str, Any]] = []
    if random.random() < 0.4:
        parts.append({"text": random.choice(["Hm.", "é水"]), "thought": True})
    if random.random() < 0.7:
        parts.append({"text": random.choice([word for word in WORDS if word] if not parts else WORDS)})
    for place, (name, arguments) in enumerate(_calls(random)):
        more = {"thoughtSignature": "c2ln"} if random.random() < 0.3 else {}
        identity = {"id": f"f{place}"} if random.random() < 0.5 else {}
        given = {"args": arguments} if arguments or random.random() < 0.5 else {}
        parts.append({"functionCall": {**identity, "name": name, **given}, **more})
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    split: list[dict[str, Any]] = []
    for part in parts:
        split += [{**part, "text": piece} for piece in _pieces(random, part["text"])] if "text" in part else [part]
    pieces: list[Any] = []
    while split:
        count = random.choice([1, 1, 2])
        pieces.append({"candidates": [{"content": {"role": "model", "parts": split[:count]}}]})
        split = split[count:]
    if pieces and random.random() < 0.5:
        pieces[-1]["candidates"][0]["finishReason"] = "STOP"
    else:
        pieces.append({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]})
    pieces += [{"usageMetadata": {"totalTokenCount": 9}}] if random.random() < 0.5 else []
    # The SDK's objects have other names of fields than its JSON, so that the message would have them too.
    return Streamed(provider="gemini", whole=whole, pieces=_in_form(random, pieces, None), is_plain=True)


_MAKERS: dict[str, Callable[[Random], Streamed]] = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
