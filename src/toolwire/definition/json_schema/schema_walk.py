"""Walks through a JSON schema and the schemas in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast


def mapped(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Returns the schema with `change` applied to every schema in it, outermost first."""
    if not isinstance(schema, dict):
        return schema
    return with_inner(change(cast("dict[str, Any]", schema)), lambda inner: mapped(inner, change))


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
