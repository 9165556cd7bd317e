"""Reads fields of MCP values of either SDK generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def field_of(value: object, *names: str) -> Any:
    """Returns the first of these fields that the value has, as a key or as an attribute; None when it has none."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return next((fields[name] for name in names if name in fields), None)
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)
