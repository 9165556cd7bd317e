"""Gemini's API: function declarations, calls and responses in the forms of its SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from toolwire.definition.from_function import tool_of
from toolwire.definition.tool import Tool
from toolwire.protocols.base import Language, Thought
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly, as_object, join_texts, next_call, present
from toolwire.protocols.native.fields import describe_error, field_in, first_alternative, inner, items_in, text_in
from toolwire.protocols.native.gemini_schema import newer_parameters, older_parameters
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.media import inline
from toolwire.protocols.native.offered_names import with_offered_names
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.protocols.native.streams.part_chunks import PLAIN, PartAssembly, call_in, word_in
from toolwire.protocols.native.unread_parts import unread_fields, unread_part, unreadable, wrong_text
from toolwire.protocols.native.written import (
    CALL_ELSEWHERE,
    MADE_ID,
    WrittenReply,
    calls_for_provider,
    history_name,
    result_id,
    without_stray,
)
from toolwire.protocols.outgoing import writes_encodable
from toolwire.vocabulary.blocks import ShownBlock, block_for_model
from toolwire.vocabulary.calls import Problem, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import model_value
from toolwire.vocabulary.results import ToolResult

SchemaField = Literal["parameters_json_schema", "parameters"]

_CUT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_UNREAD = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"})
_DECLINED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "ESCALATION", "MODEL_ARMOR"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}
)
_COMPLETE = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED"})
_OF_SERVER = (
    *("executable_code", "executableCode", "code_execution_result", "codeExecutionResult"),
    *("tool_call", "toolCall", "tool_response", "toolResponse"),
)
"""Parts of the tools that the provider runs itself."""
_OF_A_PART = frozenset(
    {*_OF_SERVER, "inline_data", "inlineData", "file_data", "fileData", "video_metadata", "videoMetadata"}
    | {"thought", "thought_signature", "thoughtSignature", "part_metadata", "partMetadata"}
)
"""Fields of a part without text and call. Media are for the host, which finds them in the message."""
_OF_A_CONTENT = frozenset({"role", "parts"})
_OF_A_CANDIDATE = frozenset(
    {"content", "finish_reason", "finishReason", "finish_message", "finishMessage", "index"}
    | {"citation_metadata", "citationMetadata", "safety_ratings", "safetyRatings"}
    | {"grounding_metadata", "groundingMetadata", "grounding_attributions", "groundingAttributions"}
    | {"url_context_metadata", "urlContextMetadata", "url_retrieval_metadata", "urlRetrievalMetadata"}
    | {"logprobs_result", "logprobsResult"}
)
"""Fields that hold no part of the reply, and those that are read."""


@writes_encodable
class Gemini(NativeProtocol):
    """The protocol `gemini`. Its only state is the API field that carries the schemas."""

    name = "gemini"
    reads = "response with candidates or content with parts"
    call_form = "a part with a `functionCall`"
    arguments_key = "args"

    def __init__(self, *, schema_field: SchemaField = "parameters_json_schema") -> None:
        """Chooses the schema field. The older `parameters` takes no references and fewer JSON Schema keywords."""
        self._schema_field: SchemaField = schema_field

    def describe(
        self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short"
    ) -> list[dict[str, Any]]:
        """Returns the config's `tools`: one entry with a declaration of each tool, or nothing without tools.

        Raises:
            ConfigurationError: The provider could not distinguish the names of two tools.
        """
        declarations = super().describe(tools, language=language, thought=thought)
        return [{"function_declarations": declarations}] if declarations else []

    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        schema = self._convert_parameters(tool)[0]
        # The older field refuses an object without properties, so a tool without parameters has no schema there.
        is_told = self._schema_field != "parameters" or schema.get("properties")
        return {**head, **({self._schema_field: schema} if is_told else {})}

    def schema_problems(self, tool: Any) -> tuple[str, ...]:
        """Lists the schema constraints that this API cannot express. The tool still enforces them."""
        return self._convert_parameters(tool_of(tool))[1]

    def take_apart(self, body: Any) -> WrittenReply | None:
        if isinstance(body, list):
            return None
        content: Any = body
        candidate: Any = None
        written = WrittenReply()
        if "candidates" in body or "prompt_feedback" in body or "promptFeedback" in body:
            if not isinstance(field_in(body, "candidates"), list | None):
                return None
            candidate = first_alternative(items_in(body, "candidates"))
            if candidate is None and "prompt_feedback" not in body and "promptFeedback" not in body:
                written.problems.append(unreadable("candidates", field_in(body, "candidates")))
            if not isinstance(candidate, Mapping | None):
                written.problems.append(unreadable("candidates", candidate))
            content = field_in(candidate, "content")
            unread_fields(candidate, _OF_A_CANDIDATE, written.unread)
            unread_fields(content, _OF_A_CONTENT, written.unread)
            if not isinstance(content, Mapping | None):
                written.problems.append(unreadable("content", content))
        elif not items_in(body, "parts"):
            return None
        parts = items_in(content, "parts")
        if not isinstance(field_in(content, "parts"), list | None):
            written.problems.append(unreadable("parts", field_in(content, "parts")))
        elsewhere = [one for one in items_in(body, "candidates") if one is not candidate]
        if not any(call_in(part) for part in parts) and _has_calls(elsewhere):
            written.problems.append(CALL_ELSEWHERE)
        for part in parts:
            _add(written, part)
        _note_end(written, body, candidate)
        if written.is_silent and any(field_in(part, *_OF_SERVER) is not None for part in parts):
            written.ended = "paused"
        return written

    def assembly(self, live: LiveCalls) -> Assembly:
        return PartAssembly(live)

    def message(self, body: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the model's content. Each part is unchanged, with its thought signature."""
        candidate = first_alternative(items_in(body, "candidates"))
        content = body if candidate is None else inner(candidate, "content")
        rest = iter(calls)
        joined = join_texts(items_in(content, "parts"), PLAIN)
        parts = [_part_back(part, rest) for part in joined if not _is_empty(part)]
        return {"role": "model", "parts": parts} if parts else self.text_message("")

    def text_message(self, text: str) -> dict[str, Any]:
        return {"role": "model", "parts": [{"text": text or NO_CONTENT}]}

    def put_calls(self, message: Any, calls: Sequence[ToolCall]) -> dict[str, Any]:
        given = items_in(message, "parts")
        kept = [part for part in given if field_in(part, "thought") or "text" not in part]
        signed = [{key: part[key] for key in part.keys() - PLAIN} for part in given if part not in kept]
        first, *others = self.render(calls)["parts"]
        for signature in signed:
            first = {**first, **signature}
        return {**message, "parts": [*kept, first, *others]}

    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Returns the content that makes these calls."""
        parts = [
            {"function_call": {**_id(call.id), "name": call.name, "args": call.arguments}}
            for call in calls_for_provider(calls)
        ]
        return {"role": "model", "parts": parts}

    def user_part(self, block: ShownBlock) -> dict[str, Any] | None:
        return {"text": block["text"]} if block["type"] == "text" else _media_part(block)

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns one content with a function response for each result, in order. Images are inside the responses."""
        parts = [_response(result) for result in with_offered_names(results)]
        return [{"role": "user", "parts": parts}] if parts else []

    def user_message(self, content: str | list[dict[str, Any]]) -> dict[str, Any]:
        return {"role": "user", "parts": [{"text": content}] if isinstance(content, str) else content}

    def _convert_parameters(self, tool: Tool) -> tuple[dict[str, Any], tuple[str, ...]]:
        return older_parameters(tool) if self._schema_field == "parameters" else newer_parameters(tool)


def _add(written: WrittenReply, part: Any) -> None:
    """Adds the call and the text of a part."""
    call = call_in(part)
    if call is not None:
        written.calls.append(call)
        written.problems += _in_parts(part)
    if field_in(part, "text") is not None:
        written.problems += wrong_text("parts", part, "text")
        is_thought = bool(field_in(part, "thought"))
        written.thought += text_in(part, "text") if is_thought else ""
        written.text += "" if is_thought else text_in(part, "text")
    elif call is None and (present(part).keys() - _OF_A_PART or not present(part)):
        written.problems += unread_part(part, "parts", written.unread)


def _has_calls(candidates: Iterable[Any]) -> bool:
    return any(call_in(part) for candidate in candidates for part in items_in(inner(candidate, "content"), "parts"))


def _part_back(part: dict[str, Any], calls: Iterator[ToolCall]) -> dict[str, Any]:
    """Returns a part as a request takes it. A call has the name of its response, and an object as arguments."""
    key = next((key for key in ("function_call", "functionCall") if part.get(key) is not None), None)
    if key is None:
        return part
    call = part[key]
    given = {"args": as_object(call["args"])} if field_in(call, "args") is not None else {}
    read = next_call(calls)
    return {
        **part,
        key: {**without_stray(present(call, "id"), "args"), **_id(read.id), "name": history_name(read.name), **given},
    }


def _is_empty(part: Mapping[str, Any]) -> bool:
    # The API refuses a part with an empty text. A part with a signature has further fields.
    return part.keys() <= PLAIN and not part.get("text")


def _id(identity: str) -> dict[str, str]:
    """Returns the id field if the provider gave the id. An id that toolwire made is not sent."""
    return {"id": identity} if identity and not identity.startswith(MADE_ID) else {}


def _in_parts(part: Any) -> list[Problem]:
    """Reports a call whose arguments are spread over several responses. No single response holds the whole call."""
    call = inner(part, "function_call", "functionCall")
    if not (items_in(call, "partial_args", "partialArgs") or field_in(call, "will_continue", "willContinue")):
        return []
    message = "A call came in parts. Switch stream_function_call_arguments off: then each call comes whole."
    return [Problem(message=message, repaired=False)]


def _note_end(written: WrittenReply, body: Any, candidate: Any) -> None:
    """Notes why the reply ended, unless it is complete."""
    blocked = word_in(inner(body, "prompt_feedback", "promptFeedback"), "block_reason", "blockReason")
    reason = word_in(candidate, "finish_reason", "finishReason")
    message = text_in(candidate, "finish_message", "finishMessage")
    if error := field_in(body, "error"):
        written.ended, written.cut = "failed", f"with an error: {describe_error(error)}"
    elif blocked:
        written.ended, written.cut = "filter", f"before it began ({blocked})"
        written.failure = f"The provider blocked the request: {blocked}."
    elif reason in _CUT:
        written.ended, written.cut = "length", "at the token limit"
    elif reason in _UNREAD:
        written.ended = "calls"
        text = f"The provider could not read the reply ({reason}). {message or 'Call a tool that you were given.'}"
        written.problems.append(Problem(message=text, repaired=False))
    elif reason in _DECLINED:
        written.ended, written.cut = "filter", f"at a content filter ({reason})"
        written.failure = message or f"The provider stopped the reply: {reason}."
    elif reason and reason not in _COMPLETE:
        written.ended, written.cut = "failed", f"with the reason {reason}"


def _response(result: ToolResult) -> dict[str, Any]:
    name = "" if result.call is None else history_name(result.call.name)
    parts = [part for block in result.content if (part := _media_part(block_for_model(block))) is not None]
    response = {"output": _output(result)} if result.success else {"error": result.text}
    fields = {**_id(result_id(result)), "name": name, "response": response}
    return {"function_response": {**fields, "parts": parts} if parts else fields}


def _output(result: ToolResult) -> Any:
    if result.blocks:
        return result.text
    try:
        return model_value(result.data)
    except Unrepresentable:
        return result.text


def _media_part(block: ShownBlock) -> dict[str, Any] | None:
    found = inline(block)
    if found is None or not found.media_type.startswith(f"{block['type']}/"):
        return None
    return {"inline_data": {"mime_type": found.media_type, "data": found.data}}
