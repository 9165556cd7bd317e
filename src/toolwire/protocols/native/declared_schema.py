"""A tool's parameters as a provider is told of them: one dialect, whatever draft and form its author wrote.

Providers read JSON Schema 2020-12 in part. What the form cannot hold is told in words; the tool checks it all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolwire.definition.derived import input_schema_of, once_per_schema
from toolwire.definition.hostile.schema_walk import map_schemas
from toolwire.definition.json_schema.current_draft import move_definitions, move_targets, write_in_current_draft
from toolwire.definition.root_fields import with_root_fields
from toolwire.definition.tool import Tool
from toolwire.definition.words import resolve

SAID_LIMIT = 4_000
"""Maximum number of characters of the constraints that a description tells. A longer one costs more than it helps."""

_OF_ROOT = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else")
"""Keywords that OpenAI and Anthropic refuse at the root, and those that only go with them."""


@once_per_schema
def schema_for_providers(tool: Tool) -> dict[str, Any]:
    """Returns the tool's parameters as JSON Schema 2020-12 that needs no other draft's rules. All callers share it.

    The root is not a reference. Every array has `items`, every subschema is an object, and each reference leads to the
    root or to a definition.
    """
    schema = input_schema_of(tool)
    root = _write_out_root(move_definitions(schema))
    found = cast("dict[str, Any]", map_schemas(move_targets(root), _for_providers))
    return schema if found == schema else found


@once_per_schema
def plain_parameters(tool: Tool) -> tuple[dict[str, Any], str]:
    """Returns the told schema as a plain object without combining keywords at its root, and these keywords in words.

    The fields of the combined schemas are among its properties. The words are empty if there is nothing to tell.
    """
    schema = schema_for_providers(tool)
    combining = {key: schema[key] for key in _OF_ROOT if key in schema}
    if not combining:
        return schema, ""
    fields = with_root_fields(schema)
    plain = {key: value for key, value in fields.items() if key not in _OF_ROOT}
    return {**plain, "type": "object"}, _in_words(combining)


def add_to_description(head: dict[str, Any], words: str) -> dict[str, Any]:
    """Returns the head of a declaration with these words behind its description."""
    if not words:
        return head
    return {**head, "description": "\n\n".join(filter(None, [head.get("description", ""), words]))}


def type_of_values(values: Iterable[Any]) -> str | list[str]:
    """Returns the `type` of a schema that allows these values."""
    named = list(dict.fromkeys(_TYPES[cast("Any", type(value))] for value in values))
    return named[0] if len(named) == 1 else named


_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    dict: "object",
    list: "array",
}


def _in_words(combining: dict[str, Any]) -> str:
    text = json.dumps(combining, ensure_ascii=False)
    if len(text) > SAID_LIMIT:
        text = f"{text[:SAID_LIMIT]}… (cut, {len(text):,} characters)"
    return f"The arguments as a whole must also match this JSON schema: {text}"


def _write_out_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with the target of a reference at its root in place of the reference."""
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    target = resolve(schema, schema)
    shared = (target.keys() & beside.keys()) - {"type", "title", "description", "$defs", "definitions"}
    if shared:
        return {**beside, "allOf": [*beside.get("allOf", []), {"$ref": schema["$ref"]}]}
    return {**target, **beside}


def _for_providers(node: dict[str, Any]) -> dict[str, Any]:
    """Returns one schema of the current draft, with a pattern that Python's engine lacks in its description."""
    told = write_in_current_draft(node)
    names = cast("dict[str, Any]", told.get("patternProperties", {}))
    for name in [name for name in names if not _is_common(name)]:
        told["patternProperties"] = {key: inner for key, inner in names.items() if _is_common(key)}
        told = add_to_description(told, f"Names that match {name} have a schema of their own.")
    if isinstance(values := told.get("enum"), list):
        told["enum"] = list({_json_text(value): value for value in cast("list[Any]", values)}.values())
    if told.get("enum") == []:
        del told["enum"]
        told = add_to_description(told, "No value is allowed.")
    if isinstance(pattern := told.get("pattern"), str) and not _is_common(pattern):
        del told["pattern"]
        told = add_to_description(told, f"Must match the pattern {pattern}")
    return told


def _json_text(value: Any) -> str:
    """Returns the text of a JSON value, the same for 1 and 1.0, which are equal there."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(whole, sort_keys=True)


def _is_common(pattern: str) -> bool:
    """True if Python's engine knows the pattern too. Some providers check schemas with it."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
