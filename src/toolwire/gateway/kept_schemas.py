"""The schemas of served tools. A tool copies its schemas for each reader, which every call would pay for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolwire.definition.tool import Tool


class ServedSchemas(NamedTuple):
    """The schemas of one tool, for readers that do not change them."""

    revision: object
    """The tool's revision to which they belong."""
    input_schema: Mapping[str, Any]
    """The schema of the arguments."""
    output_schema: Mapping[str, Any] | None
    """The schema of the structured content; None if the tool declares no output."""


class KeptSchemas:
    """Keeps the schemas of the tools of one server, by the names of the tools."""

    def __init__(self) -> None:
        self._kept: dict[str, ServedSchemas] = {}

    def of(self, tool: Tool) -> ServedSchemas:
        """Returns the present schemas of the tool."""
        found, revision = self._kept.get(tool.name), tool.revision
        if found is None or found.revision is not revision:
            found = self._kept[tool.name] = ServedSchemas(revision, tool.input_schema, tool.output_schema)
        return found
