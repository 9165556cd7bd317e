"""The XML parser. The scanner finds the calls, and the tools' schemas convert their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.conversion import (
    Conversion,
    convert_argument,
    guess,
    load_marked,
    parameters_taking_tags,
)
from toolwire.protocols.reading.incoming import line_of, read_incoming
from toolwire.protocols.reading.repair import fit_arguments
from toolwire.protocols.tool_names import KnownTools, refuse_ambiguous
from toolwire.protocols.xml.call_reader import Known, RawCall, RawParameter
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
        scanned = scan(incoming.text, parameters_of(known), tag=tag, is_strict=is_strict)
        problems = [*incoming.problems, *scanned.problems]
        for raw in scanned.calls:
            try:
                calls.append(_convert_call(raw, incoming.text, known, problems))
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


def parameters_of(known: KnownTools) -> Known:
    """Returns the function that gives the parameters of a tool to the scanner."""

    @cache
    def parameters(name: str) -> Mapping[str, bool]:
        schema = known.schema(name)
        return {} if schema is None else parameters_taking_tags(schema)

    return parameters


def _convert_call(raw: RawCall, text: str, known: KnownTools, problems: list[Problem]) -> ToolCall:
    schema, name = known.schema(raw.name), known.name(raw.name)
    if schema is None:
        refuse_ambiguous(name, known.names.spellings)
    arguments: dict[str, Any] = {}
    for parameter in raw.parameters:
        found = _value(parameter, schema, text)
        arguments[parameter.name] = found.value
        problems += [_with_parameter(problem, parameter.name) for problem in found.problems]
    arguments, more = fit_arguments(arguments, schema)
    problems += more
    return ToolCall(name, arguments, raw_text=text[raw.start : raw.end])


def _value(parameter: RawParameter, schema: Mapping[str, Any] | None, text: str) -> Conversion:
    try:
        if parameter.is_json:
            return Conversion(value=load_marked(parameter.text))
        if schema is None:
            return Conversion(value=guess(parameter.text))
        return convert_argument(parameter.name, parameter.text, schema)
    except Refusal as refusal:
        message = f"<{parameter.name}> cannot be read: {refusal}"
        raise Refusal(message, place=line_of(text, parameter.position)) from refusal


def _with_parameter(problem: Problem, name: str) -> Problem:
    return replace(problem, place=f"{name}, {problem.place}" if problem.place else name)
