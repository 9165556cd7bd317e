"""OpenAI's Chat Completions API: tools, assistant messages and tool messages in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, join_texts, next_call, object_text, present
from toolwire.protocols.native.declared_schema import add_to_description, plain_parameters, schema_for_providers
from toolwire.protocols.native.endings import find_ending
from toolwire.protocols.native.fields import (
    describe_error,
    field_in,
    fields,
    first_alternative,
    inner,
    items_in,
    text_in,
)
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.media import audio_data, data_url
from toolwire.protocols.native.offered_names import with_offered_names
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.streams.chat_chunks import (
    OLDER_CALL,
    PLAIN_TEXT,
    ChatAssembly,
    call_in,
    call_items,
    content_part,
)
from toolwire.protocols.native.strict_schema import strict_problems, strict_schema, without_nulls
from toolwire.protocols.native.unread_parts import unread_fields, unread_part, unreadable, wrong_text
from toolwire.protocols.native.written import (
    CALL_ELSEWHERE,
    NO_CALLS,
    Dialect,
    WrittenCall,
    WrittenReply,
    calls_for_provider,
    history_name,
    json_text,
    result_id,
    without_stray,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.tool_names import provider_name
from toolwire.vocabulary.blocks import ShownBlock, block_for_model
from toolwire.vocabulary.calls import Problem, ToolCall
from toolwire.vocabulary.results import ToolResult

STRICT = Dialect(
    schema=schema_for_providers,
    restore=lambda tool, arguments: arguments if strict_problems(tool) else without_nulls(tool, arguments),
    parameter_name=str,
)
"""The dialect of both OpenAI APIs: strict mode for every tool that allows it."""

RETURNED_BY = "Returned by "
"""The beginning of the user message with the images and sounds of results."""

_THINKING = frozenset({"thinking", "reasoning"})
"""Types of content parts with thinking, in replies of compatible servers."""

_OF_A_MESSAGE = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", OLDER_CALL, "audio", "images", "annotations", "parsed"}
    | {"reasoning", "reasoning_content", "reasoning_details", "provider_specific_fields", "id"}
)
"""Fields of an assistant message, of compatible servers too. An answer has none of another name."""

_OTHER_CALLS = ("tool_call", "functionCall", "function_calls", "tool_use")
"""Fields in which other APIs have calls."""

_CONTENT = frozenset({"content", "tool_calls", OLDER_CALL, "refusal", "audio"})
"""Fields of an assistant message. At least one of them is required."""


@writes_encodable
class OpenAi(NativeProtocol):
    """The protocol `openai`. A tool is strict unless `strict_problems` reports a problem."""

    # Descriptions are sent whole: OpenAI refused more than 1,024 characters of them until May 2025, and no longer does.
    name = "openai"
    reads = "chat completion or assistant message"
    call_form = "an entry of `tool_calls`"
    dialect = STRICT

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": function_fields(tool, head)}

    def take_apart(self, body: Any) -> WrittenReply | None:
        message: Any = body
        choice: Any = None
        if isinstance(body, Mapping) and "choices" in body:
            choice = first_alternative(items_in(body, "choices"))
            message = _message_of(choice)
        if not message or not (choice is not None or _is_message(message)):
            return None
        reason = text_in(choice, "finish_reason")
        ended, cut = find_ending(reason)
        if error := field_in(body, "error"):
            ended, cut = "failed", f"with an error: {describe_error(error)}"
        calls, others = _calls(message)
        written = WrittenReply(
            problems=_call_faults(message),
            thought=text_in(message, "reasoning_content", "reasoning"),
            has_thought=bool(items_in(message, "reasoning_details")),
            calls=calls,
            failure=text_in(message, "refusal") or None,
            ended=ended,
            cut=cut,
        )
        _add_content(written, field_in(message, "content"))
        if written.is_silent and not others:
            unread_fields(message, _OF_A_MESSAGE, written.unread)
        if not calls and any(_calls(inner(other, "message"))[0] for other in items_in(body, "choices")[1:]):
            written.problems.append(CALL_ELSEWHERE)
        if reason in ("tool_calls", "function_call") and not (calls or others or written.problems):
            written.problems, written.ended = [Problem(message=NO_CALLS, repaired=False)], "calls"
        if others and written.is_silent:
            written.ended = "paused"
        return written

    def assembly(self, live: LiveCalls) -> Assembly:
        return ChatAssembly(live)

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message with all fields that came, such as `reasoning_content` of other servers."""
        found = _message_of(first_alternative(items_in(body, "choices"))) if "choices" in body else body
        message = {name: value for name, value in present(found, "parsed").items() if value not in ("", [])}
        message.pop("tool_calls", None)
        rest = iter(calls)
        if back := [_call_back(item, rest) for item in call_items(found) if isinstance(item, Mapping)]:
            message["tool_calls"] = back
        if sound := text_in(inner(found, "audio"), "id"):
            message["audio"] = {"id": sound}
        if isinstance(content := message.get("content"), list):
            message["content"] = join_texts(map(content_part, cast("list[Any]", content)), PLAIN_TEXT)
        elif not isinstance(content, str | None):
            message.pop("content")
        if not message.keys() & _CONTENT:
            message["content"] = NO_CONTENT
        return {"role": "assistant", "content": None, **message}

    def put_calls(self, message: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {**message, **self.render(calls)}

    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message that makes these calls."""
        written = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json_text(call.arguments)}}
            for call in calls_for_provider(calls)
        ]
        return {"role": "assistant", "content": None, "tool_calls": written}

    def user_part(self, block: ShownBlock) -> dict[str, Any] | None:
        return {"type": "text", "text": block["text"]} if block["type"] == "text" else _media_part(block)

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns a tool message for each result, in order.

        Tool messages hold only text. The images and sounds of all results follow in one user message. A function
        message answers the `function_call` of an older message.
        """
        messages = [_result_message(result) for result in with_offered_names(results)]
        media = [part for result in results for part in _labelled_media(result)]
        return [*messages, {"role": "user", "content": media}] if media else messages


def _result_message(result: ToolResult) -> dict[str, Any]:
    if result.call is not None and result.call.id == OLDER_CALL:
        return {"role": "function", "name": provider_name(result.call.name), "content": result.text}
    return {"role": "tool", "tool_call_id": result_id(result), "content": result.text}


def function_fields(tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
    """Returns the head and the parameters, and `strict` if the tool can be strict."""
    if strict_problems(tool):
        schema, words = plain_parameters(tool)
        return {**add_to_description(head, words), "parameters": schema}
    return {**head, "parameters": strict_schema(tool), "strict": True}


def _calls(message: Any) -> tuple[list[WrittenCall], int]:
    """Returns the calls of functions, and the number of calls of other kinds, which the host answers itself.

    Servers write other types than `function`, or none, so that the function decides.
    """
    items = [cast("Any", item) for item in call_items(message) if isinstance(item, Mapping)]
    calls = [call_in(item) for item in items if _is_function(item)]
    older = inner(message, OLDER_CALL)
    if older and not items:
        return [call_in({"id": OLDER_CALL, "function": older})], 0
    return calls, len(items) - len(calls)


def _call_faults(message: Any) -> list[Problem]:
    """Returns the faults of a message whose calls would be lost without a word."""
    items, older = call_items(message), inner(message, OLDER_CALL)
    faults = [
        Problem(message=f"The message has calls in `{key}`. Make each call in `tool_calls`.", repaired=False)
        for key in _OTHER_CALLS
        if isinstance(field_in(message, key), Mapping | list)
    ]
    if not isinstance(field_in(message, OLDER_CALL), Mapping | None):
        faults.append(unreadable(OLDER_CALL, field_in(message, OLDER_CALL)))
    if not isinstance(field_in(message, "tool_calls"), list | tuple | Mapping | None) or not all(
        isinstance(item, Mapping) for item in items
    ):
        faults.append(Problem(message="`tool_calls` is not a list of calls.", repaired=False))
    same = any(text_in(inner(item, "function"), "name") == text_in(older, "name") for item in items)
    if older and items and not same:
        faults.append(Problem(message=f"Beside `tool_calls` is another call, in `{OLDER_CALL}`.", repaired=False))
    return faults


def _message_of(choice: Any) -> Mapping[str, Any] | None:
    """Returns the message of a choice. None for a choice of another kind: of a chunk, or of an older completion."""
    if not isinstance(choice, Mapping):
        return None
    message = field_in(choice, "message")
    if message is None and find_ending(text_in(choice, "finish_reason"))[0] is not None:
        return {"role": "assistant"}  # the provider stopped the reply before it began
    found = fields(message)
    return {"role": "assistant"} if found is not None and not found else found


def _add_content(written: WrittenReply, content: Any) -> None:
    """Adds the text of a message, which is a text or a list of parts."""
    if isinstance(content, str):
        written.text = content
    elif not isinstance(content, list | None):
        written.problems.append(unreadable("content", content))
    for part in map(content_part, cast("list[Any]", content) if isinstance(content, list) else []):
        kind = text_in(part, "type")
        if kind in _THINKING:
            written.has_thought = True
        elif field_in(part, "text") is not None or kind == "text":
            written.problems += wrong_text("content", part, "text")
            written.text += text_in(part, "text")
        elif refusal := text_in(part, "refusal"):
            written.failure = refusal
        else:
            written.problems += unread_part(part, "content", written.unread)


def _is_function(item: Any) -> bool:
    kind = text_in(item, "type")
    return bool(inner(item, "function")) or kind in ("", "function") or not inner(item, kind)


def _is_message(message: Any) -> bool:
    if not isinstance(message, Mapping) or "type" in message:
        return False
    has_text = text_in(message, "role") == "assistant" and isinstance(field_in(message, "content"), str | None)
    return has_text or bool(items_in(message, "tool_calls") or inner(message, OLDER_CALL))


def _call_back(item: Any, calls: Iterator[ToolCall]) -> dict[str, Any]:
    """Returns a call of an assistant message as a request takes it."""
    if not _is_function(item):
        return present(item, "index")
    function = present(inner(item, "function"), "parsed_arguments")
    call = next_call(calls)
    return {
        **without_stray(present(item, "index"), ""),
        "id": call.id or text_in(item, "id"),
        "type": "function",
        "function": {
            **function,
            "name": history_name(call.name),
            "arguments": object_text(function.get("arguments") or "{}"),
        },
    }


def _labelled_media(result: ToolResult) -> list[dict[str, Any]]:
    parts = [part for block in result.content if (part := _media_part(block_for_model(block))) is not None]
    if not parts:
        return []
    name = "a tool" if result.call is None else f"the tool {result.call.name!r}"
    return [{"type": "text", "text": f"{RETURNED_BY}{name} for call {result_id(result)}:"}, *parts]


def _media_part(block: ShownBlock) -> dict[str, Any] | None:
    if block["type"] == "image":
        url = data_url(block)
        return None if url is None else {"type": "image_url", "image_url": {"url": url}}
    sound = audio_data(block)
    return None if sound is None else {"type": "input_audio", "input_audio": sound}
