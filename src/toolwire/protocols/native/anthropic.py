"""Anthropic's Messages API: tools, content blocks and tool results in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, grow, next_id, object_of, present, whole
from toolwire.protocols.native.fields import field, inner, items_in, text_in
from toolwire.protocols.native.media import IMAGE_TYPES, inline, linked
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.provider_schema import properties_named, properties_restored
from toolwire.protocols.native.stream import Gathering
from toolwire.protocols.native.written import (
    Dialect,
    Written,
    WrittenCall,
    rendered_calls,
    result_id,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.streaming import StreamEvent
from toolwire.vocabulary.blocks import ShownBlock, shown
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

_NAMED = Dialect(schema=properties_named, restore=properties_restored)
_CUT = {"max_tokens": "at the token limit", "model_context_window_exceeded": "at the end of the context window"}
_BLOCKS = frozenset({"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use"})


@writes_encodable
class Anthropic(NativeProtocol):
    """The protocol `anthropic`. Schema references are kept, because this API resolves them."""

    name = "anthropic"
    reads = "message made of content blocks"

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        return {**head, "input_schema": properties_named(tool)}

    def take_apart(self, body: Any) -> Written | None:
        blocks = cast("list[Any]", body) if isinstance(body, list) else items_in(body, "content")
        is_message = not isinstance(body, list) and text_in(body, "type") == "message" and not items_in(body, "output")
        is_ours = all(text_in(block, "type") in _BLOCKS or _is_server_result(block) for block in blocks)
        is_assistant = isinstance(body, list) or text_in(body, "role") == "assistant"
        if not is_assistant or not is_ours or not (blocks or is_message) or items_in(body, "tool_calls"):
            return None
        reason = text_in(body, "stop_reason")
        written = Written(
            text="".join(text_in(block, "text") for block in blocks if text_in(block, "type") == "text"),
            thought="".join(text_in(block, "thinking") for block in blocks),
            calls=[_call(block) for block in blocks if text_in(block, "type") == "tool_use"],
            cut=_CUT.get(reason, ""),
        )
        if reason == "refusal":
            written.failure = _refusal(body) or written.text
        return written

    def take(self, gathering: Gathering, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        key = field(piece, "index")
        match text_in(piece, "type"):
            case "content_block_start":
                block = inner(piece, "content_block")
                if text_in(block, "type") == "tool_use":
                    yield from gathering.call(key, name=text_in(block, "name"), id=text_in(block, "id"))
                else:
                    yield from gathering.text(text_in(block, "text"))
            case "content_block_delta":
                delta = inner(piece, "delta")
                gathering.thought(text_in(delta, "thinking"))
                yield from gathering.text(text_in(delta, "text"))
                yield from gathering.arguments(key, text_in(delta, "partial_json"))
            case "content_block_stop":
                yield from _end(gathering, key)
            case "message_delta":
                delta = inner(piece, "delta")
                reason = text_in(delta, "stop_reason")
                gathering.written.cut = _CUT.get(reason, gathering.written.cut)
                if reason == "refusal":
                    gathering.written.failure = _refusal(delta)
            case _:
                pass  # pings, usage, and the SDK's `text` and `input_json` events, which repeat a delta

    def assembly(self) -> Assembly:
        return _BlockAssembly()

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message. Thinking and redacted thinking are unchanged, with their signatures."""
        ids = iter(calls)
        blocks = cast("list[Any]", body) if isinstance(body, list) else items_in(body, "content")
        content = [_block_back(block, ids) for block in blocks if not _is_empty_text(block)]
        return {"role": "assistant", "content": content or [{"type": "text", "text": NO_CONTENT}]}

    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message that makes these calls."""
        blocks = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in rendered_calls(calls)
        ]
        return {"role": "assistant", "content": blocks}

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns one user message with a tool result for each result, in order. Images are inside the tool results."""
        return [{"role": "user", "content": [_result(result) for result in results]}] if results else []


def _is_server_result(block: Any) -> bool:
    """True for the result of a tool that the provider ran itself."""
    kind = text_in(block, "type")
    return (kind.endswith("_tool_result") and kind != "tool_result") or kind == "container_upload"


def _refusal(body: Any) -> str:
    details = inner(body, "stop_details")
    return text_in(details, "explanation", "category")


def _call(block: Any) -> WrittenCall:
    return WrittenCall(name=text_in(block, "name"), id=text_in(block, "id"), arguments=field(block, "input"))


def _is_empty_text(block: Any) -> bool:
    # The API sends empty text blocks, and refuses them in a request.
    return text_in(block, "type") == "text" and not text_in(block, "text")


def _block_back(block: Any, ids: Iterator[ToolCall]) -> dict[str, Any]:
    kept = present(block, "parsed_output")
    if text_in(block, "type") != "tool_use":
        return kept
    identity = next_id(ids)
    return {**kept, "id": text_in(block, "id") or identity, "input": kept.get("input", {})}


class _BlockAssembly:
    """The assistant message of a streamed reply."""

    def __init__(self) -> None:
        self._blocks: dict[Hashable, dict[str, Any]] = {}
        self._ended: set[Hashable] = set()

    def add(self, piece: Mapping[str, Any]) -> None:
        key = field(piece, "index")
        match text_in(piece, "type"):
            case "content_block_start":
                self._blocks[key] = dict(inner(piece, "content_block"))
            case "content_block_delta":
                _add_delta(self._blocks.setdefault(key, {"type": "text"}), inner(piece, "delta"))
            case "content_block_stop":
                self._ended.add(key)
            case _:
                pass

    def body(self) -> dict[str, Any]:
        # Thinking without its end has no signature, and the API refuses it.
        found = [
            _with_input(whole(block))
            for key, block in self._blocks.items()
            if key in self._ended or text_in(block, "type") != "thinking"
        ]
        return {"role": "assistant", "content": found}


_INPUT_TEXT = "partial_json"
"""The field of a delta, and of a block that is still arriving, that holds the text of a call's arguments."""


def _add_delta(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    if text_in(delta, "type") == "citations_delta":
        block["citations"] = [*items_in(block, "citations"), delta["citation"]]
        return
    for name, value in delta.items():
        if name != "type" and isinstance(value, str):
            grow(block, name, value)


def _with_input(block: dict[str, Any]) -> dict[str, Any]:
    text = block.pop(_INPUT_TEXT, None)
    return block if text is None else {**block, "input": object_of(text)}


def _end(gathering: Gathering, key: Any) -> Iterator[StreamEvent]:
    if gathering.has(key) and not gathering.has_arguments(key):
        # The provider sends no JSON at all for a tool without parameters.
        yield from gathering.call(key, arguments={})
    yield from gathering.end(key)


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result_id(result), "content": _content(result)}
    return block if result.success else {**block, "is_error": True}


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    content = [shown(block) for block in result.content]
    if all(block["type"] == "text" for block in content):
        return result.text
    # The API refuses an empty text block.
    return [_part(block) for block in content if block["type"] != "text" or block["text"]]


def _part(block: ShownBlock) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        found, url = inline(block), linked(block)
        if found is not None and found.media_type in IMAGE_TYPES:
            source = {"type": "base64", "media_type": found.media_type, "data": found.data}
            return {"type": "image", "source": source}
        if url is not None:
            return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "text", "text": f"[{block['type']}]"}
