"""What the native protocols share: from a provider's reply, taken apart, to calls, and the answer to a refused one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.from_function import tool_of
from toolwire.definition.tool import Tool
from toolwire.protocols.base import CALL_LIMIT, REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.names import NameMap, provider_name
from toolwire.protocols.native_fields import check_object, opened
from toolwire.protocols.repair import fit_arguments, read_arguments
from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain

_SHOWN_KEYS = 6
"""Keys of a wrong object that its developer is shown."""

MADE_ID = "made_"
"""How ids begin that a provider did not give; they are not sent back to one that can do without."""


@dataclass(slots=True, kw_only=True)
class WrittenCall:
    """A call as the model wrote it."""

    name: str
    """The tool's name as the provider has it."""
    id: str
    """The provider's id; empty where it gave none."""
    arguments: Any
    """JSON text, or what the provider has made of it."""


@dataclass(slots=True, kw_only=True)
class Written:
    """A reply taken apart, in no provider's form."""

    text: str = ""
    """Text for the user."""
    thought: str = ""
    """What the model was thinking, where the provider shows it."""
    calls: list[WrittenCall] = field(default_factory=list[WrittenCall])
    """In the order in which they were written."""
    failure: str | None = None
    """The model's own words on why it declines."""
    cut: str = ""
    """Why the reply broke off, as `at the token limit`; empty for one that is whole."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """What was wrong beside the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a provider's model is told of a tool's parameters, and the way back."""

    schema: Callable[[Tool], dict[str, Any]]
    """The parameters as the model knows them."""
    restore: Callable[[Tool, dict[str, Any]], dict[str, Any]]
    """Arguments for those parameters, as the tool takes them."""


class Reader:
    """Reads written calls of some tools."""

    def __init__(self, tools: Iterable[Any], dialect: Dialect) -> None:
        self._tools = {tool.name: tool for tool in map(tool_of, tools)}
        self._dialect = dialect
        self.names, self._problem = _names(self._tools)

    def reply(self, written: Written) -> Reply:
        """The reply: all of its calls, or none of them with the reasons."""
        problems = list(written.problems)
        if self._problem is not None:
            problems.append(self._problem)
        problems.extend(too_much := _too_much(written.calls))
        calls: list[ToolCall] = []
        for index, call in enumerate(written.calls):
            read, found = self.call(index, call, is_read=not too_much)
            calls.append(read)
            problems.extend(found)
        if written.cut and written.calls:
            message = f"The reply broke off {written.cut}, so that its calls may not be whole. Write less at once."
            problems.append(Problem(message=message, repaired=False))
        is_refused = any(not problem.repaired for problem in problems)
        return Reply(
            calls=() if is_refused else tuple(calls),
            refused_calls=tuple(calls) if is_refused else (),
            thought=written.thought,
            text=written.text,
            failure=None if written.calls else written.failure,
            problems=tuple(problems),
        )

    def call(self, index: int, written: WrittenCall, *, is_read: bool = True) -> tuple[ToolCall, list[Problem]]:
        """A call with what was wrong in it; its arguments are empty when they cannot be read, or are not to be."""
        name = self.names.from_provider(written.name)
        place = f"call {index + 1} ({name})"
        raw = written.arguments if isinstance(written.arguments, str) else ""
        try:
            arguments, found = self._arguments(name, written.arguments) if is_read else ({}, ())
        except Refusal as refusal:
            arguments, found = {}, (refusal.problem,)
        problems = [
            Problem(
                message=problem.message,
                repaired=problem.repaired,
                place=f"{place}, {problem.place}" if problem.place else place,
            )
            for problem in found
        ]
        identity = written.id or made_id(index, name, arguments)
        return ToolCall(name, arguments, id=identity, raw_text=raw), problems

    def _arguments(self, name: str, given: Any) -> tuple[dict[str, Any], tuple[Problem, ...]]:
        if not name:
            raise Refusal("The call has no name. Write the name of a tool.")
        tool = self._tools.get(name)
        schema = None if tool is None else self._dialect.schema(tool)
        if isinstance(given, str):
            read, problems = read_arguments(given, schema)
        else:
            check_object({} if given is None else given)
            read, problems = fit_arguments({} if given is None else given, schema)
        if read is None:
            return {}, problems
        return (read if tool is None else self._dialect.restore(tool, read)), problems


def parse_native(
    reply: Any, reader: Reader, take_apart: Callable[[Any], Written | None], *, protocol: str, what: str
) -> Reply:
    """The reply that `take_apart` finds the parts of; it gives None for a shape that it does not know.

    Text that is no such thing is a model's last word. None is a message without content.

    Raises:
        ConfigurationError: the host gave something else than `what`, such as another provider's object.
    """
    if reply is None:
        return Reply()
    try:
        body = opened(reply)
        written = None if isinstance(body, str) else take_apart(body)
        if written is None and isinstance(reply, str | bytes):
            return Reply(text=reply if isinstance(reply, str) else reply.decode("utf-8"))
        if written is None:
            raise ConfigurationError(
                f"the protocol {protocol!r} reads a {what}, and was given {_shown(reply, body)}: "
                "give what its provider answered, or take the protocol of the provider that did"
            )
    except Refusal as refusal:
        return Reply(problems=(refusal.problem,))
    return reader.reply(written)


def _shown(reply: Any, body: Any) -> str:
    """The type of what a host gave, its first keys, and which of them are empty."""
    kind = f"a {type(reply).__name__}"
    if not isinstance(body, Mapping):
        return kind
    body = cast("Mapping[Any, Any]", body)
    keys = list(body)[:_SHOWN_KEYS]
    empty = [str(key) for key in keys if isinstance(body[key], list | tuple) and not body[key]]
    shown = f"{kind} with the keys {', '.join(map(str, keys)) or 'none'}"
    return f"{shown} ({', '.join(empty)} empty)" if empty else shown


def is_shape(reply: Any, take_apart: Callable[[Any], Written | None]) -> bool:
    """Whether a reply is something that this function can take apart."""
    try:
        body = opened(reply)
    except (Refusal, ConfigurationError):
        return False
    return not isinstance(body, str) and take_apart(body) is not None


def refused_results(reply: Reply) -> list[ToolResult]:
    """A failed result for each call of a refused reply: a provider wants an answer to every one."""
    general = [problem.message for problem in _reasons(reply) if not problem.place.startswith("call ")]
    results: list[ToolResult] = []
    for number, call in enumerate(reply.refused_calls, 1):
        place = f"call {number} ("
        own = [problem.message for problem in _reasons(reply) if problem.place.startswith(place)]
        reasons = own or general or ["Another call of the same reply could not be read. Make this one again."]
        results.append(
            ToolResult.failed(
                "invalid_arguments", " ".join(reasons), hint="Nothing of the reply was run. Call again.", call=call
            )
        )
    return results


def refusal_text(reply: Reply) -> str:
    """Why a refused reply without calls was refused."""
    reasons = [
        f"- {problem.place}: {problem.message}" if problem.place else f"- {problem.message}"
        for problem in _reasons(reply)
    ]
    return "\n".join(["Your reply was not run.", *reasons])


def made_id(index: int, name: str, arguments: Mapping[str, Any]) -> str:
    """An id for a call that has none: the same for the same call at the same place."""
    text = f"{name}\0{json.dumps(arguments, sort_keys=True)}"
    return f"{MADE_ID}{index}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def json_text(value: Any) -> str:
    """A plain value as a model writes it: nothing escaped that need not be."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def no_grammar(name: str) -> ConfigurationError:
    """What a native protocol says when asked for a grammar."""
    return ConfigurationError(
        f"the protocol {name!r} has no grammar: its provider reads the calls itself; take 'json', 'xml' or 'attp'"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedCall:
    """A call as a provider takes it in a request's history."""

    id: str
    """Its own, or one made for it."""
    name: str
    """As the provider has it."""
    arguments: dict[str, Any]
    """In JSON types."""


def rendered_calls(calls: Sequence[ToolCall]) -> list[RenderedCall]:
    """The calls as a provider takes them.

    Raises:
        Unrepresentable: an argument that JSON cannot hold.
    """
    found: list[RenderedCall] = []
    for index, call in enumerate(calls):
        arguments: dict[str, Any] = plain(dict(call.arguments))
        identity = call.id or made_id(index, call.name, arguments)
        found.append(RenderedCall(id=identity, name=provider_name(call.name), arguments=arguments))
    return found


def result_id(result: ToolResult) -> str:
    """The id that a result answers to."""
    return "" if result.call is None else result.call.id


def _names(tools: Iterable[str]) -> tuple[NameMap, Problem | None]:
    try:
        return NameMap(tools), None
    except ConfigurationError as error:
        return NameMap(()), Problem(message=str(error), repaired=False)


def _too_much(calls: Sequence[WrittenCall]) -> list[Problem]:
    if len(calls) > CALL_LIMIT:
        return [Problem(message=f"The reply makes {len(calls)} calls and may make {CALL_LIMIT}.", repaired=False)]
    size = sum(len(call.arguments) for call in calls if isinstance(call.arguments, str))
    if size > REPLY_LIMIT_BYTES:
        message = f"The arguments of all calls have {size} characters and may have {REPLY_LIMIT_BYTES}. Write less."
        return [Problem(message=message, repaired=False)]
    return []


def _reasons(reply: Reply) -> list[Problem]:
    return [problem for problem in reply.problems if not problem.repaired]
