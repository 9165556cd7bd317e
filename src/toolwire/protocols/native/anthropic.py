"""Anthropic's Messages API: tools, content blocks and tool results in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, as_object, next_call, present
from toolwire.protocols.native.declared_schema import add_to_description
from toolwire.protocols.native.endings import find_ending
from toolwire.protocols.native.fields import describe_error, field_in, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.media import inline, media_url
from toolwire.protocols.native.offered_names import with_offered_names
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.provider_schema import plain_properties_named
from toolwire.protocols.native.streams.block_events import BlockAssembly, call_in
from toolwire.protocols.native.unread_parts import unread_part, unreadable, wrong_text
from toolwire.protocols.native.written import (
    NO_CALLS,
    WrittenReply,
    calls_for_provider,
    history_name,
    result_id,
    without_stray,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.vocabulary.blocks import ShownBlock, block_for_model
from toolwire.vocabulary.calls import Problem, ToolCall
from toolwire.vocabulary.results import ToolResult

_AT_LIMIT = frozenset({"max_tokens", "model_context_window_exceeded"})
_BLOCKS = frozenset({"text", "tool_use", "thinking", "redacted_thinking"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_FOREIGN = frozenset({"output_text", "refusal", "tool_result", "image_url"})
"""Types of blocks that other providers' messages have. Any other new type belongs to this API's messages."""


@writes_encodable
class Anthropic(NativeProtocol):
    """The protocol `anthropic`. Schema references are kept, because this API resolves them."""

    name = "anthropic"
    reads = "message made of content blocks"
    call_form = "a content block of the type `tool_use`"
    arguments_key = "input"

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        schema, words = plain_properties_named(tool)
        return {**add_to_description(head, words), "input_schema": schema}

    def take_apart(self, body: Any) -> WrittenReply | None:
        blocks = _blocks(body)
        is_message = not isinstance(body, list) and text_in(body, "type") == "message" and not items_in(body, "output")
        kinds = [text_in(block, "type") for block in blocks if not _is_of_server(block)]
        is_ours = _FOREIGN.isdisjoint(kinds) if is_message else _BLOCKS.issuperset(kinds)
        is_assistant = isinstance(body, list) or text_in(body, "role") == "assistant"
        if not is_assistant or not is_ours or not (blocks or is_message) or items_in(body, "tool_calls"):
            return None
        reason = text_in(body, "stop_reason")
        written = WrittenReply(
            text="".join(text_in(block, "text") for block in blocks if text_in(block, "type") == "text"),
            thought="".join(text_in(block, "thinking") for block in blocks),
            has_thought=any(text_in(block, "type") in _THINKING for block in blocks),
            calls=[call_in(block) for block in blocks if text_in(block, "type") == "tool_use"],
        )
        if not isinstance(body, list) and not isinstance(field_in(body, "content"), str | list):
            written.problems.append(unreadable("content", field_in(body, "content")))
        for block in blocks:
            written.problems += _faults(block, written.unread)
        if reason == "tool_use" and not written.calls and not any(map(_is_of_server, blocks)) and not written.problems:
            written.problems = [Problem(message=NO_CALLS, repaired=False)]
        written.ended, written.cut = find_ending(reason)
        if error := field_in(body, "error"):
            written.ended, written.cut = "failed", f"with an error: {describe_error(error)}"
        if reason == "refusal":
            written.failure = _refusal_reason(body) or written.text
        if written.is_silent and any(map(_is_of_server, blocks)):
            written.ended = "paused"
        return written

    def assembly(self, live: LiveCalls) -> Assembly:
        return BlockAssembly(live)

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message. Thinking and redacted thinking are unchanged, with their signatures."""
        rest = iter(calls)
        has_ended = isinstance(body, list) or bool(text_in(body, "stop_reason"))
        blocks = [block for block in _blocks(body) if has_ended or not _is_unsigned(block)]
        if blocks and text_in(body, "stop_reason") in _AT_LIMIT and _is_unsigned(blocks[-1]):
            blocks.pop()
        content = [
            _block_back(block, rest) for block in blocks if isinstance(block, Mapping) and not _is_empty_text(block)
        ]
        if all(text_in(block, "type") in _THINKING for block in content):
            # The API refuses a message without content, and one that ends with thinking.
            content.append({"type": "text", "text": NO_CONTENT})
        return {"role": "assistant", "content": content}

    def put_calls(self, message: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        kept = [block for block in items_in(message, "content") if text_in(block, "type") != "text"]
        return {**message, "content": [*kept, *self.render(calls)["content"]]}

    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message that makes these calls."""
        blocks = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in calls_for_provider(calls)
        ]
        return {"role": "assistant", "content": blocks}

    def user_part(self, block: ShownBlock) -> dict[str, Any] | None:
        return _media_part(block)

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns one user message with a tool result for each result, in order. Images are inside the tool results."""
        content = [_result(result) for result in with_offered_names(results)]
        return [{"role": "user", "content": content}] if content else []


def _blocks(body: Any) -> list[Any]:
    """Returns the content blocks of a message or of a list of blocks. A content of text alone is one block."""
    if isinstance(body, list):
        return cast("list[Any]", body)
    text = text_in(body, "content")
    blocks = [text] if text else items_in(body, "content")
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]


def _faults(block: Any, unread: list[str]) -> list[Problem]:
    """Returns the faults of a block that would be lost without a word. Adds a block of an unknown type to `unread`."""
    kind = text_in(block, "type")
    if kind == "text" and field_in(block, "text") is None:
        return [unreadable("content.text", None)]
    if kind in ("text", "thinking"):
        return wrong_text("content", block, kind)
    return [] if kind in _BLOCKS or _is_of_server(block) else unread_part(block, "content", unread)


def _is_of_server(block: Any) -> bool:
    """True for a call of a tool that the provider runs itself, and for its result."""
    kind = text_in(block, "type")
    is_result = kind.endswith("_tool_result") and kind != "tool_result"
    return is_result or kind in ("container_upload", "server_tool_use", "mcp_tool_use")


def _is_unsigned(block: Any) -> bool:
    # Thinking that broke off has no signature, and the API refuses it.
    return text_in(block, "type") == "thinking" and not text_in(block, "signature")


def _refusal_reason(body: Any) -> str:
    details = inner(body, "stop_details")
    return text_in(details, "explanation", "category")


def _is_empty_text(block: Any) -> bool:
    # The API sends empty and blank text blocks, and refuses them in a request.
    return text_in(block, "type") == "text" and not text_in(block, "text").strip()


def _block_back(block: Any, calls: Iterator[ToolCall]) -> dict[str, Any]:
    kept = without_stray(present(block, "parsed_output"), "input")
    is_call = text_in(block, "type") == "tool_use"
    if is_call or "input" in kept:
        kept["input"] = as_object(kept.get("input"))
    if not is_call:
        return kept
    call = next_call(calls)
    return {**kept, "id": call.id or text_in(block, "id"), "name": history_name(call.name)}


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": result_id(result),
        "content": _result_content(result),
    }
    return block if result.success else {**block, "is_error": True}


def _result_content(result: ToolResult) -> str | list[dict[str, Any]]:
    content = [block_for_model(block) for block in result.content]
    # The API refuses an error that holds anything but text.
    if not result.success or all(block["type"] == "text" for block in content):
        return result.text
    # The API refuses an empty text block.
    filled = (block for block in content if block["type"] != "text" or block["text"])
    return [_media_part(block) or {"type": "text", "text": f"[{block['type']}]"} for block in filled]


def _media_part(block: ShownBlock) -> dict[str, Any] | None:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        found, url = inline(block), media_url(block)
        if found is not None:
            source = {"type": "base64", "media_type": found.media_type, "data": found.data}
            return {"type": "image", "source": source}
        if url is not None:
            return {"type": "image", "source": {"type": "url", "url": url}}
    return None
