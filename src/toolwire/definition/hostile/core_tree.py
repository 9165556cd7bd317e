"""The tree of a pydantic core schema: access to the schemas directly below a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

Walk = Callable[[Any], Any]

HOLDS_SCHEMA = frozenset(
    {
        *("schema", "items_schema", "keys_schema", "values_schema", "lax_schema", "strict_schema", "python_schema"),
        *("json_schema", "arguments_schema", "var_args_schema", "var_kwargs_schema", "extras_schema"),
        *("extras_keys_schema", "definitions", "steps", "fields", "choices"),
    }
)
"""Keys of a core schema that hold other schemas. Defaults and metadata may look like schemas and are not walked."""

CLASSES = frozenset({"model", "dataclass"})

SEVERAL = frozenset(
    {"list", "deque", "tuple", "set", "frozenset", "dict", "ordered-dict", "frozendict", "counter"},
)
"""Core schemas for any number of values. They can stop at the first error."""


def with_children(schema: dict[str, Any], walk: Walk) -> dict[str, Any]:
    """Returns a copy of the schema with `walk` applied to each schema directly below it."""
    return {key: _replace_below(key, value, walk) if key in HOLDS_SCHEMA else value for key, value in schema.items()}


def children(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the schemas directly below the schema."""
    found: list[dict[str, Any]] = []
    with_children(dict(schema), found.append)
    return found


def with_label(before: Any, choice: Any) -> Any:
    """Returns a union's rewritten choice with the label that pydantic's errors used before the rewriting."""
    was_wrapped = isinstance(choice, dict) and cast("Any", choice)["type"] == "function-wrap" != before["type"]
    return cast("Any", (choice, before["type"]) if was_wrapped else choice)


_JSON_SCALARS = frozenset({"str", "int", "float", "bool", "none"})
_CHANGES_TEXT = frozenset({"strip_whitespace", "to_lower", "to_upper"})


def is_json(schema: Mapping[str, Any]) -> bool:
    """True if the schema accepts only JSON types, and accepts its own output unchanged."""
    match schema["type"]:
        case "default" | "nullable":
            return is_json(schema["schema"])
        case "list":
            return is_json(schema.get("items_schema", {"type": "any"}))
        case "dict":
            keys, values = schema.get("keys_schema", {}), schema.get("values_schema", {"type": "any"})
            return keys.get("type") == "str" and is_json(keys) and is_json(values)
        case "literal":
            return all(type(each) in (str, int, bool, type(None)) for each in schema["expected"])
        case kind:
            return kind in _JSON_SCALARS and not _CHANGES_TEXT & schema.keys()


def _replace_below(key: str, value: Any, walk: Walk) -> Any:
    if key in ("fields", "choices") and isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        return {name: _each(item, walk) for name, item in named.items()}
    return _each(value, walk)


def _each(value: Any, walk: Walk) -> Any:
    if isinstance(value, list):
        return [_each(item, walk) for item in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple(_each(item, walk) for item in cast("tuple[Any, ...]", value))
    return walk(value) if isinstance(value, dict) else value
