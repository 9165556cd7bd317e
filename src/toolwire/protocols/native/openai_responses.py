"""OpenAI's Responses API: tools, output items and function call outputs in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import Assembly, grow, next_id, present, whole
from toolwire.protocols.native.fields import field, inner, items_in, text_in
from toolwire.protocols.native.media import data_url
from toolwire.protocols.native.openai import STRICT, function_fields
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.stream import Gathering
from toolwire.protocols.native.written import (
    Written,
    WrittenCall,
    json_text,
    rendered_calls,
    result_id,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.streaming import StreamEvent
from toolwire.vocabulary.blocks import ShownBlock, shown
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.text import encodable

_ITEMS = frozenset({"message", "function_call", "reasoning"})
_CUT = {"max_output_tokens": "at the token limit", "content_filter": "at a content filter"}


@writes_encodable
class OpenAiResponses(NativeProtocol):
    """The protocol `openai-responses`. This API is strict by default, so `strict` is always written."""

    name = "openai-responses"
    reads = "response or list of output items"
    dialect = STRICT

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "strict": False, **function_fields(tool, head)}

    def take_apart(self, body: Any) -> Written | None:
        items = _items(body)
        if not items and not isinstance(body, list) and text_in(body, "object") != "response":
            return None
        if items and not any(text_in(item, "type") in _ITEMS and not _is_foreign(item) for item in items):
            return None
        written = Written(cut=_cut(body))
        for item in items:
            _add(written, item)
        return written

    def take(self, gathering: Gathering, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        kind, key = text_in(piece, "type"), field(piece, "output_index")
        match kind:
            case "response.output_text.delta":
                yield from gathering.text(text_in(piece, "delta"))
            case "response.refusal.delta":
                gathering.refusal(text_in(piece, "delta"))
            case "response.reasoning_summary_text.delta":
                gathering.thought(text_in(piece, "delta"))
            case "response.output_item.added":
                item = inner(piece, "item")
                if text_in(item, "type") == "function_call":
                    yield from gathering.call(key, name=text_in(item, "name"), id=text_in(item, "call_id"))
            case "response.function_call_arguments.delta":
                yield from gathering.arguments(key, text_in(piece, "delta"))
            case "response.output_item.done":
                item = inner(piece, "item")
                if text_in(item, "type") == "function_call":
                    yield from _end(gathering, key, item)
            case "response.completed" | "response.incomplete" | "response.failed":
                gathering.written.cut = _cut(inner(piece, "response")) or gathering.written.cut
                yield from gathering.end_others()
            case _:
                pass

    def assembly(self) -> Assembly:
        return _ItemAssembly()

    def message(self, body: Any, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Returns the output items for the request's `input`, with `encrypted_content` of the reasoning if it came."""
        ids = iter(calls)
        return [_item_back(item, ids) for item in _items(body)]

    def said(self, text: str) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": encodable(text)}] if text else []

    def render(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Returns the output items that make these calls. A request's `input` also accepts them."""
        return [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": json_text(call.arguments)}
            for call in rendered_calls(calls)
        ]

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns an input item for each result, in order. Its output is text, or a list of text and images."""
        return [
            {"type": "function_call_output", "call_id": result_id(result), "output": _output(result)}
            for result in results
        ]


def _items(body: Any) -> list[Any]:
    """Returns the output items of a response, of a list of items, or of one item."""
    if isinstance(body, list):
        return cast("list[Any]", body)
    return [body] if text_in(body, "type") in _ITEMS else items_in(body, "output")


def _item_back(item: Any, ids: Iterator[ToolCall]) -> dict[str, Any]:
    kept = present(item, "parsed_arguments")
    if text_in(item, "type") == "function_call":
        identity = next_id(ids)
        return {**kept, "call_id": text_in(item, "call_id") or identity}
    if text_in(item, "type") == "message":
        return {**kept, "content": [present(part, "parsed") for part in items_in(item, "content")]}
    return kept


class _ItemAssembly:
    """The output items of a streamed reply. The provider sends each whole at its end."""

    def __init__(self) -> None:
        self._items: dict[Hashable, dict[str, Any]] = {}
        self._ended: set[Hashable] = set()

    def add(self, piece: Mapping[str, Any]) -> None:
        kind, key = text_in(piece, "type"), field(piece, "output_index")
        match kind:
            case "response.output_item.added" | "response.output_item.done":
                self._items[key] = dict(inner(piece, "item"))
                self._ended |= {key} if kind.endswith("done") else set()
            case "response.function_call_arguments.delta":
                if key in self._items:
                    grow(self._items[key], "arguments", text_in(piece, "delta"))
            case "response.output_text.delta":
                self._said(piece, {"type": "output_text", "annotations": []}, "text")
            case "response.refusal.delta":
                self._said(piece, {"type": "refusal"}, "refusal")
            case _:
                pass

    def _said(self, piece: Mapping[str, Any], empty: dict[str, Any], name: str) -> None:
        """Adds text to a part of a message. The provider numbers the parts in order."""
        begun = {"type": "message", "role": "assistant"}
        item = self._items.setdefault(field(piece, "output_index"), begun)
        content: list[Any] = item.setdefault("content", [])
        if field(piece, "content_index") == len(content) or not content:
            item["content"] = content = [*content, empty]
        grow(content[-1], name, text_in(piece, "delta"))

    def body(self) -> list[Any]:
        # The API refuses reasoning without its end.
        return [
            whole(item)
            for key, item in self._items.items()
            if key in self._ended or text_in(item, "type") != "reasoning"
        ]


def _is_foreign(item: Any) -> bool:
    """True for another provider's message. It has the same type, but its content is not made of output items."""
    return text_in(item, "type") == "message" and any(
        text_in(part, "type") not in ("output_text", "refusal") for part in items_in(item, "content")
    )


def _cut(body: Any) -> str:
    if text_in(body, "status") not in ("incomplete", "failed", "cancelled"):
        return ""
    reason = text_in(inner(body, "incomplete_details"), "reason")
    return _CUT.get(reason, f"with the status {text_in(body, 'status')!r}")


def _add(written: Written, item: Any) -> None:
    match text_in(item, "type"):
        case "function_call":
            arguments = field(item, "arguments")
            arguments = "" if arguments is None else arguments
            written.calls.append(
                WrittenCall(name=text_in(item, "name"), id=text_in(item, "call_id"), arguments=arguments)
            )
            if text_in(item, "status") == "incomplete":
                written.cut = written.cut or "inside a call"
        case "message":
            written.text += "".join(text_in(part, "text") for part in items_in(item, "content"))
            refusal = "".join(text_in(part, "refusal") for part in items_in(item, "content"))
            written.failure = refusal or written.failure
        case "reasoning":
            written.thought += "".join(text_in(part, "text") for part in items_in(item, "summary"))
        case _:
            pass  # calls that the provider runs itself, and other items the host offered


def _end(gathering: Gathering, key: Any, item: Mapping[str, Any]) -> Iterator[StreamEvent]:
    yield from gathering.call(key, name=text_in(item, "name"), id=text_in(item, "call_id"))
    if not gathering.has_arguments(key):
        yield from gathering.arguments(key, text_in(item, "arguments"))
    if text_in(item, "status") == "incomplete":
        gathering.written.cut = gathering.written.cut or "inside a call"
    yield from gathering.end(key)


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    content = [shown(block) for block in result.content]
    if all(block["type"] == "text" for block in content):
        return result.text
    return [_part(block) for block in content]


def _part(block: ShownBlock) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    url = data_url(block) if block["type"] == "image" else None
    if url is None:
        return {"type": "input_text", "text": f"[{block['type']}]"}
    return {"type": "input_image", "image_url": url, "detail": "auto"}
