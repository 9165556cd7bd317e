"""The JSON types that a schema accepts. Readers of texts decide by them what a text stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolwire.definition.words import flatten_schema, limit_references, resolve

LEVELS_LIMIT = 8
"""Maximum nesting of combined schemas. A schema that is nested deeper reads as one that names no type."""

JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
CONTAINER_TYPES = frozenset({"object", "array"})
_ALTERNATIVES = ("anyOf", "oneOf")


@limit_references
def types_accepted_by(schema: Any, root: Mapping[str, Any], depth: int = LEVELS_LIMIT) -> frozenset[str]:
    """Returns the JSON types that a schema accepts: all of them if it names none.

    `root` is the schema that its references belong to.
    """
    node = resolve(schema, root)
    parts = [_own_types(node)]
    if depth > 0:
        for key in _ALTERNATIVES:
            if node.get(key):
                options = cast("list[Any]", node[key])
                parts.append(frozenset[str]().union(*(types_accepted_by(one, root, depth - 1) for one in options)))
        parts.extend(types_accepted_by(part, root, depth - 1) for part in cast("list[Any]", node.get("allOf") or []))
    return JSON_TYPES.intersection(*parts)


def branch_of(schema: Any, kind: str, root: Mapping[str, Any], depth: int = LEVELS_LIMIT) -> dict[str, Any]:
    """Returns the schema for a value of this type: the only fitting alternative, or the schema itself."""
    node = flatten_schema(schema, root)
    options = [option for key in _ALTERNATIVES for option in cast("list[Any]", node.get(key) or [])]
    fitting = [option for option in options if kind in types_accepted_by(option, root)]
    return branch_of(fitting[0], kind, root, depth - 1) if len(fitting) == 1 and depth > 0 else node


def json_type(value: object) -> str:
    """Returns the JSON type of a value that JSON can hold."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _own_types(node: Mapping[str, Any]) -> frozenset[str]:
    if isinstance(node.get("enum"), list):
        return frozenset(map(json_type, cast("list[Any]", node["enum"])))
    if "const" in node:
        return frozenset({json_type(node["const"])})
    named = node.get("type")
    if isinstance(named, list):
        return _with_integers(map(str, cast("list[Any]", named)))
    return _with_integers([named]) if isinstance(named, str) else JSON_TYPES


def _with_integers(named: Iterable[str]) -> frozenset[str]:
    """Returns the types with `integer` beside `number`, because every integer is a number."""
    types = frozenset(named)
    return types | {"integer"} if "number" in types else types
