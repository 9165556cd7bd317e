"""Walks through a JSON schema and the schemas in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast


def map_schemas(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Returns the schema with `change` applied to every schema in it, outermost first."""
    if not isinstance(schema, dict):
        return schema
    return with_inner(change(cast("dict[str, Any]", schema)), lambda inner: map_schemas(inner, change))


def schemas_in(schema: Any) -> list[dict[str, Any]]:
    """Returns the schema and every schema in it, outermost first."""
    found: list[dict[str, Any]] = []

    def keep(node: dict[str, Any]) -> dict[str, Any]:
        found.append(node)
        return node

    map_schemas(schema, keep)
    return found


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every object in a JSON value, in order. Those in defaults and examples are among them."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found = cast("dict[str, Any]", item)
            yield found
            waiting.extend(reversed(found.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(cast("list[Any]", item)))


def with_inner(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns the schema with `change` applied to its direct subschemas."""
    node = dict(schema)
    for key, value in schema.items():
        if key in _KEYED and isinstance(value, dict):
            node[key] = {name: change(item) for name, item in cast("dict[str, Any]", value).items()}
        elif key in _LISTED and isinstance(value, list):
            node[key] = [change(item) for item in cast("list[Any]", value)]
        elif key in _SINGLE:
            # `items` is a list in older drafts.
            node[key] = (
                [change(item) for item in cast("list[Any]", value)] if isinstance(value, list) else change(value)
            )
    return node


_KEYED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
