"""Reading of the JSON that models write: strictly first, then with repairs, then fitted to the tool's schema.

A value is never invented, and truncated JSON never runs. Every repair is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.words import bounded, path_text, resolve
from toolwire.protocols.base import DEPTH_LIMIT, Refusal
from toolwire.protocols.reading.lenient_json import place, read_lenient
from toolwire.protocols.reading.strict_json import check_depth, load_json
from toolwire.vocabulary.calls import Problem

_FENCED = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+\n(.*)\n[ \t]*+\1\s*+", re.DOTALL)
_FENCE_OPENS = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+(?=[\[{])")
DECODED_LIMIT = 256
"""Maximum number of JSON texts inside one call's arguments that are decoded. Later ones stay text."""

_CONTAINERS = frozenset({"object", "array"})
_PLAIN = frozenset({"number", "integer", "boolean", "null"})
_PLAIN_KINDS: Mapping[type, frozenset[str]] = {
    int: frozenset({"number", "integer"}),
    float: frozenset({"number"}),
    bool: frozenset({"boolean"}),
}
"""The types of a schema that accept a value of a Python type."""

_JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
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


def read_json(text: str, *, depth: int = DEPTH_LIMIT) -> tuple[Any, tuple[Problem, ...]]:
    """Reads a text as one JSON value, and returns it with every repair.

    Raises:
        Refusal: The text is truncated or ambiguous, or exceeds a limit.
    """
    try:
        return load_json(text, depth=depth), ()
    except json.JSONDecodeError as error:
        return _repaired(text, depth, error)


@bounded
def fit_arguments(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Decodes JSON texts where the schema accepts an object or an array but no string.

    The only item of a list is taken where the schema accepts nothing but numbers, booleans and null.

    Raises:
        Refusal: The arguments are the tool's schema, or contain schemas in place of values.
    """
    if schema is None:
        return dict(arguments), ()
    _check_values(arguments, schema)
    fitting = _Fitting(root=schema)
    return fitting.fit(dict(arguments), schema, (), DEPTH_LIMIT), tuple(fitting.problems)


def _arguments(text: str, schema: Mapping[str, Any] | None) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if not text.strip():
        return _nothing(schema), (_repair("There are no arguments; they were read as {}."),)
    value, problems = read_json(text)
    if isinstance(value, str):
        value, inner = read_json(value)
        problems = (*problems, _repair("The arguments stand in a JSON string; it was decoded."), *inner)
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else f"{json.dumps(value)[:40]}"
        raise Refusal(f"The arguments are {kind}. Write one JSON object with the parameters' names as keys.")
    fitted, more = fit_arguments(cast("dict[str, Any]", value), schema)
    return fitted, (*problems, *more)


def _nothing(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    # A reply that is cut off before its arguments looks the same, so a tool with parameters is not called without any.
    if schema is not None and schema.get("properties"):
        raise Refusal("There are no arguments. Write one JSON object with the parameters' names as keys.")
    return {}


def _repaired(text: str, depth: int, error: json.JSONDecodeError) -> tuple[Any, tuple[Problem, ...]]:
    problems: list[Problem] = []
    inner = _without_fence(text)
    if inner is not None:
        text = inner
        problems.append(_repair("The code fence around the JSON was left out."))
    check_depth(text, depth * 2)  # cheap, and avoids a slow pass over unreadable text
    found = read_lenient(text, depth=depth)
    rest = text[found.end :].strip().lstrip("]}").strip()
    if rest:
        raise Refusal(
            f"{rest[:20]!r} follows the JSON. Write one JSON value and nothing after it.",
            place=place(text, found.end),
        )
    problems.extend(found.problems)
    if text[found.end :].strip(" \t\r\n\ufeff"):
        problems.append(_repair("Extra closing brackets were left out.", place(text, found.end)))
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
        if name in known and "object" not in _kinds(known[name], schema) and _is_schema(value):
            raise Refusal(
                f"`{name}` is a piece of JSON Schema, not a value. Write the value itself.",
                place=name,
            )


def _is_schema(value: Any) -> bool:
    node = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return isinstance(node.get("type"), str) and node["type"] in _JSON_TYPES and node.keys() <= _SCHEMA_KEYS


@dataclass(slots=True, kw_only=True)
class _Fitting:
    """Converts values to the form that a schema accepts."""

    root: Mapping[str, Any]
    problems: list[Problem] = field(default_factory=list[Problem])
    decoded: int = 0
    branches: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict[tuple[int, str], dict[str, Any]])

    def fit(self, value: Any, schema: Any, steps: tuple[str | int, ...], depth: int) -> Any:
        if isinstance(value, str) and value.lstrip().startswith(("{", "[", "```")):
            value = self._decoded(value, schema, steps, depth)
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            value = self._taken_out(cast("list[Any]", value), schema, steps)
        if isinstance(value, list) and depth > 0:
            return self._array(cast("list[Any]", value), schema, steps, depth)
        if isinstance(value, dict) and depth > 0:
            return self._object(cast("dict[str, Any]", value), schema, steps, depth)
        return cast("Any", value)

    def _taken_out(self, value: list[Any], schema: Any, steps: tuple[str | int, ...]) -> Any:
        """Returns the only item of a list where the tool takes a number or a boolean, else the list.

        A list where it takes a string may be meant as its JSON text, so it stays one.
        """
        kinds, item = _kinds(schema, self.root), cast("object", value[0])
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

    def _decoded(self, text: str, schema: Any, steps: tuple[str | int, ...], depth: int) -> Any:
        kinds = _kinds(schema, self.root)
        if "string" in kinds or not kinds & _CONTAINERS or self.decoded >= DECODED_LIMIT:
            return text
        self.decoded += 1
        try:
            value, problems = read_json(text, depth=depth)
        except Refusal:
            return text  # validation will report the expected type
        if ("object" if isinstance(value, dict) else "array" if isinstance(value, list) else "") not in kinds:
            return text
        name = path_text(steps)
        self.problems.append(_repair(f"`{name}` is a JSON text where the tool takes a value; it was decoded.", name))
        self.problems.extend(problems)
        return cast("Any", value)

    def _branch(self, schema: Any, kind: str) -> dict[str, Any]:
        known = self.branches.get((id(schema), kind))
        if known is None:
            known = self.branches[id(schema), kind] = _branch(schema, kind, self.root)
        return known


def _branch(schema: Any, kind: str, root: Mapping[str, Any], depth: int = 4) -> dict[str, Any]:
    """Returns the schema for a value of this kind: the only fitting alternative, or the schema itself."""
    node = resolve(schema, root)
    options = [option for key in ("anyOf", "oneOf") for option in cast("list[Any]", node.get(key, []))]
    fitting = [option for option in options if kind in _kinds(option, root)]
    return _branch(fitting[0], kind, root, depth - 1) if len(fitting) == 1 and depth else node


def _kinds(schema: Any, root: Mapping[str, Any], depth: int = 4) -> frozenset[str]:
    """Returns the JSON types that a schema accepts. A schema without types accepts all."""
    node = resolve(schema, root)
    options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    if options and depth:
        return frozenset[str]().union(*(_kinds(option, root, depth - 1) for option in options))
    kind = node.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(cast("list[str]", kind))
    if "enum" in node or "const" in node:
        return _JSON_TYPES
    return frozenset({"object"}) if "properties" in node else _JSON_TYPES


def _repair(message: str, where: str = "") -> Problem:
    return Problem(message=message, repaired=True, place=where)
