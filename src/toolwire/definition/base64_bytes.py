"""Bytes in arguments.

JSON has no bytes, so a text for a `bytes` parameter is read as base64; real bytes pass unchanged.

pydantic's `val_json_bytes` works only for JSON text, and arguments are Python objects. The core schema is therefore
rewritten, at every depth.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

from pydantic_core import PydanticCustomError, core_schema

from toolwire.definition.core_tree import CLASSES, with_children


def reading_base64(schema: Any) -> tuple[Any, bool]:
    """Returns the core schema with base64 reading for every `bytes`, and True if one of them is inside a class."""
    found: list[bool] = []
    return _walk(schema, False, found), any(found)


def _walk(schema: dict[str, Any], in_class: bool, found: list[bool]) -> Any:
    kind = schema.get("type")
    if kind == "bytes":
        found.append(in_class)
        return core_schema.no_info_before_validator_function(_decoded, cast("core_schema.BytesSchema", schema))
    if kind == "union" and any(_type(choice) == "str" for choice in schema["choices"]):
        # Text for `bytes | str` stays text: reading it as base64 would be a guess.
        return {**schema, "choices": [_kept_bytes(choice, in_class, found) for choice in schema["choices"]]}
    in_class = in_class or kind in CLASSES
    return with_children(schema, lambda child: _walk(child, in_class, found))


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
