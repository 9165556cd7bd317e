"""The answer to a question, typed at a terminal field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.permission.edits import check_answer, read_answer
from toolwire.permission.visible import visible, visible_text


class LineTerminal(Protocol):
    """A terminal: it shows a text, and returns a typed line or None at the end of the input."""

    def say(self, text: str) -> None: ...
    def line(self, question: str) -> str | None: ...


class EndOfInput(Exception):
    """The input ended before the answer was whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    label: str
    value: Any


def ask_at_terminal(request: ApprovalRequest, terminal: LineTerminal) -> Any:
    """Returns an answer that fits the question. A wrong entry is asked again, with the reason.

    Each property of an object is a field. A field is text, a number, yes or no, or one of several choices; a value of
    any other form is typed as JSON.

    Raises:
        EndOfInput: The input ended.
    """
    schema = request.answer_schema
    while True:
        if schema.get("type") == "object" and schema.get("properties"):
            answer: Any = dict(_fields(request, terminal))
        else:
            answer = _ask_field(request, schema, "answer", terminal)
        try:
            return check_answer(request, answer)
        except DecisionRefused as refused:
            # A rule between two fields, such as `dependentRequired`: all fields are asked again.
            terminal.say(visible_text(str(refused)))


def _fields(request: ApprovalRequest, terminal: LineTerminal) -> Iterator[tuple[str, Any]]:
    schema = request.answer_schema
    required = schema.get("required", ())
    for name, wanted in cast("Mapping[str, Any]", schema["properties"]).items():
        found: Mapping[str, Any] = cast("Mapping[str, Any]", wanted) if isinstance(wanted, Mapping) else {}
        value = _ask_field(request, found, name, terminal, is_optional=name not in required)
        if value is not _LEFT_OUT:
            yield name, value


def _ask_field(
    request: ApprovalRequest, wanted: Mapping[str, Any], name: str, terminal: LineTerminal, *, is_optional: bool = False
) -> Any:
    choices, note = _choices(wanted), str(wanted.get("description") or wanted.get("title") or "")
    if note:
        terminal.say(f"{visible(name)}: {visible(note)}")
    for place, choice in enumerate(choices, 1):
        terminal.say(f"  [{place}] {visible(choice.label)}")
    asked = f"{visible(name)} ({_form(wanted, choices)}{', empty: leave out' if is_optional else ''}): "
    while True:
        typed = terminal.line(asked)
        if typed is None:
            raise EndOfInput
        if not typed and is_optional:
            return _LEFT_OUT
        try:
            return _check_field(request, wanted, _read_entry(request, wanted, choices, typed))
        except (ValueError, DecisionRefused) as error:
            terminal.say(visible_text(str(error)))


def _read_entry(request: ApprovalRequest, wanted: Mapping[str, Any], choices: list[_Choice], typed: str) -> Any:
    """Returns the value that the text means, which may still not fit.

    Raises:
        ValueError: The text is not of the field's form.
        DecisionRefused: The text is not JSON, and the field needs it.
    """
    if choices:
        return _pick_choice(choices, typed)
    match wanted.get("type"):
        case "string":
            return typed
        case "boolean":
            return _yes_or_no(typed)
        case "integer" | "number":
            return _number(typed)
        case _:
            return read_answer(typed, replace(request, answer_schema={}))


def _check_field(request: ApprovalRequest, wanted: Mapping[str, Any], value: Any) -> Any:
    # A field may refer to definitions of the whole schema.
    shared = {key: request.answer_schema[key] for key in ("$defs", "definitions") if key in request.answer_schema}
    return check_answer(replace(request, answer_schema={**shared, **wanted}), value)


def _choices(wanted: Mapping[str, Any]) -> list[_Choice]:
    listed = wanted.get("enum")
    if isinstance(listed, list):
        return [_Choice(label=_text_of_value(value), value=value) for value in cast("list[Any]", listed)]
    for key in ("oneOf", "anyOf"):
        members = cast("list[object]", found) if isinstance(found := wanted.get(key), list) else []
        constants = [cast("Mapping[str, Any]", one) for one in members if isinstance(one, Mapping) and "const" in one]
        if constants and len(constants) == len(members):
            return [
                _Choice(label=str(one.get("title", _text_of_value(one["const"]))), value=one["const"])
                for one in constants
            ]
    return []


def _pick_choice(choices: list[_Choice], typed: str) -> Any:
    """Returns the choice with this text, or else the one with this number."""
    for choice in choices:
        if typed in (choice.label, _text_of_value(choice.value)):
            return choice.value
    if typed.isascii() and typed.isdecimal() and 1 <= int(typed[:9]) <= len(choices):
        return choices[int(typed[:9]) - 1].value
    raise ValueError(f"write a number from 1 to {len(choices)}")


def _yes_or_no(typed: str) -> bool:
    match typed.lower():
        case "y" | "yes" | "true":
            return True
        case "n" | "no" | "false":
            return False
        case _:
            raise ValueError("write y or n")


def _number(typed: str) -> Any:
    try:
        value = json.loads(typed)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{typed[:80]!r} is not a number")
    return value


def _form(wanted: Mapping[str, Any], choices: list[_Choice]) -> str:
    if choices:
        return f"1 to {len(choices)}"
    forms = {"string": "text", "boolean": "y or n", "integer": "a whole number", "number": "a number"}
    return forms.get(str(wanted.get("type")), "as JSON")


def _text_of_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_LEFT_OUT = object()
