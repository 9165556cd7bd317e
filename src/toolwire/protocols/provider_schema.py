"""A tool's parameters in the words that a provider's API takes: references, and names of properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.definition.words import resolve
from toolwire.protocols.names import property_name

_BESIDE = frozenset({"$defs", "definitions", "$schema", "$id", "$comment"})


def references_alone(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with no word beside a `$ref`: where there was one, the reference stands in an `anyOf`."""

    def alone(node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node or not node.keys() - _BESIDE - {"$ref"}:
            return node
        kept = {key: value for key, value in node.items() if key != "$ref"}
        reference = {"$ref": node["$ref"]}
        if "anyOf" not in kept:
            return {**kept, "anyOf": [reference]}
        return {**kept, "allOf": [*kept.get("allOf", []), reference]}

    return mapped(schema, alone)


def inlined(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same schema without references, and what was lost.

    A reference to something that it stands in cannot be written out: it becomes whatever type it has, with nothing
    said of what is inside. So does one too many, where a few references stand for a schema without end.
    """
    writing = _Writing(root=schema)
    whole = writing.out(schema, ())
    kept = {key: value for key, value in whole.items() if key not in ("$defs", "definitions")}
    return kept, tuple(dict.fromkeys(writing.lost))


def properties_named(tool: Tool) -> dict[str, Any]:
    """The tool's parameters with each property's name as every provider takes it."""
    schema = tool.input_schema
    names = {name: property_name(name) for name in schema.get("properties", {})}
    if all(name == written for name, written in names.items()):
        return schema
    named = {**schema, "properties": {names[name]: node for name, node in schema["properties"].items()}}
    if "required" in schema:
        named["required"] = [names.get(name, name) for name in schema["required"]]
    return named


def properties_restored(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments under the names that the tool has for them; a name that is no property's stays."""
    names = {property_name(parameter.name): parameter.name for parameter in tool.visible_parameters}
    restored: dict[str, Any] = {}
    for name, value in arguments.items():
        known = names.get(name, name)
        restored[name if known in restored or (known != name and known in arguments) else known] = value
    return restored


def mapped(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The schema with every schema in it changed, from the outside in."""
    if not isinstance(schema, dict):
        return schema
    return with_inner(change(cast("dict[str, Any]", schema)), lambda inner: mapped(inner, change))


def with_inner(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The schema with the schemas right inside of it changed."""
    node = dict(schema)
    for key, value in schema.items():
        if key in _KEYED and isinstance(value, dict):
            node[key] = {name: change(item) for name, item in cast("dict[str, Any]", value).items()}
        elif key in _LISTED and isinstance(value, list):
            node[key] = [change(item) for item in cast("list[Any]", value)]
        elif key in _SINGLE:
            node[key] = change(value)
    return node


_KEYED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)


@dataclass(slots=True, kw_only=True)
class _Writing:
    """References being written out."""

    root: Mapping[str, Any]
    lost: list[str] = field(default_factory=list[str])
    left: int = 1_000
    """References that may still be written out: each may hold two more."""

    def out(self, schema: Any, within: tuple[str, ...]) -> Any:
        if not isinstance(schema, dict):
            return schema
        node = cast("dict[str, Any]", schema)
        reference = node.get("$ref")
        if isinstance(reference, str):
            target = resolve(node, self.root)
            beside = {key: value for key, value in node.items() if key != "$ref"}
            if reference in within or self.left <= 0:
                self.lost.append(_lost(reference, is_own=reference in within))
                target = {"type": target["type"]} if "type" in target else {}
            self.left -= 1
            node, within = {**target, **beside}, (*within, reference)
        return with_inner(node, lambda inner: self.out(inner, within))


def _lost(reference: str, *, is_own: bool) -> str:
    why = "stands in itself" if is_own else "is one reference too many"
    return f"{reference} {why} and cannot be written out: what is inside of it is not said"
