"""Finds the values that a tool's schema allows at a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from toolwire.permission.condition import Kind, kind_of

Schema = Mapping[str, Any]

KINDS: frozenset[Kind] = frozenset({"null", "boolean", "number", "text", "list", "object"})
_OF_TYPE: Mapping[str, Kind] = {
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "text",
    "array": "list",
    "object": "object",
}
_DEPTH_LIMIT = 16
"""Limits schemas that refer to themselves."""


def at(schema: Schema, tokens: Sequence[str]) -> list[Schema]:
    """Returns the schemas for the value at the path, with references and choices resolved.

    The list is empty if the schema allows no value there.
    """
    found = _plain(schema, schema, 0)
    for token in tokens:
        found = [below for each in found for inner in _inside(each, token) for below in _plain(inner, schema, 0)]
    return found


def kinds(schemas: Iterable[Schema]) -> frozenset[Kind]:
    """Returns the types of values that the schemas allow."""
    return frozenset[Kind]().union(*map(_kinds, schemas))


def values(schemas: Sequence[Schema]) -> list[Any] | None:
    """Returns all values that the schemas allow; None if they cannot be listed."""
    found: list[Any] = []
    for schema in schemas:
        if "const" in schema:
            found.append(schema["const"])
        elif "enum" in schema:
            found += schema["enum"]
        elif _kinds(schema) <= {"boolean", "null"}:
            found += [True, False, None] if "null" in _kinds(schema) else [True, False]
        else:
            return None
    return found


def bounds(schemas: Sequence[Schema]) -> tuple[float | None, float | None]:
    """Returns the smallest and the largest number that the schemas allow; None for a missing bound."""
    least = [schema.get("minimum", schema.get("exclusiveMinimum")) for schema in schemas]
    most = [schema.get("maximum", schema.get("exclusiveMaximum")) for schema in schemas]
    return (
        None if None in least or not least else min(cast("list[float]", least)),
        None if None in most or not most else max(cast("list[float]", most)),
    )


def _kinds(schema: Schema) -> frozenset[Kind]:
    if "const" in schema:
        return frozenset({kind_of(schema["const"])})
    if "enum" in schema:
        return frozenset(kind_of(value) for value in schema["enum"])
    named: Any = schema.get("type")
    types = [named] if isinstance(named, str) else cast("list[str]", named or [])
    return frozenset(_OF_TYPE[each] for each in types if each in _OF_TYPE) or KINDS


def _plain(schema: object, root: Schema, depth: int) -> list[Schema]:
    """Returns the schema with references and choices resolved, and the members of `allOf` merged."""
    if schema is False or depth > _DEPTH_LIMIT:
        return []
    if not isinstance(schema, Mapping):
        return [{}]
    given = cast("Schema", schema)
    rest = {key: value for key, value in given.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}
    found: list[Schema] = [rest]
    if isinstance(given.get("$ref"), str):
        found = _joined(found, _plain(_resolved(given["$ref"], root), root, depth + 1))
    for key in ("anyOf", "oneOf"):
        if key in given:
            members = [each for member in given[key] for each in _plain(member, root, depth + 1)]
            found = _joined(found, members)
    for member in given.get("allOf", ()):
        found = _joined(found, _plain(member, root, depth + 1))
    return found


def _joined(found: list[Schema], others: list[Schema]) -> list[Schema]:
    return [{**one, **other} for one in found for other in others]


def _resolved(reference: str, root: Schema) -> object:
    found: object = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if key:
            found = cast("Schema", found).get(key, {}) if isinstance(found, Mapping) else {}
    return cast("object", found)


def _inside(schema: Schema, token: str) -> list[object]:
    """Returns the schemas one step further down.

    A name outside `properties` has no schema unless the schema allows extra ones.
    """
    found: list[object] = []
    allowed = _kinds(schema)
    properties = schema.get("properties")
    if "object" in allowed:
        if properties is not None and token in properties:
            found.append(properties[token])
        elif "additionalProperties" in schema:
            found.append(schema["additionalProperties"])
        elif properties is None:
            found.append({})
    if "list" in allowed and token.isascii() and token.isdigit():
        first = cast("Sequence[object]", schema.get("prefixItems", ()))
        found.append(first[int(token)] if int(token) < len(first) else schema.get("items", {}))
    return found
