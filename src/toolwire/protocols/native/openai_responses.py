"""OpenAI's Responses API: tools, output items and function call outputs in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import Assembly, next_call, object_text, present
from toolwire.protocols.native.fields import describe_error, field_in, fields, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.media import data_url
from toolwire.protocols.native.offered_names import with_offered_names
from toolwire.protocols.native.openai import STRICT, function_fields
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.streams.item_events import ItemAssembly, call_in
from toolwire.protocols.native.unread_parts import has_arguments, unread_part, unreadable, wrong_text
from toolwire.protocols.native.written import (
    WrittenReply,
    calls_for_provider,
    history_name,
    json_text,
    result_id,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.vocabulary.blocks import ShownBlock, block_for_model
from toolwire.vocabulary.calls import Ended, Problem, ToolCall
from toolwire.vocabulary.results import ToolResult

_ITEMS = frozenset({"message", "function_call", "reasoning"})
_SERVER_ITEMS = frozenset({"mcp_list_tools", "mcp_approval_request", "compaction"})
_NAMED_CALLS = frozenset({"mcp_call", "custom_tool_call"})
"""Items of the provider's and the host's own tools that have a name and arguments, as a call has."""
_STOPPED = frozenset({"failed", "incomplete", "cancelled", "queued", "in_progress"})
"""States of a response that may have no output."""
_ENDS: Mapping[str, tuple[Ended, str]] = {
    "max_output_tokens": ("length", "at the token limit"),
    "content_filter": ("filter", "at a content filter"),
}
"""The reasons of an incomplete response, and what a problem says of them."""


@writes_encodable
class OpenAiResponses(NativeProtocol):
    """The protocol `openai-responses`. This API is strict by default, so `strict` is always written."""

    name = "openai-responses"
    reads = "response or list of output items"
    call_form = "an output item of the type `function_call`"
    dialect = STRICT

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "strict": False, **function_fields(tool, head)}

    def take_apart(self, body: Any) -> WrittenReply | None:
        items = _output_items(body)
        is_response = not isinstance(body, list) and text_in(body, "object") == "response"
        if is_response and not isinstance(field_in(body, "output"), list) and text_in(body, "status") not in _STOPPED:
            return None
        if not is_response and not any(_is_ours(item) for item in items) and not (isinstance(body, list) and not items):
            return None
        written = WrittenReply()
        written.ended, written.cut = _end(body)
        status = "" if isinstance(body, list) else text_in(body, "status")
        if status in ("queued", "in_progress"):
            message = f"The response has not ended: it is {status!r}. Retrieve it when it is completed."
            written.problems.append(Problem(message=message, repaired=False))
        for item in items:
            _add(written, item)
        if written.is_silent and any(map(_is_of_server, items)) and not any(map(_is_message, items)):
            written.ended = "paused"
        return written

    def assembly(self, live: LiveCalls) -> Assembly:
        return ItemAssembly(live)

    def message(self, body: Any, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Returns the output items for the request's `input`, with `encrypted_content` of the reasoning if it came."""
        rest = iter(calls)
        items = [item for item in _output_items(body) if fields(item) is not None and not _is_begun_reasoning(item)]
        if all(text_in(item, "type") == "reasoning" for item in items):
            # The API refuses reasoning without the item that followed it.
            items = []
        return [_item_back(item, rest) for item in items]

    def text_message(self, text: str) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": text}] if text else []

    def put_calls(self, message: Any, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        return [*(item for item in message if text_in(item, "type") == "reasoning"), *self.render(calls)]

    def render(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Returns the output items that make these calls. A request's `input` also accepts them."""
        return [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": json_text(call.arguments)}
            for call in calls_for_provider(calls)
        ]

    def user_part(self, block: ShownBlock) -> dict[str, Any] | None:
        return _media_part(block)

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns an input item for each result, in order. Its output is text, or a list of text and images."""
        return [
            {"type": "function_call_output", "call_id": result_id(result), "output": _output(result)}
            for result in with_offered_names(results)
        ]


def _output_items(body: Any) -> list[Any]:
    """Returns the output items of a response, of a list of items, or of one item."""
    if isinstance(body, list):
        return cast("list[Any]", body)
    return [body] if text_in(body, "type") in _ITEMS else items_in(body, "output")


def _item_back(item: Any, calls: Iterator[ToolCall]) -> dict[str, Any]:
    kept = present(item, "parsed_arguments")
    if text_in(item, "type") == "function_call":
        call = next_call(calls)
        arguments = object_text(kept.get("arguments") or "{}")
        identity = call.id or text_in(item, "call_id")
        if identity != text_in(item, "call_id"):
            # An item whose call had the id of another one may have its item's id too.
            kept.pop("id", None)
        return {**kept, "call_id": identity, "name": history_name(call.name), "arguments": arguments}
    if text_in(item, "type") == "message":
        parts = items_in(item, "content")
        return {**kept, "content": [present(part, "parsed") for part in parts if fields(part) is not None]}
    return kept


def _is_begun_reasoning(item: Any) -> bool:
    # The API refuses reasoning without its end.
    return text_in(item, "type") == "reasoning" and text_in(item, "status") == "in_progress"


def _is_ours(item: Any) -> bool:
    return (text_in(item, "type") in _ITEMS and not _is_foreign(item)) or _is_of_server(item)


def _is_of_server(item: Any) -> bool:
    """True for a call that the provider or the host answers itself, such as a search, and for news of one."""
    kind = text_in(item, "type")
    return (kind.endswith("_call") and kind != "function_call") or kind in _SERVER_ITEMS


def _is_foreign(item: Any) -> bool:
    """True for another provider's message. It has the same type, but its content is not made of output items."""
    return text_in(item, "type") == "message" and any(
        text_in(part, "type") not in ("output_text", "refusal") for part in items_in(item, "content")
    )


def _end(body: Any) -> tuple[Ended | None, str]:
    """Returns why a response ended, unless it is complete, and what a problem says of it."""
    status = text_in(body, "status") if not isinstance(body, list) else ""
    reason = text_in(inner(body, "incomplete_details"), "reason")
    if status == "incomplete" and reason in _ENDS:
        return _ENDS[reason]
    if status == "incomplete":
        return "length", f"with the status 'incomplete' ({reason or 'without a reason'})"
    if status not in ("", "completed", "queued", "in_progress"):
        error = field_in(body, "error")
        return "failed", f"with the status {status!r}" + ("" if error is None else f": {describe_error(error)}")
    return None, ""


def _is_message(item: Any) -> bool:
    return text_in(item, "type") == "message"


def _add(written: WrittenReply, item: Any) -> None:
    match text_in(item, "type"):
        case "function_call":
            written.calls.append(call_in(item))
            _note_incomplete(written, item, "inside a call")
        case "message":
            _add_message(written, item)
        case "reasoning":
            written.has_thought = True
            written.thought += "".join(text_in(part, "text") for part in items_in(item, "summary"))
        case _ if not _is_of_server(item) or (text_in(item, "type") not in _NAMED_CALLS and has_arguments(item)):
            written.problems += unread_part(item, "output", written.unread)
        case _:
            pass  # calls that the provider runs itself, and other items the host offered


def _add_message(written: WrittenReply, item: Any) -> None:
    content = field_in(item, "content")
    if not isinstance(content, list | None):
        written.problems.append(unreadable("content", content))
    for part in items_in(item, "content"):
        if text_in(part, "type") == "refusal":
            written.failure = (written.failure or "") + text_in(part, "refusal")
        elif field_in(part, "text") is not None or text_in(part, "type") == "output_text":
            written.problems += wrong_text("content", part, "text")
            written.text += text_in(part, "text")
        else:
            written.problems += unread_part(part, "content", written.unread)
    _note_incomplete(written, item, "inside a message")


def _note_incomplete(written: WrittenReply, item: Any, place: str) -> None:
    if text_in(item, "status") == "incomplete" and written.ended is None:
        written.ended, written.cut = "length", place


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    content = [block_for_model(block) for block in result.content]
    if all(block["type"] == "text" for block in content):
        return result.text
    return [_media_part(block) or {"type": "input_text", "text": f"[{block['type']}]"} for block in content]


def _media_part(block: ShownBlock) -> dict[str, Any] | None:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    url = data_url(block) if block["type"] == "image" else None
    return None if url is None else {"type": "input_image", "image_url": url, "detail": "auto"}
