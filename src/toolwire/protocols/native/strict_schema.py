"""OpenAI's strict mode: a tool's parameters in the subset of JSON Schema that the API can enforce.

Strict mode requires every property. An optional property is declared as nullable, and a null for it is removed before
the tool receives the arguments. Its description says what null stands for. A schema that strict mode cannot express is
left unchanged and is not strict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolwire.definition.arguments.untaken_nulls import takes_null
from toolwire.definition.derived import once_per_schema
from toolwire.definition.from_function import tool_of
from toolwire.definition.hostile.schema_walk import with_inner
from toolwire.definition.tool import Tool
from toolwire.definition.words import limit_references, path_text, resolve
from toolwire.protocols.native.declared_schema import schema_for_providers, type_of_values
from toolwire.protocols.native.provider_schema import isolate_references

PROPERTY_LIMIT = 5_000
"""Maximum number of properties of all objects in one schema."""

LEVEL_LIMIT = 10
"""Maximum nesting of objects and arrays."""

ENUM_LIMIT = 1_000
"""Maximum number of enum values in one schema."""

LONG_ENUM = 250
"""Number of text values in one enum above which their length is limited to `LONG_ENUM_CHARACTERS`."""

LONG_ENUM_CHARACTERS = 15_000
"""Maximum number of characters of all values of a long enum."""

TEXT_LIMIT = 120_000
"""Maximum number of characters of all names of properties and definitions, enum values and const values together."""

_TAKEN = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems", "title", "description"}
)
# Annotations: dropping them changes no call.
_LEFT_OUT = frozenset(
    {"default", "examples", "example", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$comment", "$schema", "$id", "contentEncoding", "contentMediaType"}
)
_COMBINING = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if")
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_IRREGULAR = re.compile(r"(?:[^\\]|^)(?:\\\\)*(?:\(\?(?!:)|\\[1-9k])")
"""Look-around, back-references, and groups with names or flags. A grammar has none of them."""


def strict_problems(tool: Any) -> tuple[str, ...]:
    """Lists the schema constraints that strict mode cannot express, each with its place. Empty for a strict tool."""
    return _strict_problems(tool_of(tool))


@once_per_schema
def strict_schema(tool: Tool) -> dict[str, Any]:
    """Returns the strict parameters of a tool that has no `strict_problems`. All callers share them."""
    return isolate_references(_strict(schema_for_providers(tool)))


@limit_references
def without_nulls(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments that follow `strict_schema` without the nulls of omitted optional properties."""
    schema = schema_for_providers(tool)
    return _drop_nulls(arguments, schema, schema)


@once_per_schema
def _strict_problems(tool: Tool) -> tuple[str, ...]:
    return tuple(_problems(schema_for_providers(tool)))


def _problems(root: dict[str, Any]) -> Iterator[str]:
    if root.get("type") != "object" or not root.keys().isdisjoint(_COMBINING):
        yield "the parameters are not a plain object"
        return
    properties = enums = characters = 0
    for node, place, level in _nodes(root):
        yield from (f"{_at(place)}{text}" for text in _node_problems(node, is_root=not place))
        properties += len(node.get("properties") or {})
        enums += len(node.get("enum") or [])
        characters += _count_characters(node)
        if level > LEVEL_LIMIT:
            yield f"{_at(place)}nested deeper than {LEVEL_LIMIT} levels"
            return
    if properties > PROPERTY_LIMIT:
        yield f"{properties:,} properties, and {PROPERTY_LIMIT:,} are allowed"
    if enums > ENUM_LIMIT:
        yield f"{enums:,} values of enumerations, and {ENUM_LIMIT:,} are allowed"
    if characters > TEXT_LIMIT:
        yield f"{characters:,} characters of names and allowed values, and {TEXT_LIMIT:,} are allowed"


def _count_characters(node: dict[str, Any]) -> int:
    names = [*cast("dict[str, Any]", node.get("properties") or {}), *cast("dict[str, Any]", node.get("$defs") or {})]
    return sum(map(len, names)) + sum(len(str(value)) for value in _allowed_values(node))


def _allowed_values(node: dict[str, Any]) -> list[Any]:
    return cast("list[Any]", node.get("enum") or []) + ([node["const"]] if "const" in node else [])


def _nodes(root: dict[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[str, ...], int]]:
    """Yields every schema in the root schema with its place and depth. References are not followed."""
    waiting: list[tuple[Any, tuple[str, ...], int]] = [(root, (), 0)]
    while waiting:
        schema, place, level = waiting.pop()
        if not isinstance(schema, dict):
            continue
        node = cast("dict[str, Any]", schema)
        yield node, place, level
        waiting.extend(
            (inner, (*place, name), level + 1)
            for name, inner in cast("dict[str, Any]", node.get("properties") or {}).items()
        )
        waiting.extend(
            (inner, (*place, name), 0) for name, inner in cast("dict[str, Any]", node.get("$defs") or {}).items()
        )
        waiting.extend((inner, place, level) for inner in cast("list[Any]", node.get("anyOf") or []))
        waiting.append((node.get("items") or None, (*place, "items"), level + 1))


def _node_problems(node: dict[str, Any], *, is_root: bool) -> Iterator[str]:
    unknown = sorted(key for key in node.keys() - _TAKEN - _LEFT_OUT if not key.startswith("x-"))
    if unknown:
        yield f"{', '.join(map(repr, unknown))} cannot be expressed in strict mode"
    if not node.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        yield "any value is allowed, and strict mode needs a type"
    if any(not isinstance(inner, dict) for inner in cast("dict[str, Any]", node.get("properties") or {}).values()):
        yield "any value of a property is allowed, and strict mode needs a type"
    kinds = node.get("type")
    kinds = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    if "object" in kinds and (problem := _open_object(node, is_root=is_root)):
        yield problem
    if "array" in kinds and not node.get("items"):
        yield "an array of anything is allowed, and strict mode needs the items' type"
    unknown = [name for name in node.get("required", []) if name not in node.get("properties", {})]
    if unknown:
        yield f"{', '.join(map(repr, unknown[:8]))} is required, and no property"
    if _IRREGULAR.search(str(node.get("pattern", ""))):
        yield "the pattern looks around, refers back or has a group with a name or flags, which strict mode cannot"
    values = _allowed_values(node)
    if any(isinstance(value, dict | list) for value in values):
        yield "an object or a list is an allowed value, and strict mode takes single ones alone"
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) > LONG_ENUM and sum(map(len, texts)) > LONG_ENUM_CHARACTERS:
        yield f"more than {LONG_ENUM} allowed values with more than {LONG_ENUM_CHARACTERS:,} characters"


def _open_object(node: dict[str, Any], *, is_root: bool) -> str:
    if node.get("additionalProperties", False) is not False:
        return "keys that are not listed are allowed, and strict mode takes listed ones alone"
    is_free = not node.get("properties") and "additionalProperties" not in node
    return "an object of anything is allowed, and strict mode needs its properties" if is_free and not is_root else ""


def _strict(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    node = with_inner(cast("dict[str, Any]", schema), _strict)
    node = {key: value for key, value in node.items() if key not in _LEFT_OUT and not key.startswith("x-")}
    if node.get("format") not in _FORMATS:
        node.pop("format", None)
    if (values := _allowed_values(node)) and "type" not in node:
        node["type"] = type_of_values(values)
    kinds = node.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        required = set(cast("list[str]", node.get("required", [])))
        properties = cast("dict[str, Any]", node.get("properties", {}))
        given = cast("dict[str, Any]", schema).get("properties", {})
        node["properties"] = {
            name: _strict_property(inner, given[name], is_required=name in required)
            for name, inner in properties.items()
        }
        node["required"] = list(properties)
        node["additionalProperties"] = False
    return node


def _strict_property(inner: dict[str, Any], given: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Returns a property with a sentence on its default, because strict mode has no keyword for it."""
    strict = inner if is_required else _nullable(inner)
    is_null_added = strict is not inner
    default = given.get("default")
    if default is None:
        told = "null: not given." if is_null_added else ""
    else:
        written = json.dumps(default, ensure_ascii=False)
        told = f"null: the default, {written}." if is_null_added else f"Default: {written}."
    text = "\n".join(part for part in (strict.get("description", ""), told) if part)
    return {**strict, "description": text} if told else strict


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema.get("type")
    if "anyOf" in schema:
        options = cast("list[Any]", schema["anyOf"])
        return schema if {"type": "null"} in options else {**schema, "anyOf": [*options, {"type": "null"}]}
    if kinds is None or "const" in schema or "enum" in schema:
        words = {key: schema[key] for key in ("title", "description") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in words}
        return {**words, "anyOf": [inner, {"type": "null"}]}
    listed = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    return schema if "null" in listed else {**schema, "type": [*listed, "null"]}


def _drop_nulls(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """Returns the value without nulls for optional properties that are not nullable."""
    if isinstance(value, list):
        return [
            _drop_nulls_if_one_fits(item, [node.get("items") for node in _options(schema, root)], root)
            for item in cast("list[Any]", value)
        ]
    if not isinstance(value, dict):
        return value
    nodes = [node for node in _options(schema, root) if "properties" in node]
    return {
        name: _drop_nulls_if_one_fits(inner, [node["properties"].get(name) for node in nodes], root)
        for name, inner in cast("dict[str, Any]", value).items()
        if inner is not None or not nodes or any(_takes_null(name, node, root) for node in nodes)
    }


def _drop_nulls_if_one_fits(value: Any, schemas: list[Any], root: Mapping[str, Any]) -> Any:
    """Drops the nulls in the value if exactly one schema applies to it. Otherwise returns it unchanged."""
    known: list[Any] = [schema for schema in schemas if isinstance(schema, dict)]
    return _drop_nulls(value, known[0], root) if len(known) == 1 else value


def _takes_null(name: str, node: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """True if a null for this property is a value, and not the sign of an omitted property."""
    inner = node["properties"].get(name)
    if inner is None or name in node.get("required", []):
        return True
    return any(takes_null(option) for option in _options(inner, root))


def _options(schema: Any, root: Mapping[str, Any], depth: int = 8) -> list[dict[str, Any]]:
    """Returns the alternatives of a schema, with references resolved."""
    node = resolve(schema, root)
    options = cast("list[Any]", node.get("anyOf") or [])
    if not options or not depth:
        return [node]
    return [found for option in options for found in _options(option, root, depth - 1)]


def _at(place: tuple[str, ...]) -> str:
    return f"{path_text(place)}: " if place else ""
