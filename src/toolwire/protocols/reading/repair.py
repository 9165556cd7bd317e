"""Reading of the JSON that models write: strictly first, then with repairs, then fitted to the tool's schema.

A value is never invented, and truncated JSON never runs. Every repair is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.json_schema.accepted_types import (
    CONTAINER_TYPES,
    JSON_TYPES,
    branch_of,
    json_type,
    types_accepted_by,
)
from toolwire.definition.words import limit_references, path_text
from toolwire.protocols.base import DEPTH_LIMIT, REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.reading.lenient_json import place_of, read_lenient
from toolwire.protocols.reading.strict_json import check_depth, load_json
from toolwire.vocabulary.calls import Problem

_FENCED = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+\n(.*)\n[ \t]*+\1\s*+", re.DOTALL)
_FENCE_OPENS = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+(?=[\[{])")
JSON_TEXT_LIMIT = REPLY_LIMIT_BYTES
"""Maximum length in characters of an argument that is decoded. A model cannot write a longer one."""

_PLAIN = frozenset({"number", "integer", "boolean", "null"})
_PLAIN_KINDS: Mapping[type, frozenset[str]] = {
    int: frozenset({"number", "integer"}),
    float: frozenset({"number"}),
    bool: frozenset({"boolean"}),
}
"""The types of a schema that accept a value of a Python type."""

_SCHEMA_KEYS = frozenset(
    {"type", "description", "title", "default", "enum", "format", "items", "properties", "required", "examples"}
    | {"minimum", "maximum", "minLength", "maxLength", "pattern", "additionalProperties", "anyOf", "oneOf", "$ref"}
)


def read_arguments(
    text: str, schema: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any] | None, tuple[Problem, ...]]:
    """Reads a call's arguments from JSON text, and returns them with every repair.

    `schema` is the tool's input schema, or None for an unknown tool. The arguments are None if the text is truncated or
    ambiguous; the only problem then gives the reason and is not repaired. The arguments are not validated.
    """
    try:
        return _arguments(text, schema)
    except Refusal as refusal:
        return None, (refusal.problem,)


def read_json(text: str) -> tuple[Any, tuple[Problem, ...]]:
    """Reads a text as one JSON value, and returns it with every repair.

    Raises:
        Refusal: The text is truncated or ambiguous, or exceeds a limit.
    """
    try:
        return load_json(text), ()
    except json.JSONDecodeError as error:
        return _read_with_repairs(text, error)


@limit_references
def fit_arguments(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Decodes the arguments that are JSON text, as `decode_json_texts` does.

    The only item of a list is taken where the schema accepts nothing but numbers, booleans and null.

    Raises:
        Refusal: The arguments are the tool's schema, or contain schemas in place of values.
    """
    if schema is None:
        return dict(arguments), ()
    _check_values(arguments, schema)
    arguments, problems = decode_json_texts(arguments, schema)
    fitting = _Fitter(root=schema, problems=list(problems))
    return fitting.fit(dict(arguments), schema, (), DEPTH_LIMIT), tuple(fitting.problems)


@limit_references
def decode_json_texts(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Decodes each argument that is JSON text where the schema accepts an object or an array but no string.

    Clients and hosts encode whole arguments, so texts inside a value stay. Returns the same arguments without any.
    """
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    decoded: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in arguments.items():
        if type(value) is not str or not _may_hold_container(value):
            continue
        wanted = _containers_only(properties.get(name, schema.get("additionalProperties")), schema)
        read, found = _container(value, wanted, path_text((name,))) if wanted else (value, ())
        if read is not value:
            decoded[name] = read
            problems.extend(found)
    return ({**arguments, **decoded}, tuple(problems)) if decoded else (arguments, ())


def _arguments(text: str, schema: Mapping[str, Any] | None) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if not text.strip():
        return _empty_arguments(schema), (_repair("There are no arguments; they were read as {}."),)
    value, problems = read_json(text)
    if isinstance(value, str):
        value, inner = read_json(value)
        problems = (*problems, _repair("The arguments stand in a JSON string; it was decoded."), *inner)
    if value is None and schema is not None and not schema.get("properties"):
        return {}, (*problems, _repair("The arguments are null; they were read as {}."))
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else f"{json.dumps(value)[:40]}"
        raise Refusal(f"The arguments are {kind}. Write one JSON object with the parameters' names as keys.")
    fitted, more = fit_arguments(cast("dict[str, Any]", value), schema)
    return fitted, (*problems, *more)


def _empty_arguments(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    # A reply that is cut off before its arguments looks the same, so a tool with parameters is not called without any.
    if schema is not None and schema.get("properties"):
        raise Refusal("There are no arguments. Write one JSON object with the parameters' names as keys.")
    return {}


def _read_with_repairs(text: str, error: json.JSONDecodeError) -> tuple[Any, tuple[Problem, ...]]:
    problems: list[Problem] = []
    inner = _without_fence(text)
    if inner is not None:
        text = inner
        problems.append(_repair("The code fence around the JSON was left out."))
    check_depth(text, DEPTH_LIMIT * 2)  # cheap, and avoids a slow pass over unreadable text
    found = read_lenient(text)
    rest = text[found.end :].strip().lstrip("]}").strip()
    if rest:
        raise Refusal(
            f"{rest[:20]!r} follows the JSON. Write one JSON value and nothing after it.",
            place=place_of(text, found.end),
        )
    problems.extend(found.problems)
    if text[found.end :].strip(" \t\r\n\ufeff"):
        problems.append(_repair("Extra closing brackets were left out.", place_of(text, found.end)))
    if not problems:
        problems.append(_repair(f"The text is not strict JSON ({error.msg}), and was read nevertheless."))
    return found.value, tuple(problems)


def _without_fence(text: str) -> str | None:
    """Returns the content of a fence that is the whole text, on one line or several. None without such a fence."""
    if fenced := _FENCED.fullmatch(text):
        return fenced[2]
    opening = _FENCE_OPENS.match(text)
    end = len(text.rstrip())
    if opening is None or not text.endswith(opening[1], opening.end(), end):
        return None
    return text[opening.end() : end - len(opening[1])]


def _check_values(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    known = cast("Mapping[str, Any]", schema.get("properties") or {})
    names = ", ".join(known) or "none"
    given = cast("Any", arguments.get("properties"))
    if "properties" not in known and isinstance(given, dict) and arguments.get("type", "object") == "object":
        raise Refusal(
            f"The arguments are a JSON Schema, not values. Write the parameters' names ({names}) with their values.",
            place="properties",
        )
    for name, value in arguments.items():
        if name in known and "object" not in types_accepted_by(known[name], schema) and _is_schema(value):
            raise Refusal(
                f"`{name}` is a piece of JSON Schema, not a value. Write the value itself.",
                place=name,
            )


def _is_schema(value: Any) -> bool:
    node = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return isinstance(node.get("type"), str) and node["type"] in JSON_TYPES and node.keys() <= _SCHEMA_KEYS


@dataclass(slots=True, kw_only=True)
class _Fitter:
    """Converts values to the form that a schema accepts."""

    root: Mapping[str, Any]
    problems: list[Problem]
    branches: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict[tuple[int, str], dict[str, Any]])

    def fit(self, value: Any, schema: Any, steps: tuple[str | int, ...], depth: int) -> Any:
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            value = self._only_item(cast("list[Any]", value), schema, steps)
        if isinstance(value, list) and depth > 0:
            return self._array(cast("list[Any]", value), schema, steps, depth)
        if isinstance(value, dict) and depth > 0:
            return self._object(cast("dict[str, Any]", value), schema, steps, depth)
        return cast("Any", value)

    def _only_item(self, value: list[Any], schema: Any, steps: tuple[str | int, ...]) -> Any:
        """Returns the only item of a list where the tool takes a number or a boolean, else the list.

        A list where it takes a string may be meant as its JSON text, so it stays one.
        """
        kinds, item = types_accepted_by(schema, self.root), cast("object", value[0])
        if not kinds <= _PLAIN or not _PLAIN_KINDS.get(type(item), frozenset()) & kinds:
            return value
        name = path_text(steps)
        self.problems.append(
            _repair(f"`{name}` is a list where the tool takes one value; its only item was taken.", name)
        )
        return item

    def _array(self, value: list[Any], schema: Any, steps: tuple[str | int, ...], depth: int) -> list[Any]:
        node = self._branch(schema, "array")
        items = node.get("items")
        places = cast("list[Any]", node.get("prefixItems") or [])
        return [
            self.fit(item, places[at] if at < len(places) else items, (*steps, at), depth - 1)
            for at, item in enumerate(value)
        ]

    def _object(self, value: dict[str, Any], schema: Any, steps: tuple[str | int, ...], depth: int) -> dict[str, Any]:
        node = self._branch(schema, "object")
        inner = cast("Mapping[str, Any]", node.get("properties") or {})
        other = node.get("additionalProperties")
        return {key: self.fit(item, inner.get(key, other), (*steps, key), depth - 1) for key, item in value.items()}

    def _branch(self, schema: Any, kind: str) -> dict[str, Any]:
        known = self.branches.get((id(schema), kind))
        if known is None:
            known = self.branches[id(schema), kind] = branch_of(schema, kind, self.root)
        return known


def _may_hold_container(text: str) -> bool:
    return text.lstrip().startswith(("{", "[", "```"))


def _containers_only(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """Returns which of object and array a schema accepts; none if it accepts a string too."""
    accepted = types_accepted_by(schema, root)
    return frozenset() if "string" in accepted else accepted & CONTAINER_TYPES


def _container(text: str, wanted: frozenset[str], name: str) -> tuple[Any, tuple[Problem, ...]]:
    """Returns the object or array of a JSON text, with its repairs.

    Any other text is returned unchanged, and validation reports the expected type.
    """
    if len(text) > JSON_TEXT_LIMIT:
        return text, ()
    try:
        value, problems = read_json(text)
    except Refusal:
        return text, ()
    if json_type(value) not in wanted:
        return text, ()
    note = _repair(f"`{name}` is a JSON text where the tool takes a value; it was decoded.", name)
    return value, (note, *problems)


def _repair(message: str, where: str = "") -> Problem:
    return Problem(message=message, repaired=True, place=where)
