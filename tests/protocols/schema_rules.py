"""What the providers' servers refuse of a tool's parameters, as their users report it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from jsonschema.validators import Draft202012Validator

OF_ROOT = {"oneOf", "anyOf", "allOf", "enum", "not"}


def check_openai(schema: dict[str, Any]) -> None:
    """Refuses as OpenAI does: a root that is no plain object, and arrays without items."""
    assert schema.get("type") == "object", "schema must be of type 'object'"
    assert not schema.keys() & OF_ROOT, f"schema must not have {schema.keys() & OF_ROOT} at the top level"
    _check_dialect(schema)
    for node in nodes(schema):
        if "array" in kinds(node):
            assert isinstance(node.get("items"), dict), "array schema missing items"
        assert node.get("enum") != [], "enum is too short"
        texts = [json.dumps(value, sort_keys=True) for value in node.get("enum", [])]
        assert len(texts) == len(set(texts)), "enum has non-unique elements"


def check_anthropic(schema: dict[str, Any]) -> None:
    """Refuses as Anthropic does: what is not JSON Schema 2020-12, and a root that combines."""
    assert schema.get("type") == "object", "input_schema.type: Field required"
    assert not schema.keys() & OF_ROOT, "input_schema does not support oneOf, allOf, or anyOf at the top level"
    _check_dialect(schema)


def check_gemini(schema: dict[str, Any]) -> None:
    """Refuses as Gemini does: arrays without items, required names that are no property, and enums of other values."""
    _check_dialect(schema)
    assert "definitions" not in schema, "reference to undefined schema"
    for node in nodes(schema):
        for value in node.get("enum", ["a"]):
            assert isinstance(value, str | int | float), "enum: only strings and numbers"
            assert not isinstance(value, bool), "enum: only strings and numbers"
            assert value != "", "enum: cannot be empty"
        if "array" in kinds(node):
            assert isinstance(node.get("items"), dict), "items: missing field"
        for name in node.get("required", []):
            assert name in node.get("properties", {}), f"required: property is not defined: {name}"


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields all subschemas, and demands that each is an object."""
    assert isinstance(schema, dict), f"{schema!r} is no schema object"
    yield schema
    for key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        for inner in schema.get(key, {}).values():
            yield from nodes(inner)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in schema.get(key, []):
            yield from nodes(inner)
    for key in ("items", "not", "contains", "if", "then", "else", "propertyNames"):
        if key in schema:
            yield from nodes(schema[key])
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"])


def kinds(node: dict[str, Any]) -> list[str]:
    """Returns the types of a schema."""
    found = node.get("type", [])
    return [found] if isinstance(found, str) else found


def _check_dialect(schema: dict[str, Any]) -> None:
    _check_written(json.dumps(schema, allow_nan=False, ensure_ascii=False))


@lru_cache(maxsize=16)
def _check_written(text: str) -> None:
    """One check for all providers that get the same text: it takes most of the time of these tests."""
    text.encode()
    schema = json.loads(text)
    assert schema.get("$schema", "").rstrip("#") in ("", "https://json-schema.org/draft/2020-12/schema")
    Draft202012Validator.check_schema(schema)
    for node in nodes(schema):
        reference = node.get("$ref")
        assert reference is None or _leads_somewhere(reference, schema), f"{reference} leads nowhere"


def _leads_somewhere(reference: str, schema: Any) -> bool:
    node = schema
    for step in unquote(reference).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(step)] if int(step) < len(node) else None
        else:
            node = node.get(step) if isinstance(node, dict) else None
    return isinstance(node, dict)
