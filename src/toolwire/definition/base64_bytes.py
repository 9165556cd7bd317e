"""Bytes in arguments: JSON has none, so text for a `bytes` is read as base64 while real bytes pass as they are.

pydantic's `val_json_bytes` does this for JSON text only, and arguments are Python objects; so the core schema is
rewritten, everywhere below it too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import PydanticCustomError, core_schema

_HOLDS_SCHEMA = frozenset(
    {
        *("schema", "items_schema", "keys_schema", "values_schema", "lax_schema", "strict_schema", "python_schema"),
        *("json_schema", "arguments_schema", "var_args_schema", "var_kwargs_schema", "extras_schema"),
        *("extras_keys_schema", "definitions", "steps", "fields", "choices"),
    }
)
"""The keys of a core schema under which other schemas stand; defaults and metadata, which may look alike, do not."""

_CLASSES = frozenset({"model", "dataclass"})


def reading_base64(schema: Any) -> tuple[Any, bool]:
    """The core schema with every `bytes` able to read base64; and whether one of them is inside a class."""
    found: list[bool] = []
    return _walk(schema, False, found), any(found)


def _walk(node: Any, in_class: bool, found: list[bool]) -> Any:
    if isinstance(node, list):
        return [_walk(item, in_class, found) for item in cast("list[Any]", node)]
    if isinstance(node, tuple):
        return tuple(_walk(item, in_class, found) for item in cast("tuple[Any, ...]", node))
    if not isinstance(node, dict):
        return node
    schema = cast("dict[str, Any]", node)
    kind = schema.get("type")
    if kind == "bytes":
        found.append(in_class)
        return core_schema.no_info_before_validator_function(_decoded, cast("core_schema.BytesSchema", node))
    if kind == "union" and any(_type(choice) == "str" for choice in schema["choices"]):
        # Text for `bytes | str` is text: reading it as base64 would be a guess.
        return {**schema, "choices": [_kept_bytes(choice, in_class, found) for choice in schema["choices"]]}
    in_class = in_class or kind in _CLASSES
    return {
        key: _walk_under(key, value, in_class, found) if key in _HOLDS_SCHEMA else value
        for key, value in schema.items()
    }


def _walk_under(key: str, value: Any, in_class: bool, found: list[bool]) -> Any:
    if key in ("fields", "choices") and isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        return {name: _walk(item, in_class, found) for name, item in named.items()}
    return _walk(value, in_class, found)


def _kept_bytes(choice: Any, in_class: bool, found: list[bool]) -> Any:
    return choice if _type(choice) == "bytes" else _walk(choice, in_class, found)


def _type(choice: Any) -> Any:
    schema = cast("tuple[Any, ...]", choice)[0] if isinstance(choice, tuple) else choice
    return schema.get("type")


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PydanticCustomError("base64", "it is no base64") from error
