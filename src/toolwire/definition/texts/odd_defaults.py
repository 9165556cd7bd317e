"""Values that JSON cannot hold, such as infinity: a schema tells its defaults in the description, and lacks others."""

from __future__ import annotations

import json
from typing import Any, cast

from toolwire.definition.texts.default_text import default_text

_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that map names to schemas. A property may be called `default`."""


def copy_schema(schema: Any) -> Any:
    """Returns a copy of the dicts and lists. Other objects, such as a lock that is a default, cannot be copied."""
    if type(schema) is dict:
        return {key: copy_schema(value) for key, value in cast("dict[str, Any]", schema).items()}
    return [copy_schema(item) for item in cast("list[Any]", schema)] if type(schema) is list else schema


def tell_odd_defaults(schema: Any) -> None:
    """Moves each default that is not JSON from the schema, which is changed, to the description beside it.

    Examples and annotations that are not JSON are left out.
    """
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            tell_odd_defaults(item)
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    if "default" in node and not _is_json(node["default"]):
        written = default_text(node.pop("default"))
        parts = [node.get("description", ""), "" if written == "..." else f"Default: {written}."]
        text = "\n".join(part for part in parts if part)
        if text:
            node["description"] = text
    _leave_out_odd(node)
    for key, inner in node.items():
        if key in _BY_NAME and isinstance(inner, dict):
            for named in cast("dict[str, Any]", inner).values():
                tell_odd_defaults(named)
        elif key not in ("default", "const", "enum", "examples"):
            tell_odd_defaults(inner)


def _leave_out_odd(node: dict[str, Any]) -> None:
    for key, inner in list(node.items()):
        if not isinstance(inner, dict | list) and not _is_json(inner):
            del node[key]
    examples = cast("list[Any]", node.get("examples") or [])
    kept = [example for example in examples if _is_json(example)]
    if len(kept) < len(examples):
        node["examples"] = kept
        if not kept:
            del node["examples"]


def _is_json(value: Any) -> bool:
    if value is None or type(value) in (str, bool, int):
        return True
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
