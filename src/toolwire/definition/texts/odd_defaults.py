"""Defaults that JSON cannot hold, such as infinity: a schema tells them in the description."""

from __future__ import annotations

import json
from typing import Any, cast

from toolwire.definition.texts.default_text import default_text

_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that map names to schemas. A property may be called `default`."""


def tell_odd_defaults(schema: Any) -> None:
    """Moves each default that is not JSON from the schema, which is changed, to the description beside it."""
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
    for key, inner in node.items():
        if key in _BY_NAME and isinstance(inner, dict):
            for named in cast("dict[str, Any]", inner).values():
                tell_odd_defaults(named)
        elif key not in ("default", "const", "enum", "examples"):
            tell_odd_defaults(inner)


def _is_json(value: Any) -> bool:
    if value is None or type(value) in (str, bool, int):
        return True
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
