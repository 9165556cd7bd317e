"""Conversion of JSON Schema for Gemini's two schema fields: JSON Schema in the newer, OpenAPI in the older."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from toolwire.definition.derived import once_per_schema
from toolwire.definition.hostile.schema_walk import map_schemas, schemas_in
from toolwire.definition.tool import Tool
from toolwire.protocols.native.declared_schema import SAID_LIMIT, add_to_description, type_of_values
from toolwire.protocols.native.provider_schema import inline_references, isolate_references, properties_named

_KEPT = frozenset(
    {"type", "format", "title", "description", "enum", "minItems", "maxItems", "minimum", "maximum", "nullable"}
    | {"minLength", "maxLength", "pattern", "minProperties", "maxProperties", "required", "default"}
)
_FORMATS = {"string": ("date-time", "enum"), "number": ("float", "double"), "integer": ("int32", "int64")}


@once_per_schema
def newer_parameters(tool: Tool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns `json_schema` of the tool's parameters. All callers share it."""
    return json_schema(properties_named(tool))


@once_per_schema
def older_parameters(tool: Tool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns `older_schema` of the tool's parameters. All callers share it."""
    return older_schema(properties_named(tool))


def json_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the schema for `parameters_json_schema`, and the parts that the API handles only partly.

    References are kept, with no other keyword beside them. `const` becomes an `enum` with one value.
    """
    told = map_schemas(isolate_references(schema), _in_this_form)
    return told, tuple(_find_required_cycles(schema))


def older_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the schema for `parameters`, and the constraints that were lost.

    References are replaced by their targets, and unsupported keywords are dropped.
    """
    whole, lost = inline_references(schema)
    dropped: set[str] = set()
    told = _older(whole, dropped)
    return told, (*lost, *(f"{word!r} cannot be expressed here" for word in sorted(dropped)))


def _in_this_form(node: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema without `const`, and with a property for each name that is required."""
    required = cast("Any", node.get("required"))
    properties = cast("dict[str, Any]", node.get("properties", {}))
    unlisted: dict[str, Any] = {name: {} for name in required or () if name not in properties}
    listed = {**node, "properties": {**properties, **unlisted}} if unlisted else node
    return _with_enum_of(listed, (str, int, float))


def _without_const(node: dict[str, Any]) -> dict[str, Any]:
    if "const" not in node:
        return node
    return {**{key: value for key, value in node.items() if key != "const"}, "enum": [node["const"]]}


def _with_enum_of(schema: dict[str, Any], kinds: tuple[type, ...]) -> dict[str, Any]:
    """Returns a schema whose `enum` has only values of these types, and no empty text: the API refuses others.

    A null beside such values has a schema of its own. The description tells any other enum.
    """
    node = _without_const(schema)
    values = cast("list[Any]", node.get("enum") or [])
    if all(_is_of(value, kinds) for value in values):
        return node
    rest = {key: value for key, value in node.items() if key != "enum"}
    others = [value for value in values if value is not None]
    if others and "anyOf" not in rest and all(_is_of(value, kinds) for value in others):
        words = {key: rest[key] for key in ("title", "description", "default") if key in rest}
        inner = {key: value for key, value in rest.items() if key not in words and key != "type"}
        return {**words, "anyOf": [{**inner, "type": type_of_values(others), "enum": others}, {"type": "null"}]}
    written = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    written = written if len(written) <= SAID_LIMIT else f"{written[:SAID_LIMIT]}… ({len(values):,} in all)"
    told = add_to_description(rest, f"Must be {'one of ' if len(values) > 1 else ''}{written}.")
    return told if "type" in told else {**told, "type": type_of_values(values)}


def _is_of(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and value != ""


def _find_required_cycles(schema: dict[str, Any]) -> Iterator[str]:
    """Reports definitions that contain themselves in a required property. The API limits how deep it expands them."""
    definitions = cast("dict[str, Any]", schema.get("$defs", {}))
    for name, schema_of_it in definitions.items():
        node = cast("dict[str, Any]", schema_of_it) if isinstance(schema_of_it, dict) else {}
        for key, inner in cast("dict[str, Any]", node.get("properties", {})).items():
            itself = f"#/$defs/{name}"
            if key in node.get("required", []) and any(part.get("$ref") == itself for part in schemas_in(inner)):
                yield f"{name}.{key} holds {name} again and is required, which the API follows only so far"


def _older(schema: Any, dropped: set[str]) -> dict[str, Any]:
    given = _without_const(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else {}
    node = _with_enum_of(given, (str,))
    told = {key: value for key, value in node.items() if key in _KEPT and key not in ("type", "enum", "format")}
    told.update(_convert_type(node))
    options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    others = [option for option in options if option != {"type": "null"}]
    if len(others) < len(options):
        told["nullable"] = True
    if len(others) == 1:
        told = {**_older(others[0], dropped), **told}
    elif others:
        told["any_of"] = [_older(option, dropped) for option in others]
    if isinstance(node.get("properties"), dict):
        told["properties"] = {
            name: _older(inner, dropped) for name, inner in cast("dict[str, Any]", node["properties"]).items()
        }
    if "required" in told:
        told["required"] = [name for name in told["required"] if name in told.get("properties", {})]
    if told.get("type") == "array" or "items" in node:
        told["items"] = _older(node.get("items", {}), dropped)
    dropped.update(_unsaid(given))
    return told


def _convert_type(node: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    kinds = cast("Any", node.get("type"))
    if isinstance(kinds, list):
        named = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        if len(named) < len(cast("list[str]", kinds)):
            told["nullable"] = True
        if len(named) == 1:
            kinds = named[0]
        else:
            told["any_of"] = [{"type": kind, **({"items": {}} if kind == "array" else {})} for kind in named]
            kinds = None
    if isinstance(kinds, str):
        told["type"] = kinds
        if node.get("format") in _FORMATS.get(kinds, ()):
            told["format"] = node["format"]
    values = cast("list[Any]", node.get("enum", []))
    if values and all(isinstance(value, str) for value in values):
        told |= {"type": "string", "enum": values}
    return told


def _unsaid(node: dict[str, Any]) -> set[str]:
    told = _KEPT | {"anyOf", "oneOf", "properties", "items", "const"}
    said = {key for key in node if key in told or key.startswith("$") or key == "definitions"}
    unsaid = node.keys() - said - {"examples", "deprecated", "contentEncoding", "readOnly", "writeOnly"}
    if node.get("additionalProperties") is False:
        unsaid -= {"additionalProperties"}
    values = cast("list[Any]", node.get("enum", []))
    return unsaid | ({"enum"} if any(not isinstance(value, str) for value in values) else set[str]())
