"""Adaptation of a tool's parameters to a provider's API: schema references and property names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.derived import once_per_schema, shared_input_schema
from toolwire.definition.tool import Tool
from toolwire.definition.words import resolve
from toolwire.protocols.tool_names import property_name

_BESIDE = frozenset({"$defs", "definitions", "$schema", "$id", "$comment"})


def references_alone(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with no keyword beside a `$ref`. A reference with other keywords moves into an `anyOf`."""

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
    """Returns the schema without references, and a list of the lost constraints.

    A reference to a schema that contains it cannot be expanded. It is reduced to the type of its target. So are the
    references beyond a fixed number, because a few references can describe a schema of exponential size.
    """
    writing = _Expansion(root=schema)
    whole = writing.out(schema, ())
    kept = {key: value for key, value in whole.items() if key not in ("$defs", "definitions")}
    return kept, tuple(dict.fromkeys(writing.lost))


@once_per_schema
def properties_named(tool: Tool) -> dict[str, Any]:
    """Returns the tool's parameters with property names that every provider accepts. All callers share them."""
    schema = shared_input_schema(tool)
    names = {name: property_name(name) for name in schema.get("properties", {})}
    if all(name == written for name, written in names.items()):
        return schema
    named = {**schema, "properties": {names[name]: node for name, node in schema["properties"].items()}}
    if "required" in schema:
        named["required"] = [names.get(name, name) for name in schema["required"]]
    return named


def properties_restored(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments under the tool's own parameter names. Unknown names stay unchanged."""
    names = _own_names(tool)
    restored: dict[str, Any] = {}
    for name, value in arguments.items():
        known = names.get(name, name)
        restored[name if known in restored or (known != name and known in arguments) else known] = value
    return restored


@once_per_schema
def _own_names(tool: Tool) -> dict[str, str]:
    return {property_name(parameter.name): parameter.name for parameter in tool.visible_parameters}


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
            node[key] = change(value)
    return node


_KEYED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)


@dataclass(slots=True, kw_only=True)
class _Expansion:
    """The state of one expansion of references."""

    root: Mapping[str, Any]
    lost: list[str] = field(default_factory=list[str])
    left: int = 1_000
    """Number of references that may still be expanded. Each may contain two more."""

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
    return f"{reference} {why} and cannot be written out: its contents are left out"
