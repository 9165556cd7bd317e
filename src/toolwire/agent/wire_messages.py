"""The messages of a request, in the form of any protocol: their calls, their results and their size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolwire.protocols.native.openai import RETURNED_BY
from toolwire.protocols.outgoing import NOT_RUN, is_ending
from toolwire.session.dialogue import SAME_REPLY
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

LONG_CHARACTERS = 1_000
"""The length above which a result becomes a line."""

MEDIA_BYTES = 6_000
"""The size of an image or a sound that a message has inline. It costs a model about 1,500 tokens, however large."""

LEFT_OUT = "[Left out to shorten the conversation: "
"""The beginning of the line in place of a result."""

_TEXTS = frozenset({"text", "input_text", "output_text"})


def is_of_model(message: Mapping[str, Any]) -> bool:
    """True for a reply, and for an item of a reply."""
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return not str(message.get("type")).endswith("_output")


def calls_in(message: Mapping[str, Any]) -> list[str]:
    """Returns the ids of the calls in a message. Gemini's calls may have no id, so their names are in it."""
    found = [str(call.get("id")) for call in _dicts(message.get("tool_calls"))]
    if not found and isinstance(message.get("function_call"), dict):
        found = ["function_call"]
    if str(message.get("type")).endswith("_call") and "call_id" in message:
        found.append(str(message["call_id"]))
    found += [str(block.get("id")) for block in _blocks(message) if block.get("type") == "tool_use"]
    return found + [_gemini_id(call) for block in _blocks(message) if (call := _either(block, "function_call"))]


def results_in(message: Mapping[str, Any]) -> list[str]:
    """Returns the ids of the calls whose results are in a message, as `calls_in` gives them."""
    match message.get("role"):
        case "tool":
            return [str(message.get("tool_call_id"))]
        case "function":
            return ["function_call"]
        case None if str(message.get("type")).endswith("_call_output"):
            return [str(message.get("call_id"))]
        case _:
            blocks = _blocks(message)
    found = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    return found + [_gemini_id(result) for block in blocks if (result := _either(block, "function_response"))]


def is_of_toolwire(message: Mapping[str, Any]) -> bool:
    """True for a message of the user that toolwire wrote: images of results, a line, or a word about a reply."""
    content, blocks = message.get("content"), _blocks(message)
    text = content if isinstance(content, str) else next((str(block.get("text")) for block in blocks), "")
    is_line = text.startswith((LEFT_OUT, NOT_RUN, SAME_REPLY)) or is_ending(text)
    return is_line or (bool(blocks) and text.startswith(RETURNED_BY))


def elide_results(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the message of results with a line in place of each long text, and of each image and sound.

    Ids and the flags of errors stay. The line says how much is left out. A line is not elided again.
    """
    if "output" in message:
        return {**message, "output": _short(message["output"])}
    if "parts" in message:
        return {**message, "parts": [_elide_response(part) for part in message["parts"]]}
    content = message.get("content")
    if any(block.get("type") == "tool_result" for block in _blocks(message)):
        return {**message, "content": [_elide_block(block) for block in cast("list[Any]", content)]}
    short = _short(content)
    return {
        **message,
        "content": [{"type": "text", "text": short}] if short is not content and _blocks(message) else short,
    }


def reply_like(prompt: Sequence[Mapping[str, Any]], text: str) -> dict[str, Any]:
    """Returns a reply of text in the form of the API whose prompts these are."""
    if any("parts" in message for message in prompt):
        return {"role": "model", "parts": [{"text": text}]}
    return {"role": "assistant", "content": text}


def size_of(value: Any) -> int:
    """Returns the size of a JSON value in bytes. Media that are inline count as 6,000 bytes at most."""
    total, rest = 0, [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            size = len(utf8_bytes(item)) + 2
            total += min(size, MEDIA_BYTES) if item.startswith("data:") else size
        elif isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            total += 2
            if is_media := _is_inline(fields):
                total += min(len(fields["data"]), MEDIA_BYTES)
            rest += [*fields, *(inner for key, inner in fields.items() if key != "data" or not is_media)]
        elif isinstance(item, list | tuple):
            rest += cast("list[Any]", item)
        else:
            total += len(str(item))
    return total


def _is_inline(fields: Mapping[str, Any]) -> bool:
    kind = fields.get("media_type") or fields.get("mime_type") or fields.get("mimeType")
    is_media = fields.get("format") in ("wav", "mp3") if kind is None else "/" in str(kind)
    return is_media and isinstance(fields.get("data"), str)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in cast("list[Any]", value) if isinstance(item, dict)] if isinstance(value, list) else []


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _dicts(message.get("parts", message.get("content")))


def _either(block: Mapping[str, Any], name: str) -> Any:
    """Returns a field of Gemini's parts in the spelling of its SDK, or in that of its API."""
    first, second = name.split("_")
    return block.get(name) or block.get(f"{first}{second.capitalize()}")


def _gemini_id(call: Mapping[str, Any]) -> str:
    return " ".join(str(call[key]) for key in ("name", "id") if call.get(key))


def _elide_block(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "content": _short(block.get("content"))} if block.get("type") == "tool_result" else block


def _elide_response(part: dict[str, Any]) -> dict[str, Any]:
    for name in ("function_response", "functionResponse"):
        if isinstance(answer := part.get(name), dict):
            fields = cast("dict[str, Any]", answer)
            media = len(fields.get("parts") or ())
            response = {key: _short_value(value, media) for key, value in fields["response"].items()}
            kept = {key: value for key, value in fields.items() if key != "parts"}
            return {**part, name: {**kept, "response": response}}
    return part


def _short(content: Any) -> Any:
    """Returns the content of a result, a text or a list of blocks, or its shorter text."""
    if not isinstance(content, list):
        return _short_value(content, 0)
    blocks: Any = cast("Any", content)
    texts = [str(block.get("text")) for block in _dicts(blocks) if block.get("type") in _TEXTS]
    return _shorter("\n".join(texts), len(blocks) - len(texts)) or blocks


def _short_value(value: Any, media: int) -> Any:
    return _shorter(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), media) or value


def _shorter(text: str, media: int) -> str:
    """Returns a text and a line in place of media, or a line in place of both. Empty if the text is short, and all."""
    if len(text) > LONG_CHARACTERS:
        gone, text = [count_of(len(text), "character")], ""
    else:
        gone, text = [], f"{text}\n" if text else ""
    if media:
        gone.append(count_of(media, "image or sound", "images or sounds"))
    return f"{text}{LEFT_OUT}{', '.join(gone)}]" if gone else ""
