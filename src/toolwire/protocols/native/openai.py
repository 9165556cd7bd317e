"""OpenAI's Chat Completions API: tools, assistant messages and tool messages in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.definition.derived import shared_input_schema
from toolwire.definition.tool import Tool
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, merge, next_id, present, whole
from toolwire.protocols.native.fields import field, inner, items_in, text_in
from toolwire.protocols.native.media import audio_data, data_url
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.stream import Gathering
from toolwire.protocols.native.strict_schema import strict_problems, strict_schema, without_nulls
from toolwire.protocols.native.written import (
    Dialect,
    Written,
    WrittenCall,
    json_text,
    rendered_calls,
    result_id,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.streaming import StreamEvent
from toolwire.protocols.tool_names import provider_name
from toolwire.vocabulary.blocks import ShownBlock, shown
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

STRICT = Dialect(
    schema=shared_input_schema,
    restore=lambda tool, arguments: arguments if strict_problems(tool) else without_nulls(tool, arguments),
)
"""The dialect of both OpenAI APIs: strict mode for every tool that allows it."""

_OLDER_CALL = "function_call"
"""The field of OpenAI's older assistant message. It holds one call without an id, and serves as that call's id here."""

_CONTENT = frozenset({"content", "tool_calls", _OLDER_CALL, "refusal", "audio"})
"""Fields of an assistant message. At least one of them is required."""

_CUT = {"length": "at the token limit", "content_filter": "at a content filter"}


@writes_encodable
class OpenAi(NativeProtocol):
    """The protocol `openai`. A tool is strict unless `strict_problems` reports a problem."""

    name = "openai"
    reads = "chat completion or assistant message"
    dialect = STRICT

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": function_fields(tool, head)}

    def take_apart(self, body: Any) -> Written | None:
        message: Any = body
        choice: Any = None
        if isinstance(body, Mapping) and "choices" in body:
            choices = items_in(body, "choices")
            choice = choices[0] if choices else None
            message = inner(choice, "message")
            if not message:
                return None
        if not _is_message(message):
            return None
        return Written(
            text=text_in(message, "content") or "".join(text_in(part, "text") for part in items_in(message, "content")),
            thought=text_in(message, "reasoning_content", "reasoning"),
            calls=_calls(message),
            failure=text_in(message, "refusal") or None,
            cut=_CUT.get(text_in(choice, "finish_reason"), ""),
        )

    def take(self, gathering: Gathering, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for choice in items_in(piece, "choices"):
            if field(choice, "index") not in (None, 0):
                continue
            delta = inner(choice, "delta")
            gathering.thought(text_in(delta, "reasoning_content", "reasoning"))
            gathering.refusal(text_in(delta, "refusal"))
            yield from gathering.text(text_in(delta, "content"))
            for item in items_in(delta, "tool_calls"):
                yield from _take_call(gathering, item)
            if older := inner(delta, _OLDER_CALL):
                yield from _take_call(gathering, {"index": 0, "id": _OLDER_CALL, "function": older})
            reason = text_in(choice, "finish_reason")
            if reason:
                gathering.written.cut = _CUT.get(reason, "")
                yield from gathering.end_others()

    def assembly(self) -> Assembly:
        return _ChatAssembly()

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message with all fields that came, such as `reasoning_content` of other servers."""
        found = inner(items_in(body, "choices")[0], "message") if "choices" in body else body
        message = {name: value for name, value in present(found, "parsed").items() if value not in ("", [])}
        if written := items_in(found, "tool_calls"):
            ids = iter(calls)
            message["tool_calls"] = [_call_back(item, ids) for item in written]
        if sound := text_in(inner(found, "audio"), "id"):
            message["audio"] = {"id": sound}
        if not message.keys() & _CONTENT:
            message["content"] = NO_CONTENT
        return {"role": "assistant", "content": None, **message}

    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the assistant message that makes these calls."""
        written = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json_text(call.arguments)}}
            for call in rendered_calls(calls)
        ]
        return {"role": "assistant", "content": None, "tool_calls": written}

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns a tool message for each result, in order.

        Tool messages hold only text. The images and sounds of all results follow in one user message. A function
        message answers the `function_call` of an older message.
        """
        messages = [_answer(result) for result in results]
        media = [part for result in results for part in _media_parts(result)]
        return [*messages, {"role": "user", "content": media}] if media else messages


def _answer(result: ToolResult) -> dict[str, Any]:
    if result.call is not None and result.call.id == _OLDER_CALL:
        return {"role": "function", "name": provider_name(result.call.name), "content": result.text}
    return {"role": "tool", "tool_call_id": result_id(result), "content": result.text}


def function_fields(tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
    """Returns the head and the parameters, and `strict` if the tool can be strict."""
    if strict_problems(tool):
        return {**head, "parameters": shared_input_schema(tool)}
    return {**head, "parameters": strict_schema(tool), "strict": True}


def _calls(message: Any) -> list[WrittenCall]:
    calls = [_call(item) for item in items_in(message, "tool_calls") if field(item, "type") in (None, "function")]
    older = inner(message, _OLDER_CALL)
    return calls if calls or not older else [_call({"id": _OLDER_CALL, "function": older})]


def _is_message(message: Any) -> bool:
    if not isinstance(message, Mapping) or "type" in message:
        return False
    has_text = text_in(message, "role") == "assistant" and isinstance(field(message, "content"), str | None)
    return has_text or bool(items_in(message, "tool_calls") or inner(message, _OLDER_CALL))


def _call(item: Any) -> WrittenCall:
    function = inner(item, "function")
    arguments = field(function, "arguments")
    arguments = "" if arguments is None else arguments
    return WrittenCall(name=text_in(function, "name"), id=text_in(item, "id"), arguments=arguments)


def _call_back(item: Any, ids: Iterator[ToolCall]) -> dict[str, Any]:
    """Returns a call of an assistant message as a request takes it."""
    if field(item, "type") not in (None, "function"):
        return present(item)
    function = present(inner(item, "function"), "parsed_arguments")
    identity = next_id(ids)
    arguments = function.get("arguments") or "{}"
    return {
        **present(item, "index"),
        "id": text_in(item, "id") or identity,
        "type": "function",
        "function": {**function, "arguments": arguments},
    }


class _ChatAssembly:
    """The assistant message of a streamed reply."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._calls: dict[Hashable, dict[str, Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        for choice in items_in(piece, "choices"):
            if field(choice, "index") not in (None, 0):
                continue
            delta = dict(inner(choice, "delta"))
            for item in items_in({"calls": delta.pop("tool_calls", None)}, "calls"):
                call = self._calls.setdefault(_key(item, next(reversed(self._calls), 0)), {})
                known = text_in(call, "id"), text_in(inner(call, "function"), "name")
                merge(call, item)
                _keep_first(call, *known)
            merge(self._fields, delta)

    def body(self) -> dict[str, Any]:
        return {**whole(self._fields), **({"tool_calls": whole(list(self._calls.values()))} if self._calls else {})}


def _keep_first(call: dict[str, Any], identity: str, name: str) -> None:
    # Events and results have the first id and the first name of a call.
    if identity:
        call["id"] = identity
    if name:
        call["function"]["name"] = name


def _key(item: Any, newest: Hashable) -> Hashable:
    """Returns the key of a piece's call. Some servers send no index.

    An id then begins a call, and a piece without an id belongs to the newest call.
    """
    index = field(item, "index")
    return index if isinstance(index, int) else text_in(item, "id") or newest


def _take_call(gathering: Gathering, item: Any) -> Iterator[StreamEvent]:
    key = _key(item, gathering.last())
    function = inner(item, "function")
    if not gathering.has(key):
        yield from gathering.end_others()
    yield from gathering.call(key, name=text_in(function, "name"), id=text_in(item, "id"))
    yield from gathering.arguments(key, text_in(function, "arguments"))


def _media_parts(result: ToolResult) -> list[dict[str, Any]]:
    parts = [part for block in result.content if (part := _media_part(shown(block))) is not None]
    if not parts:
        return []
    name = "a tool" if result.call is None else f"the tool {result.call.name!r}"
    return [{"type": "text", "text": f"Returned by {name} for call {result_id(result)}:"}, *parts]


def _media_part(block: ShownBlock) -> dict[str, Any] | None:
    if block["type"] == "image":
        url = data_url(block)
        return None if url is None else {"type": "image_url", "image_url": {"url": url}}
    sound = audio_data(block)
    return (
        None if sound is None else {"type": "input_audio", "input_audio": {"data": sound.data, "format": sound.format}}
    )
