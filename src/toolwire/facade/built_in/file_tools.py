"""The file tools for models, and the file systems that a developer gives them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.paths import FileLimit, FileRefused
from toolwire.builtin.files.refused_folder import is_refused, refusal
from toolwire.builtin.files.service import FileHandle, FileOperation, FilePage, FileService
from toolwire.definition.author_options import FunctionOptions
from toolwire.definition.hostile.patterns import SchemaPattern, schema_pattern
from toolwire.facade.built_in.pdf_text import pdf_text
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.blocks import ImageBlock
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine import system
from toolwire.vocabulary.results import ToolResult

CALL_LIMIT_FILES = 20
"""Maximum files of one `read_multiple_files` call."""


class FileEdit(TypedDict):
    """One edit of `edit_file`."""

    oldText: str
    newText: str


class FileDomainService(FileService):
    """The file operations of one run: a handle's rights, and what the run may write in total."""

    def __init__(self, handle: FileHandle) -> None:
        """Takes a handle of `DiskFileSystem.create_handle`."""
        super().__init__(handle, pdf_text=pdf_text, difference=_difference)

    def tools(self) -> list[tuple[ToolSpec, FileDomainService]]:
        """Returns each tool with this service, for `register_tool_function(..., preset_kwargs={"service": service})`.

        A tool for which no grant has an operation is left out.
        """
        return [
            (ToolSpec.from_function(tool.function, **tool.options), self)
            for tool in _tools_for(self.granted_operations)
        ]


class DiskFileSystem:
    """Folders on disk that models know as `/workspace/` and `/userinput/`. Nothing else can be reached through it.

    Needs Linux or macOS. Symbolic links are never followed.
    """

    def __init__(
        self,
        root_dir: str | os.PathLike[str] | None = None,
        *,
        workspace_dir: str | os.PathLike[str] | None = None,
        userinput_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Takes a folder that holds `workspace` and `userinput`, which are made if missing, or each folder alone.

        Raises:
            ConfigurationError: No folder is given, or one does not exist, or it is where compiled programs are kept.
                Or this is Windows.
        """
        if system.IS_WINDOWS:
            raise ConfigurationError(
                "the tools of one folder need Linux or macOS, which keep each path inside of it, and this is "
                f"{system.PLATFORM}. Here take an MCP server for files, or register the raw file tools "
                "(view_text_file, write_text_file, insert_text_file), of which a person confirms each call"
            )
        roots: dict[str, str] = {}
        for name, folder in (("workspace", workspace_dir), ("userinput", userinput_dir)):
            if folder is not None:
                roots[name] = _require_permitted(os.fspath(folder))
            elif root_dir is not None:
                roots[name] = _require_permitted(str(Path(root_dir) / name))
                Path(roots[name]).mkdir(parents=True, exist_ok=True)
        if not roots:
            raise ConfigurationError("DiskFileSystem(): give root_dir, workspace_dir or userinput_dir")
        try:
            self._disk = Disk(roots)
        except OSError as error:
            raise ConfigurationError(f"DiskFileSystem: {error.filename} cannot be opened: {error.strerror}") from error

    def create_handle(self, grants: Sequence[Mapping[str, Any]]) -> FileHandle:
        """Returns the right to some operations: `[{"prefix": "/workspace/", "ops": {"list", "read_file"}}]`.

        Operations: list, file, read_file, read_binary, read_re, write, delete. The longest prefix decides.
        `/userinput/` stays read-only.

        Raises:
            ConfigurationError: A grant has another form, an unknown operation or prefix.
        """
        return FileHandle(self._disk, grants)

    def get_tools(self, service: FileDomainService) -> list[tuple[ToolSpec, FileDomainService]]:
        """Returns each tool with the service, for `register_tool_function(..., preset_kwargs={"service": service})`."""
        return service.tools()

    def close(self) -> None:
        """Closes the folders."""
        self._disk.close()


def _require_permitted(folder: str) -> str:
    if is_refused(folder):
        raise ConfigurationError(refusal(f"DiskFileSystem: {folder}"))
    return folder


def workspace_tools(path: str | os.PathLike[str], read_only: bool = False) -> list[ToolSpec]:
    """Returns the file tools of one folder, which the model knows as `/workspace/`.

    >>> for tool in workspace_tools("notes", read_only=True):
    ...     registry.register(tool)

    Raises:
        ConfigurationError: The folder does not exist, or is where compiled programs are kept. Or this is Windows.
    """
    system = DiskFileSystem(workspace_dir=path)
    ops = {"list", "file", "read_file", "read_binary", "read_re"}
    if not read_only:
        ops |= {"write", "delete"}
    service = FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": ops}]))
    specs = [spec for spec, _ in service.tools()]
    for spec in specs:
        spec.bind("service", default=service)
    return specs


def read_text_file(
    service: FileDomainService, path: str, start_line: int = 1, read_lines: int | None = None
) -> str | list[ImageBlock]:
    """Reads a text file or the text of a PDF, whole or some lines. Shows an image (PNG, JPEG, GIF or WebP).

    Args:
        path: Such as /workspace/notes.txt
        start_line: The first line, from 1
        read_lines: How many lines; all if left out
    """
    found = service.read(path, start_line, read_lines)
    return found if isinstance(found, str) else [found]


def read_multiple_files(service: FileDomainService, paths: list[str]) -> dict[str, str]:
    """Reads several text files and PDFs. A file that cannot be read has the reason in place of its text.

    Args:
        paths: At most 20 paths
    """
    if len(paths) > CALL_LIMIT_FILES:
        raise FileRefused(f"{len(paths)} paths were given; at most {CALL_LIMIT_FILES} in one call")
    found: dict[str, str] = {}
    for path in paths:
        try:
            found[path] = service.read_text(path)
        except FileRefused as error:
            found[path] = f"Error: {error}"
    return found


def list_directory(service: FileDomainService, path: str = "/workspace/", start: int = 1) -> dict[str, Any]:
    """Lists the names in a folder, 1,000 at a time. Those of folders end with '/'.

    Args:
        path: The folder
        start: The first entry, from 1: the `next_start` of the page before
    """
    return _as_data(service.list(path, start))


def get_file_info(service: FileDomainService, path: str) -> dict[str, Any]:
    """Tells the kind, the size, the time of change and the sha256 of a file. A folder has no sha256.

    Args:
        path: The file or folder
    """
    info = service.info(path)
    facts = {name: getattr(info, name) for name in ("path", "kind", "size_bytes", "modified_at")}
    return {**facts, "sha256": service.sha256(path) if info.kind == "file" else None}


def list_allowed_directories(service: FileDomainService) -> list[str]:
    """Lists the folders that you may use."""
    return service.allowed_folders()


def find_files(service: FileDomainService, pattern: str, path: str = "/workspace/", start: int = 1) -> dict[str, Any]:
    """Finds files by their path below a folder.

    Args:
        pattern: Such as *.md or docs/**/*.md: * is any text without '/', ** any text, ? one character
        path: The folder
        start: The first entry, from 1: the `next_start` of the page before
    """
    return _as_data(service.find(_pattern(f"^{_glob(pattern)}$", pattern).found_in, path, start))


def search_files(
    service: FileDomainService, text: str, path: str = "/workspace/", is_regex: bool = False, start: int = 1
) -> dict[str, Any]:
    """Searches the lines of the text files in a folder, for at most 2 seconds.

    Args:
        text: The text, or a regular expression
        path: The folder
        is_regex: True if text is a regular expression, without look-around and back-references
        start: The first entry, from 1: the `next_start` of the page before
    """

    if is_regex:
        pattern = _pattern(text, text)
        return _as_data(service.search(pattern.found_in, path, start, steps=pattern.states))
    return _as_data(service.search(lambda line: text in line, path, start))


def write_file(service: FileDomainService, path: str, content: str, base_sha256: str | None = None) -> str:
    """Writes a text file whole, and makes missing folders. Tells the sha256 of the new content.

    Args:
        path: Such as /workspace/notes.txt
        content: The whole text
        base_sha256: The sha256 of the content that you read: if the file has another one, nothing is written
    """
    written = service.write(path, content, base_sha256)
    return f"{'Wrote' if written.has_changed else 'This is already the content of'} {path}, sha256 {written.sha256}."


def edit_file(service: FileDomainService, path: str, edits: list[FileEdit], base_sha256: str | None = None) -> str:
    """Replaces texts in a file, each of which stands in it once. An edit that is made already changes nothing.

    Args:
        path: The file
        edits: The texts to replace, and those in their places, in order
        base_sha256: The sha256 of the content that you read: if the file has another one, nothing is written
    """
    given = [{"oldText": edit["oldText"], "newText": edit["newText"]} for edit in edits]
    written = service.edit(path, given, base_sha256)
    return f"{'Edited' if written.has_changed else 'These edits are already in'} {path}, sha256 {written.sha256}."


def move_file(service: FileDomainService, path: str, to: str) -> str:
    """Moves a file to a path that does not exist yet.

    Args:
        path: The file
        to: Its new path
    """
    service.move(path, to)
    return f"Moved {path} to {to}."


def delete_file(service: FileDomainService, path: str) -> str:
    """Deletes a file or an empty folder.

    Args:
        path: The file or folder
    """
    service.delete(path)
    return f"{path} is deleted."


_READS = FunctionOptions(effects=("read",), idempotent="natural", labels=("private",))
_WRITES = FunctionOptions(effects=("write",), idempotent="natural")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTool:
    """A tool: its function, its options, and the operations that it needs."""

    function: Callable[..., Any]
    options: FunctionOptions
    needs: frozenset[str]


def _file_tool(function: Callable[..., Any], options: FunctionOptions, *needs: FileOperation) -> FileTool:
    @functools.wraps(function)
    def call_or_refuse(*args: Any, **kwargs: Any) -> Any:
        # A refusal is the model's mistake: raised, it would stand in the host's log with a traceback.
        try:
            return function(*args, **kwargs)
        except FileLimit as error:
            return ToolResult.failed("limit", str(error), exception=error)
        except FileRefused as error:
            return ToolResult.failed("tool_error", str(error), exception=error)

    return FileTool(function=call_or_refuse, options=options, needs=frozenset(needs))


FILE_TOOLS = (
    _file_tool(read_text_file, _READS, "read_file"),
    _file_tool(read_multiple_files, _READS, "read_file"),
    _file_tool(list_directory, _READS, "list"),
    _file_tool(get_file_info, _READS, "file", "read_file"),
    _file_tool(list_allowed_directories, _READS),
    _file_tool(find_files, _READS, "list"),
    _file_tool(search_files, _READS, "list", "read_re"),
    _file_tool(write_file, _WRITES, "write"),
    _file_tool(edit_file, _WRITES, "read_file", "write"),
    _file_tool(move_file, FunctionOptions(effects=("write",), idempotent="no"), "write", "delete"),
    _file_tool(delete_file, FunctionOptions(effects=("write",), idempotent="natural", permission="confirm"), "delete"),
)


def _tools_for(operations: frozenset[str]) -> list[FileTool]:
    return [tool for tool in FILE_TOOLS if tool.needs <= operations]


def _difference(old: str, new: str, lines: int) -> str:
    # Imported here: the library that compares takes 24 ms, and few writes meet a conflict.
    from toolwire.journal.artifacts.artifact import ArtifactError
    from toolwire.journal.artifacts.editing import difference

    try:
        # Two lines name the texts, and one tells how many lines are left out.
        return difference(old, new, names=("current", "yours"), lines=lines - 3)
    except ArtifactError as error:
        return str(error)


def _as_data(page: FilePage) -> dict[str, Any]:
    return {"entries": page.entries, "next_start": page.next_start}


def _pattern(regex: str, given: str) -> SchemaPattern:
    try:
        return schema_pattern(regex)
    except ValueError as error:
        raise FileRefused(f"{given!r} is not a pattern: {error}") from None


def _glob(pattern: str) -> str:
    texts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(texts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern))
