"""Adaptation of a tool's parameters to a provider's API: schema references and property names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.derived import once_per_schema
from toolwire.definition.hostile.schema_walk import map_schemas, with_inner
from toolwire.definition.tool import Tool
from toolwire.definition.words import resolve
from toolwire.protocols.native.declared_schema import plain_parameters, schema_for_providers
from toolwire.protocols.tool_names import property_name

_BESIDE = frozenset({"$defs", "definitions", "$schema", "$id", "$comment"})


def isolate_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with no keyword beside a `$ref`. A reference with other keywords moves into an `anyOf`."""

    def move_reference(node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node or not node.keys() - _BESIDE - {"$ref"}:
            return node
        kept = {key: value for key, value in node.items() if key != "$ref"}
        reference = {"$ref": node["$ref"]}
        if "anyOf" not in kept:
            return {**kept, "anyOf": [reference]}
        return {**kept, "allOf": [*kept.get("allOf", []), reference]}

    return map_schemas(schema, move_reference)


def inline_references(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the schema without references, and a list of the lost constraints.

    A reference to a schema that contains it cannot be expanded. It is reduced to the type of its target. So are the
    references beyond a fixed number, because a few references can describe a schema of exponential size.
    """
    writing = _Expansion(root=schema)
    whole = writing.expand(schema, ())
    kept = {key: value for key, value in whole.items() if key not in ("$defs", "definitions")}
    return kept, tuple(dict.fromkeys(writing.lost))


@once_per_schema
def properties_named(tool: Tool) -> dict[str, Any]:
    """Returns the tool's parameters with property names that every provider accepts. All callers share them."""
    return _with_names(schema_for_providers(tool))


@once_per_schema
def plain_properties_named(tool: Tool) -> tuple[dict[str, Any], str]:
    """Returns `plain_parameters` with these property names, and what the description must say."""
    schema, words = plain_parameters(tool)
    return _with_names(schema), words


def _with_names(schema: dict[str, Any]) -> dict[str, Any]:
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


@dataclass(slots=True, kw_only=True)
class _Expansion:
    """The state of one expansion of references."""

    root: Mapping[str, Any]
    lost: list[str] = field(default_factory=list[str])
    left: int = 1_000
    """Number of references that may still be expanded. Each may contain two more."""

    def expand(self, schema: Any, within: tuple[str, ...]) -> Any:
        if not isinstance(schema, dict):
            return schema
        node = cast("dict[str, Any]", schema)
        reference = node.get("$ref")
        if isinstance(reference, str):
            target = resolve(node, self.root)
            beside = {key: value for key, value in node.items() if key != "$ref"}
            if reference in within or self.left <= 0:
                self.lost.append(_note_of_loss(reference, is_own=reference in within))
                target = {"type": target["type"]} if "type" in target else {}
            self.left -= 1
            node, within = {**target, **beside}, (*within, reference)
        return with_inner(node, lambda inner: self.expand(inner, within))


def _note_of_loss(reference: str, *, is_own: bool) -> str:
    why = "stands in itself" if is_own else "is one reference too many"
    return f"{reference} {why} and cannot be written out: its contents are left out"
