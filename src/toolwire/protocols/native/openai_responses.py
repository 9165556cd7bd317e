"""OpenAI's Responses API: tools, output items and function call outputs in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
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
from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

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
        if isinstance(body, list):
            items = cast("list[Any]", body)
        elif text_in(body, "type") in _ITEMS:
            items = [body]
        else:
            items = items_in(body, "output")
            if not items and text_in(body, "object") != "response":
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
    content = result.content
    if all(block["type"] == "text" for block in content):
        return result.text
    return [_part(block) for block in content]


def _part(block: ContentBlock) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    url = data_url(block) if block["type"] == "image" else None
    if url is None:
        return {"type": "input_text", "text": f"[{block['type']}]"}
    return {"type": "input_image", "image_url": url, "detail": "auto"}
