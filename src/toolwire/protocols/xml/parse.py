"""The XML parser. The scanner finds the calls, and the tools' schemas convert their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line, read_incoming
from toolwire.protocols.reading.repair import fit_arguments
from toolwire.protocols.tool_names import KnownTools, refuse_ambiguous
from toolwire.protocols.xml.call_reader import RawCall, RawParameter
from toolwire.protocols.xml.conversion import Converted, convert_argument, guess, load_marked, tagged_parameters
from toolwire.protocols.xml.element import CallTag
from toolwire.protocols.xml.scan import scan
from toolwire.vocabulary.calls import Problem, Reply, ToolCall


def read_xml(reply: str | bytes, known: KnownTools, *, tag: CallTag = "tool_call", is_strict: bool = True) -> Reply:
    """Reads a reply as calls, a failure, a plain text answer, or the reasons for a refusal.

    One unreadable call discards all calls. With `is_strict=False`, only the unreadable calls are left out.
    """
    calls = list[ToolCall]()
    try:
        incoming = read_incoming(reply)
        schemas = Schemas(known)
        scanned = scan(incoming.text, schemas.parameters, tag=tag, is_strict=is_strict)
        problems = [*incoming.problems, *scanned.problems]
        for raw in scanned.calls:
            try:
                calls.append(_call(raw, incoming.text, schemas, problems))
            except Refusal as refusal:
                if is_strict:
                    raise
                problems.append(refusal.problem)
    except Refusal as refusal:
        return refusal.reply
    return Reply(
        calls=tuple(calls),
        thought=scanned.thought,
        failure=scanned.failure,
        text=scanned.text,
        problems=tuple(problems),
    )


class Schemas:
    """The input schemas of tools by the names that models write."""

    def __init__(self, known: KnownTools) -> None:
        self.known = known
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
