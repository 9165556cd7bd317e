"""Validated arguments, some of which are the fields of one model."""

from __future__ import annotations

from typing import Any


class StructuredValues(dict[str, Any]):
    """Validated arguments by name, and the model that a tool's extension built from them."""

    __slots__ = ("structured",)

    def __init__(self, values: dict[str, Any], structured: Any) -> None:
        super().__init__(values)
        self.structured = structured
        """The validated model."""
