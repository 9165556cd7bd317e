"""The XML parser. The scanner finds the calls, and the tools' schemas convert their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line, read_incoming, text_given
from toolwire.protocols.reading.repair import fit_arguments
from toolwire.protocols.tool_names import known_tools, refuse_ambiguous
from toolwire.protocols.xml.call_reader import RawCall, RawParameter
from toolwire.protocols.xml.conversion import Converted, convert_argument, guess, load_marked, tagged_parameters
from toolwire.protocols.xml.element import CallTag
from toolwire.protocols.xml.scan import scan
from toolwire.vocabulary.calls import Problem, Reply, ToolCall, WrittenArguments


def read_xml(reply: Any, tools: Iterable[Any] = (), *, tag: CallTag = "tool_call") -> Reply:
    """Parses a reply into calls, a failure, a plain text answer, or the reasons for a refusal.

    Raises:
        ConfigurationError: The host passed something other than text.
    """
    given = text_given(reply, "xml")
    try:
        incoming = read_incoming(given)
        schemas = Schemas(tools)
        scanned = scan(incoming.text, schemas.parameters, tag=tag)
        problems = [*incoming.problems, *scanned.problems]
        calls = tuple(_call(call, incoming.text, schemas, problems) for call in scanned.calls)
    except Refusal as refusal:
        return Reply(text=refusal.text, problems=(refusal.problem,))
    return Reply(
        calls=calls,
        thought=scanned.thought,
        failure=scanned.failure,
        text=scanned.text,
        problems=tuple(problems),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCalls:
    """The calls of a text, for a host that drives the model itself."""

    calls: tuple[ToolCall, ...]
    """The calls in order. The arguments of an unknown tool are `WrittenArguments`."""
    problems: tuple[Problem, ...]
    """Each repair, and each reason why a call was not read."""


def read_calls(text: str, tools: Iterable[Any] = (), *, is_strict: bool = True) -> ReadCalls:
    """Returns the calls of a text.

    One unreadable call discards all calls. With `is_strict=False`, only the unreadable calls are left out.
    """
    calls, problems = list[ToolCall](), list[Problem]()
    try:
        incoming = read_incoming(text)
        problems += incoming.problems
        schemas = Schemas(tools)
        scanned = scan(incoming.text, schemas.parameters, tag="tool_call", is_strict=is_strict)
        problems += scanned.problems
        for raw in scanned.calls:
            try:
                call = _call(raw, incoming.text, schemas, problems)
                is_guessed = schemas.schema(raw.name) is None
                calls.append(replace(call, arguments=WrittenArguments(call.arguments)) if is_guessed else call)
            except Refusal as refusal:
                if is_strict:
                    raise
                problems.append(refusal.problem)
    except Refusal as refusal:
        return ReadCalls(calls=(), problems=(refusal.problem,))
    return ReadCalls(calls=tuple(calls), problems=tuple(problems))


class Schemas:
    """The input schemas of tools by the names that models write."""

    def __init__(self, tools: Iterable[Any]) -> None:
        self.known = known_tools(tools)
        self._parameters: dict[str, Mapping[str, bool]] = {}

    def name(self, name: str) -> str:
        """Returns the tool that a written name means. An unknown or ambiguous name is returned unchanged."""
        return self.known.name(name)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Returns the input schema of the tool that a written name means. None if the tool is unknown."""
        return self.known.schemas.get(self.name(name))

    def parameters(self, name: str) -> Mapping[str, bool]:
        """Returns the names of a tool's parameters. Empty if the tool is unknown.

        True for a parameter that takes tags as a list or an object.
        """
        if name not in self._parameters:
            schema = self.schema(name)
            self._parameters[name] = {} if schema is None else tagged_parameters(schema)
        return self._parameters[name]


def _call(raw: RawCall, text: str, schemas: Schemas, problems: list[Problem]) -> ToolCall:
    schema = schemas.schema(raw.name)
    name = schemas.name(raw.name)
    if schema is None:
        refuse_ambiguous(name, schemas.known.spellings)
    arguments: dict[str, Any] = {}
    for parameter in raw.parameters:
        found = _value(parameter, schema, text)
        arguments[parameter.name] = found.value
        problems += [_placed(problem, parameter.name) for problem in found.problems]
    arguments, more = fit_arguments(arguments, schema)
    problems += more
    return ToolCall(name, arguments, raw_text=text[raw.start : raw.end])


def _value(parameter: RawParameter, schema: Mapping[str, Any] | None, text: str) -> Converted:
    try:
        if parameter.is_json:
            return Converted(value=load_marked(parameter.text))
        if schema is None:
            return Converted(value=guess(parameter.text))
        return convert_argument(parameter.name, parameter.text, schema)
    except Refusal as refusal:
        message = f"<{parameter.name}> cannot be read: {refusal}"
        raise Refusal(message, place=line(text, parameter.position)) from refusal


def _placed(problem: Problem, name: str) -> Problem:
    return replace(problem, place=f"{name}, {problem.place}" if problem.place else name)
