"""The description of a session's tools, kept until a tool, a group or a rule changes it."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolwire.definition.tool import Tool
from toolwire.protocols.base import CallingProtocol


class _Description(NamedTuple):
    """A description. It holds the objects that its key identifies, so that no later object has their identity."""

    key: tuple[object, ...]
    made_from: tuple[object, ...]
    written: str | bytes


class KeptInstructions:
    """The last description, with all that it was made from. Thread-safe: they are replaced together."""

    def __init__(self) -> None:
        self._kept: _Description | None = None

    def of(
        self, protocol: CallingProtocol, tools: Sequence[Tool], options: Mapping[str, Any]
    ) -> str | list[dict[str, Any]]:
        """Returns the description of these tools. The caller may change it.

        The tools are those that the caller sees at this moment, so a permission that changed is in force here. Their
        description takes a hundred times as long as the search for them, and is made again only if one of them differs.
        """
        revisions = [tool.revision for tool in tools]
        told = [(tool.name, tool.description, id(revision)) for tool, revision in zip(tools, revisions, strict=True)]
        key = (id(protocol), told, dict(options))
        kept = self._kept
        if kept is not None and kept.key == key:
            written = kept.written
            return written if isinstance(written, str) else marshal.loads(written)  # noqa: S302 - made here
        described = protocol.describe(list(tools), **options)
        written = _freeze_description(described)
        self._kept = None if written is None else _Description(key, (protocol, *revisions), written)
        return described


def _freeze_description(described: str | list[dict[str, Any]]) -> str | bytes | None:
    """Returns the description in a form that no caller can change; None if it is not of JSON types."""
    if isinstance(described, str):
        return described
    try:
        return marshal.dumps(described)
    except ValueError:
        return None
