"""The tools by which a model works on artifacts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolwire.definition.parameters import ToolParameter
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.journal.artifacts.artifact import ArtifactError, ArtifactLimit, ArtifactVersion
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

if TYPE_CHECKING:
    from toolwire.journal.artifacts.manager import ArtifactManager

_READS = Effects(kinds=frozenset({"read"}), idempotent="natural", labels=frozenset({"private"}))
_WRITES = Effects(kinds=frozenset({"write"}), idempotent="key", labels=frozenset({"private"}))

_ID = ToolParameter("id", "string", "The id of the artifact")


class _ArtifactTool(BaseTool):
    """A tool of the artifacts of one manager."""

    parameters: tuple[ToolParameter, ...]

    def __init__(self, name: str, description: str, manager: ArtifactManager) -> None:
        super().__init__(name, description)
        self._artifacts = manager

    def get_parameters(self) -> list[ToolParameter]:
        """Returns the parameters, in order."""
        return list(self.parameters)


class CreateArtifactTool(_ArtifactTool):
    """The tool `create_artifact`: makes a new artifact. Permission `auto`."""

    effects = _WRITES
    parameters = (
        ToolParameter("id", "string", "A new id: letters, digits, '_', '.' and '-', such as 'report'"),
        ToolParameter("content", "string", "The whole text"),
        ToolParameter("title", "string", "A title for people", required=False, default=""),
        ToolParameter("content_type", "string", "The media type", required=False, default="text/markdown"),
    )

    def __init__(self, manager: ArtifactManager) -> None:
        """Takes the manager that keeps the artifacts, as all tools of artifacts do."""
        super().__init__("create_artifact", "Create an artifact: a text that is kept with all its versions.", manager)

    async def execute(
        self, context: CallContext, id: str, content: str, title: str = "", content_type: str = "text/markdown"
    ) -> ToolResult:
        """Creates the artifact."""
        key = context.idempotency_key
        make = self._artifacts.create
        return await _make_change(lambda: make(id, content, title=title, content_type=content_type, key=key))


class ReadArtifactTool(_ArtifactTool):
    """The tool `read_artifact`: reads the newest or an older version. A program gets its text. Permission `auto`."""

    effects = _READS
    parameters = (_ID, ToolParameter("version", "integer", "An older version; the newest if left out", required=False))

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("read_artifact", "Read an artifact, or an older version of it.", manager)

    async def execute(self, id: str, version: int | None = None) -> ToolResult:
        """Reads the version."""
        try:
            found = await asyncio.to_thread(self._artifacts.read, id, version)
        except ArtifactError as error:
            return _refusal_of(error)
        return ToolResult(
            True, found.content, content=[{"type": "text", "text": f"{_version_line(found)}\n{found.content}"}]
        )


class UpdateArtifactTool(_ArtifactTool):
    """The tool `update_artifact`: replaces a text, found exactly or by likeness. Permission `auto`."""

    effects = _WRITES
    parameters = (
        _ID,
        ToolParameter("old_str", "string", "The text to replace. It stands once in the newest version"),
        ToolParameter("new_str", "string", "The text in its place"),
    )

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("update_artifact", "Replace one text in an artifact, as a new version.", manager)

    async def execute(self, context: CallContext, id: str, old_str: str, new_str: str) -> ToolResult:
        """Makes the new version."""
        key = context.idempotency_key
        return await _make_change(lambda: self._artifacts.update(id, old_str, new_str, key=key))


class RewriteArtifactTool(_ArtifactTool):
    """The tool `rewrite_artifact`: replaces the whole text. Permission `auto`."""

    effects = _WRITES
    parameters = (
        _ID,
        ToolParameter("content", "string", "The whole new text"),
        ToolParameter(
            "base_version", "integer", "The version that you read: if there is a newer one, nothing is written", False
        ),
    )

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("rewrite_artifact", "Replace the whole text of an artifact, as a new version.", manager)

    async def execute(self, context: CallContext, id: str, content: str, base_version: int | None = None) -> ToolResult:
        """Makes the new version."""
        key = context.idempotency_key
        return await _make_change(lambda: self._artifacts.rewrite(id, content, base_version=base_version, key=key))


class ListArtifactsTool(_ArtifactTool):
    """The tool `list_artifacts`: lists the artifacts with their newest versions. Permission `auto`."""

    effects = _READS
    parameters = ()

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("list_artifacts", "List the artifacts.", manager)

    async def execute(self) -> ToolResult:
        """Lists them."""
        found = await asyncio.to_thread(self._artifacts.list)
        text = "\n".join(map(_version_line, found)) or "There are no artifacts."
        return ToolResult(True, [_as_data(each) for each in found], content=[{"type": "text", "text": text}])


class DiffArtifactTool(_ArtifactTool):
    """The tool `diff_artifact`: shows the differences of two versions. Permission `auto`."""

    effects = _READS
    parameters = (
        _ID,
        ToolParameter("old", "integer", "The older version"),
        ToolParameter("new", "integer", "The newer version; the newest if left out", required=False),
    )

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("diff_artifact", "Show what changed between two versions of an artifact.", manager)

    async def execute(self, id: str, old: int, new: int | None = None) -> ToolResult:
        """Compares them."""
        try:
            found = await asyncio.to_thread(self._artifacts.diff, id, old, new)
        except ArtifactError as error:
            return _refusal_of(error)
        return ToolResult(True, found or "The versions are equal.")


class RestoreArtifactTool(_ArtifactTool):
    """The tool `restore_artifact`: makes a new version with the text of an older one. Permission `auto`."""

    effects = _WRITES
    parameters = (_ID, ToolParameter("version", "integer", "The version whose text is wanted"))

    def __init__(self, manager: ArtifactManager) -> None:
        super().__init__("restore_artifact", "Make a new version with the text of an older one.", manager)

    async def execute(self, context: CallContext, id: str, version: int) -> ToolResult:
        """Makes the new version."""
        key = context.idempotency_key
        return await _make_change(lambda: self._artifacts.restore(id, version, key=key))


def create_artifact_tools(manager: ArtifactManager) -> list[BaseTool]:
    """Returns the seven tools of a manager's artifacts: create, read, update, rewrite, list, diff, restore.

    >>> for tool in create_artifact_tools(ArtifactManager(store, namespace="c-17")):
    ...     registry.register(tool)
    """
    return [
        CreateArtifactTool(manager),
        ReadArtifactTool(manager),
        UpdateArtifactTool(manager),
        RewriteArtifactTool(manager),
        ListArtifactsTool(manager),
        DiffArtifactTool(manager),
        RestoreArtifactTool(manager),
    ]


async def _make_change(change: Callable[[], ArtifactVersion]) -> ToolResult:
    """Makes a change in a thread, because it waits for the disk."""
    try:
        made = await asyncio.to_thread(change)
    except ArtifactError as error:
        return _refusal_of(error)
    text = f"Wrote {_version_line(made)}."
    if made.replaced:
        text += f" old_str was not in it as given; this was replaced, {made.score:g} of 100 alike:\n{made.replaced}"
    return ToolResult(True, _as_data(made), content=[{"type": "text", "text": text}])


def _refusal_of(error: ArtifactError) -> ToolResult:
    kind = "limit" if isinstance(error, ArtifactLimit) else "invalid_arguments"
    return ToolResult.failed(kind, str(error), exception=error)


def _version_line(version: ArtifactVersion) -> str:
    title = f" ({version.title})" if version.title else ""
    size = count_of(version.size_bytes, "byte")
    return f"{version.id}{title}, version {version.version}, {version.content_type}, {size}"


def _as_data(version: ArtifactVersion) -> dict[str, Any]:
    names = ("id", "version", "title", "content_type", "size_bytes", "sha256", "made_at", "score", "replaced")
    return {name: getattr(version, name) for name in names}
