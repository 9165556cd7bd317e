"""Unions of objects that one field tells apart, such as `kind`: its name and its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from toolwire.definition.words import resolve


class Tags(NamedTuple):
    """The field that tells the objects of a union apart."""

    name: str
    options: dict[Any, dict[str, Any]]
    """The schema of each value of the field, in order."""

    @property
    def node(self) -> dict[str, Any]:
        """The schema of the field."""
        return {"enum": list(self.options)}

    def option_for(self, value: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the schema that the object's field names. None if the field is missing or has another value."""
        tag = value.get(self.name)
        return self.options.get(tag) if isinstance(tag, str | int) else None


def union_at(node: Any, root: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the union that this schema is, and its options without null. A schema that is no union has none.

    `X | null` is X, which may be a union itself.
    """
    union = resolve(node, root)
    for _ in range(_LEVELS_LIMIT):
        listed = cast("list[Any]", union.get("anyOf") or union.get("oneOf") or [])
        options = [option for option in (resolve(one, root) for one in listed) if option.get("type") != "null"]
        if len(options) != 1 or not {"anyOf", "oneOf"} & options[0].keys():
            return union, options
        union = options[0]
    return union, []


_LEVELS_LIMIT = 8


def tags_of(union: Mapping[str, Any], root: Mapping[str, Any]) -> Tags | None:
    """Returns the field that tells the options apart: the one that the schema names, or one with a constant in each."""
    discriminator = union.get("discriminator")
    if isinstance(discriminator, Mapping):
        named = cast("Mapping[str, Any]", discriminator)
        mapping = cast("Mapping[str, Any]", named.get("mapping") or {})
        if mapping and isinstance(named.get("propertyName"), str):
            return Tags(named["propertyName"], {tag: _target(option, root) for tag, option in mapping.items()})
    options = union_at(union, root)[1]
    properties = [cast("dict[str, Any]", option.get("properties") or {}) for option in options]
    for name in properties[0] if len(properties) > 1 else ():
        found = [_constant(each.get(name)) for each in properties]
        if None not in found and len(set(found)) == len(found):
            return Tags(name, dict(zip(found, options, strict=True)))
    return None


def _target(option: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    return resolve(option if isinstance(option, dict) else {"$ref": option}, root)


def _constant(node: Any) -> str | None:
    """Returns the only text that the schema allows, or None."""
    if not isinstance(node, dict):
        return None
    schema = cast("dict[str, Any]", node)
    values: Any = schema.get("enum", [schema.get("const")])
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None
