"""Calls of a native reply, and calls in a request's history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolwire.definition.tool import Tool
from toolwire.protocols.base import CALL_LIMIT, REPLY_LIMIT_BYTES, Refusal, too_many_calls
from toolwire.protocols.native.fields import check_object, fields
from toolwire.protocols.native.provider_schema import properties_named, properties_restored
from toolwire.protocols.native.unread_parts import ARGUMENT_KEYS, CALL_KEYS
from toolwire.protocols.reading.incoming import behind_thinking
from toolwire.protocols.reading.repair import fit_arguments, read_arguments
from toolwire.protocols.tool_names import as_known_tools, property_name, provider_name, refuse_ambiguous
from toolwire.vocabulary.calls import Ended, Problem, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import plain_value

MADE_ID = "made_"
"""The prefix of ids that toolwire made. They are not sent to a provider that does not require an id."""


@dataclass(slots=True, kw_only=True)
class WrittenCall:
    """A call as the model wrote it."""

    name: str
    """The tool's name in the provider's form."""
    id: str
    """The provider's id; empty if it gave none."""
    arguments: Any
    """The arguments: JSON text, or the value that the provider parsed from it."""
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields of the call that its API does not have."""


@dataclass(slots=True, kw_only=True)
class WrittenReply:
    """The parts of a reply, independent of the provider."""

    text: str = ""
    """The text for the user."""
    thought: str = ""
    """The model's thought, if the provider reveals it."""
    has_thought: bool = False
    """True if the reply holds thinking that the provider does not reveal."""
    calls: list[WrittenCall] = field(default_factory=list[WrittenCall])
    """The calls in the order in which the model wrote them."""
    failure: str | None = None
    """The model's explanation of why it declines."""
    ended: Ended | None = None
    """Why the reply ended; None: it made calls, or the model answered."""
    cut: str = ""
    """The place where the reply broke off, such as `at the token limit`, or what the provider said of its end."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """Problems that do not belong to a call."""
    unread: list[str] = field(default_factory=list[str])
    """The parts of the reply that no reader takes, in words."""

    @property
    def is_silent(self) -> bool:
        """True if the model ended the reply without a text, a call or a refusal."""
        said = behind_thinking(self.text).strip() or self.calls or self.failure
        return not said and self.ended is None and not any(not problem.repaired for problem in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Conversion between a tool's parameters and the form in which the provider's model sees them."""

    schema: Callable[[Tool], dict[str, Any]]
    """Returns the parameters in the form that the model sees."""
    restore: Callable[[Tool, dict[str, Any]], dict[str, Any]]
    """Converts arguments from that form to the form that the tool takes."""
    parameter_name: Callable[[str], str]
    """Returns a parameter's name in that form."""


NAMED = Dialect(schema=properties_named, restore=properties_restored, parameter_name=property_name)
"""The dialect of the APIs that only restrict the names of parameters."""


class Reader:
    """Makes calls of a set of tools from parsed replies."""

    def __init__(self, tools: Iterable[Any], dialect: Dialect) -> None:
        self.known = as_known_tools(tools)
        self._tools = self.known.by_name
        self._dialect = dialect
        self.names = self.known.names

    def reply(self, written: WrittenReply) -> Reply:
        """Returns the reply with all of its calls. If one call is refused, all are; `problems` says why."""
        problems = [*written.problems, *find_nothing_said(written)]
        problems.extend(too_much := _too_much(written.calls))
        calls: list[ToolCall] = []
        ids: set[str] = set()
        for index, call in enumerate(written.calls):
            # A result names its call by the id alone, so a second call of the same id gets another one.
            unique = call if call.id not in ids else with_made_id(index, call)
            read, found = self.call(index, unique, is_read=not too_much)
            ids.add(read.id)
            calls.append(read)
            problems.extend(found)
        if written.ended in ("length", "filter", "failed"):
            problems.append(Problem(message=_broken(written), repaired=False))
        is_refused = any(not problem.repaired for problem in problems)
        return Reply(
            calls=() if is_refused else tuple(calls),
            refused_calls=tuple(calls) if is_refused else (),
            thought=written.thought,
            text=written.text,
            failure=None if written.calls else written.failure,
            problems=tuple(problems),
            ended=written.ended or ("calls" if written.calls else "stop"),
            is_complete=True,
        )

    def call(self, index: int, written: WrittenCall, *, is_read: bool = True) -> tuple[ToolCall, list[Problem]]:
        """Returns a call and its problems. Its arguments are empty if they are unreadable or `is_read` is False."""
        name = self.names.from_provider(written.name)
        place = f"call {index + 1} ({name})"
        raw = written.arguments if isinstance(written.arguments, str) else ""
        try:
            if name not in self._tools:
                refuse_ambiguous(name, self.names.spellings)
            self._refuse_beside(written, name)
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
        identity = written.id or make_call_id(index, name, arguments)
        return ToolCall(name, arguments, id=identity, raw_text=raw), problems

    def _refuse_beside(self, written: WrittenCall, name: str) -> None:
        """Refuses arguments that stand beside those of the API: they would be lost without a word."""
        if not written.beside:
            return
        tool = self._tools.get(name)
        shown = () if tool is None else (parameter.name for parameter in tool.visible_parameters)
        parameters = {self._dialect.parameter_name(parameter) for parameter in shown}
        for key, value in written.beside.items():
            is_word = key.lower() in CALL_KEYS and value not in ("", {}, [])
            is_call = not CALL_KEYS.isdisjoint(fields(value) or ())
            if is_call or (value is not None and (is_word or key in parameters)):
                raise Refusal(f"The call of {written.name!r} has arguments under {key!r}, where its API has none.")

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


NO_CALLS = "The provider says that the reply makes calls, and it has none. Make the call again, in the form for tools."

_SAY = "Write the answer, or make a call."

CALL_ELSEWHERE = Problem(
    message="The call stands in a further alternative of the reply, and only the first one is read. Ask for one alone.",
    repaired=False,
)
"""The fault of a reply whose first alternative has no call, and another has one."""


def without_stray(holder: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Returns the fields of a call without arguments under another key, which a request does not take."""
    return {key: value for key, value in holder.items() if key == own or key not in ARGUMENT_KEYS}


def find_nothing_said(written: WrittenReply) -> list[Problem]:
    """Reports the parts that nothing reads, and refuses a reply that is nothing but such parts or thinking."""
    names = " and ".join(dict.fromkeys(written.unread))
    if names and not written.is_silent:
        return [Problem(message=f"The reply also has {names}, which was not read.", repaired=True)]
    if names:
        return [Problem(message=f"The reply is nothing but {names}, which was not read. {_SAY}", repaired=False)]
    if (written.thought or written.has_thought or written.text.strip()) and written.is_silent:
        return [Problem(message=f"The reply is all thinking. {_SAY}", repaired=False)]
    return []


def history_name(name: str) -> str:
    """Returns the name of a call for a request's history, also of a call without one."""
    return provider_name(name) or "unnamed"


def with_made_id(index: int, call: WrittenCall) -> WrittenCall:
    """Returns the call with an id that toolwire makes of its own id and its position."""
    return replace(call, id=make_call_id(index, call.name, {"id": call.id}))


def make_call_id(index: int, name: str, arguments: Mapping[str, Any]) -> str:
    """Makes an id for a call that has none. The same call at the same position always gets the same id."""
    text = f"{name}\0{json.dumps(arguments, sort_keys=True)}"
    return f"{MADE_ID}{index}_{hashlib.sha256(utf8_bytes(text)).hexdigest()[:12]}"


def json_text(value: Any) -> str:
    """Returns a plain value as compact JSON text, with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def calls_for_provider(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Returns calls as a request's history needs them: with an id, the provider's name, and arguments in JSON types.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    found: list[ToolCall] = []
    for index, call in enumerate(calls):
        arguments: dict[str, Any] = plain_value(dict(call.arguments))
        identity = call.id or make_call_id(index, call.name, arguments)
        found.append(ToolCall(provider_name(call.name), arguments, id=identity))
    return found


def result_id(result: ToolResult) -> str:
    """Returns the id of the call that the result answers."""
    return "" if result.call is None else result.call.id


def _broken(written: WrittenReply) -> str:
    """Returns the reason why nothing of a reply runs that its provider did not let the model finish."""
    if written.ended == "length":
        lost = "its calls may not be whole" if written.calls else "it is not whole"
        return f"The reply broke off {written.cut}, so that {lost}. Make it shorter."
    return f"The provider stopped the reply {written.cut}."


def _too_much(calls: Sequence[WrittenCall]) -> list[Problem]:
    if len(calls) > CALL_LIMIT:
        return [too_many_calls().problem]
    size = sum(len(call.arguments) for call in calls if isinstance(call.arguments, str))
    if size > REPLY_LIMIT_BYTES:
        message = f"The arguments of all calls have {size} characters; the limit is {REPLY_LIMIT_BYTES}. Write less."
        return [Problem(message=message, repaired=False)]
    return []
