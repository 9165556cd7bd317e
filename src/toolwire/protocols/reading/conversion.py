"""Conversion of a parameter's text to a value: by the tool's schema, or without one by four simple forms."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from toolwire.definition.json_schema.accepted_types import (
    CONTAINER_TYPES,
    JSON_TYPES,
    branch_of,
    json_type,
    types_accepted_by,
)
from toolwire.definition.words import flatten_schema, limit_references, path_text, resolve
from toolwire.protocols.base import DIGIT_LIMIT, Refusal
from toolwire.protocols.reading.repair import read_json
from toolwire.protocols.reading.strict_json import load_json
from toolwire.protocols.reading.tags import read_tags
from toolwire.vocabulary.calls import Problem

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+")
_BETWEEN_COMMAS = re.compile(r"\s*+[\w.+\-]++\s*+(?:,\s*+[\w.+\-]++\s*+)++")
_WORDS = {"true": True, "false": False}
_PYTHON_WORDS = {"True": ("boolean", True), "False": ("boolean", False), "None": ("null", None)}
_LIST = frozenset({"array"})
_SIMPLE = frozenset({"integer", "number", "boolean", "null"})
_TEXTLIKE = frozenset({"string", "integer", "number"}) | CONTAINER_TYPES
"""The types whose text stays text where a string is accepted too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A parameter's value."""

    value: Any
    problems: tuple[Problem, ...] = ()
    """The repairs that reading the value needed."""


def guess(text: str) -> Any:
    """Converts a text without a schema. Only `true`, `false`, `-3` and `0.5` in exactly these forms are not strings.

    A number must write the same text again, so that a guess can be undone: `3.10`, `1.0`, `007`, `1e5`, `-0`, ` 10 `
    and `1_000` stay strings.
    """
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > DIGIT_LIMIT:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text) and _text_of(float(text)) == text:
        return float(text)
    return text


def convert_written(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Converts guessed values by the tool's schema, as if each were still its text."""
    return _convert_each(arguments, schema, lambda value, node: convert(_text_of(value), node, schema))


def convert_guessed(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Converts values that may have been guessed by the tool's schema. A value of a type that it accepts stays."""
    return _convert_each(arguments, schema, lambda value, node: _convert_given(value, node, schema))


def _convert_each(
    arguments: Mapping[str, Any], schema: Mapping[str, Any], read: Callable[[Any, Any], Conversion]
) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Converts each text, number and boolean. One that does not fit stays; validation then reports it."""
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    values, problems = dict(arguments), list[Problem]()
    for name, value in arguments.items():
        if _has_text(value):
            try:
                found = read(value, properties.get(name, schema.get("additionalProperties")))
            except Refusal:
                continue
            values[name] = found.value
            problems += [replace(problem, place=path_text((name,))) for problem in found.problems]
    return values, tuple(problems)


@limit_references
def _convert_given(value: Any, schema: Any, root: Mapping[str, Any]) -> Conversion:
    types, choices = types_accepted_by(schema, root), _choices(resolve(schema, root))
    if choices is not None:
        chosen = value if value in choices else _pick_choice(_text_of(value), choices)
        return Conversion(value=chosen if chosen in choices else value)
    if type(value) is str:
        return Conversion(value=value) if "string" in types or not value.strip() else convert(value, schema, root)
    if json_type(value) in types or not ("string" in types or type(value) is bool) or _has_format(schema, root):
        return Conversion(value=value)
    return Conversion(value=_text_of(value))


def _has_text(value: object) -> bool:
    """True for a value that a text can stand for: JSON has no NaN, and Python writes no longer integer."""
    if type(value) is int:
        return abs(value) < 10**DIGIT_LIMIT
    return math.isfinite(value) if type(value) is float else type(value) in (str, bool)


def _text_of(value: str | float) -> str:
    """Returns the text that `guess` reads as this value. Some languages write 1.0 as 1, so that it has none here."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def _has_format(schema: Any, root: Mapping[str, Any]) -> bool:
    """True for a string with a format: a Python type behind it may take numbers, as a duration takes seconds."""
    node = flatten_schema(schema, root)
    options = [option for key in ("anyOf", "oneOf") for option in cast("list[Any]", node.get(key) or [])]
    return "format" in node or any("format" in resolve(option, root) for option in options)


def convert(text: str, schema: Any, root: Mapping[str, Any]) -> Conversion:
    """Converts a text by its schema. `root` is the schema that its references belong to.

    Text stays text if the schema asks for a string, even `10` or `true`. A text that does not fit also stays text;
    validation then reports the expected type.

    Raises:
        Refusal: The text is tags, and they are no list or object by the schema.
    """
    if text.lstrip().startswith("<") and takes_tags(schema, root):
        return _convert_tags(text, schema, root)
    return _convert_text(text, schema, root)


def takes_tags(schema: Any, root: Mapping[str, Any]) -> bool:
    """True if a schema accepts a list or an object and no string, so that tags in a text can be only that."""
    types = types_accepted_by(schema, root)
    return "string" not in types and bool(types & CONTAINER_TYPES)


def _convert_tags(text: str, schema: Any, root: Mapping[str, Any]) -> Conversion:
    problems = list[Problem]()

    def leaf(inner: str, its_schema: Any) -> Any:
        found = _convert_text(inner, its_schema, root)
        problems.extend(found.problems)
        return found.value

    value = read_tags(text, schema, root, leaf)
    if isinstance(value, str):
        return Conversion(value=value)
    note = _repair(f"Its tags were read as {'a list' if isinstance(value, list) else 'an object'}.")
    return Conversion(value=value, problems=(note, *dict.fromkeys(problems)))


def _convert_text(text: str, schema: Any, root: Mapping[str, Any]) -> Conversion:
    node = resolve(schema, root)
    choices = _choices(node)
    if choices is not None:
        return Conversion(value=_pick_choice(text, choices))
    types = types_accepted_by(node, root)
    if types == JSON_TYPES:
        return Conversion(value=guess(text))
    if (only := types - {"null"}) in _EMPTY and not text.strip():
        value, what = _EMPTY[only]
        return Conversion(value=value(), problems=(_repair(f"An empty text was read as an empty {what}."),))
    if types == _STRING:
        return Conversion(value=text)
    found = _convert_json(text, types)
    is_left = isinstance(found.value, str) and "array" in types and "string" not in types
    return (_read_commas(text, node, root) if is_left else None) or found


def _read_commas(text: str, schema: Any, root: Mapping[str, Any]) -> Conversion | None:
    """Reads numbers or booleans between commas as a list. None for other items: a text may have commas of its own."""
    if not _BETWEEN_COMMAS.fullmatch(text):
        return None
    node = branch_of(schema, "array", root)
    places = cast("list[Any]", node.get("prefixItems") or [])
    allowed = [types_accepted_by(place, root) for place in places]
    others = types_accepted_by(node.get("items"), root)
    found = _convert_repaired(f"[{text}]", _LIST, is_text=False)
    value: Any = found.value
    if not isinstance(value, list):
        return None
    for at, item in enumerate(cast("list[Any]", value)):
        types = allowed[at] if at < len(allowed) else others
        if types - _SIMPLE or not _fits(json_type(item), types):
            return None
    note = _repair("Its values between commas were read as a list.")
    return Conversion(value=cast("list[Any]", value), problems=(note, *dict.fromkeys(found.problems)))


def convert_argument(name: str, text: str, schema: Mapping[str, Any]) -> Conversion:
    """Converts the text of a parameter by the tool's input schema.

    Raises:
        Refusal: As in `convert`.
    """
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    return convert(text, properties.get(name, schema.get("additionalProperties")), schema)


def parameters_taking_tags(schema: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the names of the parameters. True for one that takes tags as a list or an object."""
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    return {name: takes_tags(node, schema) for name, node in properties.items()}


def load_marked(text: str) -> Any:
    """Returns the value of a text that is marked as JSON.

    Raises:
        Refusal: The text is not JSON.
    """
    try:
        return load_json(text)
    except json.JSONDecodeError as error:
        raise Refusal(f"it is marked as JSON and is not JSON: {error}. Write JSON, or leave the mark out.") from error


def _convert_json(text: str, types: frozenset[str]) -> Conversion:
    # If strings are allowed, numbers stay text: exact decimals and leading zeros would otherwise be lost.
    # JSON of a list or an object stays text too, as in `repair.decode_json_texts`.
    wanted = types - _TEXTLIKE if "string" in types else types
    try:
        value = load_json(text)
    except json.JSONDecodeError:
        return _convert_repaired(text, wanted, is_text="string" in types)
    except Refusal:
        return Conversion(value=text)
    kind = json_type(value)
    is_wanted = _fits(kind, wanted)
    is_whole = kind == "number" and "integer" in wanted and float(value).is_integer()
    return Conversion(value=value if is_wanted or is_whole else text)


def _fits(kind: str, types: frozenset[str]) -> bool:
    return kind in types or (kind == "integer" and "number" in types)


def _convert_repaired(text: str, wanted: frozenset[str], *, is_text: bool) -> Conversion:
    """Returns the value of a text that is not JSON but has an obvious mistake."""
    if is_text:
        return Conversion(value=text)
    kind, value = _PYTHON_WORDS.get(text.strip(), ("", None))
    if kind in wanted:
        return Conversion(value=value, problems=(_repair(f"{text.strip()} was read as {json.dumps(value)}."),))
    if not wanted & CONTAINER_TYPES or not text.lstrip().startswith(("[", "{", "```")):
        return Conversion(value=text)
    try:
        value, problems = read_json(text)
    except Refusal:
        return Conversion(value=text)
    return Conversion(value=value, problems=problems) if json_type(value) in wanted else Conversion(value=text)


def _pick_choice(text: str, choices: list[Any]) -> Any:
    if text in [choice for choice in choices if isinstance(choice, str)]:
        return text
    try:
        value = load_json(text)
    except (json.JSONDecodeError, Refusal):
        return text
    is_listed = any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices)
    return value if is_listed else text


def _choices(node: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(node.get("enum"), list):
        return cast("list[Any]", node["enum"])
    return [node["const"]] if "const" in node else None


def _repair(message: str) -> Problem:
    return Problem(message=message, repaired=True)


_STRING = frozenset({"string"})
_EMPTY: Mapping[frozenset[str], tuple[Callable[[], Any], str]] = {
    frozenset({"array"}): (list, "list"),
    frozenset({"object"}): (dict, "object"),
}
"""The empty value of a schema that accepts nothing else than it and null."""
