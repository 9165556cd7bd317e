"""OpenAI's Chat Completions API: tools, assistant messages and tool messages in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, join_texts, next_call, object_text, present
from toolwire.protocols.native.declared_schema import add_to_description, plain_parameters, schema_for_providers
from toolwire.protocols.native.endings import find_ending
from toolwire.protocols.native.fields import describe_error, field_in, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.media import audio_data, data_url
from toolwire.protocols.native.offered_names import with_offered_names
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.streams.chat_chunks import OLDER_CALL, PLAIN_TEXT, ChatAssembly, call_items
from toolwire.protocols.native.strict_schema import strict_problems, strict_schema, without_nulls
from toolwire.protocols.native.written import (
    CALL_ELSEWHERE,
    NO_CALLS,
    Dialect,
    WrittenCall,
    WrittenReply,
    calls_for_provider,
    find_stray_arguments,
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
            choices = items_in(body, "choices")
            choice = choices[0] if choices else None
            message = inner(choice, "message") or ({} if choice is None else {"role": "assistant"})
        if not message or not (choice is not None or _is_message(message)):
            return None
        reason = text_in(choice, "finish_reason")
        ended, cut = find_ending(reason)
        if error := field_in(body, "error"):
            ended, cut = "failed", f"with an error: {describe_error(error)}"
        calls, others = _calls(message)
        text = text_in(message, "content") or "".join(map(_text_of, items_in(message, "content")))
        problems = _call_faults(message)
        if not calls and any(_calls(inner(other, "message"))[0] for other in items_in(body, "choices")[1:]):
            problems.append(CALL_ELSEWHERE)
        if reason in ("tool_calls", "function_call") and not (calls or others or problems):
            problems, ended = [Problem(message=NO_CALLS, repaired=False)], "calls"
        return WrittenReply(
            text=text,
            problems=problems,
            thought=text_in(message, "reasoning_content", "reasoning"),
            calls=calls,
            failure=text_in(message, "refusal") or None,
            ended="paused" if others and not calls and not text and ended is None else ended,
            cut=cut,
        )

    def assembly(self, live: LiveCalls) -> Assembly:
        return ChatAssembly(live)

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message with all fields that came, such as `reasoning_content` of other servers."""
        found = inner(items_in(body, "choices")[0], "message") if "choices" in body else body
        message = {name: value for name, value in present(found, "parsed").items() if value not in ("", [])}
        message.pop("tool_calls", None)
        rest = iter(calls)
        if back := [_call_back(item, rest) for item in call_items(found) if isinstance(item, Mapping)]:
            message["tool_calls"] = back
        if sound := text_in(inner(found, "audio"), "id"):
            message["audio"] = {"id": sound}
        if isinstance(content := message.get("content"), list):
            message["content"] = join_texts(cast("list[Any]", content), PLAIN_TEXT)
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
    calls = [_read_call(item) for item in items if _is_function(item)]
    older = inner(message, OLDER_CALL)
    if older and not items:
        return [_read_call({"id": OLDER_CALL, "function": older})], 0
    return calls, len(items) - len(calls)


def _call_faults(message: Any) -> list[Problem]:
    """Returns the faults of a message whose calls would be lost without a word."""
    items, older = call_items(message), inner(message, OLDER_CALL)
    faults = [fault for item in items if _is_function(item) for fault in _stray(item)]
    if not isinstance(field_in(message, "tool_calls"), list | tuple | Mapping | None) or not all(
        isinstance(item, Mapping) for item in items
    ):
        faults.append(Problem(message="`tool_calls` is not a list of calls.", repaired=False))
    same = any(text_in(inner(item, "function"), "name") == text_in(older, "name") for item in items)
    if older and items and not same:
        faults.append(Problem(message=f"Beside `tool_calls` is another call, in `{OLDER_CALL}`.", repaired=False))
    return faults


def _stray(item: Any) -> list[Problem]:
    function = inner(item, "function")
    name = text_in(function, "name")
    return [*find_stray_arguments(function, "arguments", name), *find_stray_arguments(item, "", name)]


def _text_of(part: Any) -> str:
    return part if isinstance(part, str) else text_in(part, "text")


def _is_function(item: Any) -> bool:
    kind = text_in(item, "type")
    return bool(inner(item, "function")) or kind in ("", "function") or not inner(item, kind)


def _is_message(message: Any) -> bool:
    if not isinstance(message, Mapping) or "type" in message:
        return False
    has_text = text_in(message, "role") == "assistant" and isinstance(field_in(message, "content"), str | None)
    return has_text or bool(items_in(message, "tool_calls") or inner(message, OLDER_CALL))


def _read_call(item: Any) -> WrittenCall:
    function = inner(item, "function")
    arguments = field_in(function, "arguments")
    arguments = "" if arguments is None else arguments
    return WrittenCall(name=text_in(function, "name"), id=text_in(item, "id"), arguments=arguments)


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
