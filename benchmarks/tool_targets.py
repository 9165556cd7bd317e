"""Calls of the built-in tools, each made of texts of a shape."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tool_shapes import Texts
from toolwire import Session, ToolRegistry, ToolSpec
from toolwire.journal.store import Store
from toolwire.tools import ArtifactManager, create_artifact_tools, workspace_tools

Call = Callable[[], str]
"""Makes the call, and returns the kind of its failure; empty for a success."""

Arguments = dict[str, Any] | Callable[[Texts], dict[str, Any]]
"""The arguments of a call, or how they are made of texts."""

PATH = "/workspace/a"
TOOL_CHARACTERS = 500
"""Characters of the description of one tool that is searched for."""
PAGE_BYTES = 1_000
NAMES = 2_000
"""Most files of one folder, and tools of one registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A call that is measured.

    Attributes:
        name: The tool and how it is called.
        prepare: Returns the call. It may use the empty folder.
        failures: Kinds of failures that are right for some texts.
        share: How many times the common bound it may cost.
    """

    name: str
    prepare: Callable[[Texts, Path], Call]
    failures: tuple[str, ...] = ()
    share: float = 1.0


_KEY = b"k" * 32
_EMPTY_STORE: list[bytes] = []
"""A new store, which takes half a second to make."""


def prepare_all() -> None:
    """Does the imports of a first call, and makes a store. Starts no thread: the process forks."""
    import rapidfuzz.distance
    import rapidfuzz.fuzz  # noqa: F401

    from toolwire.builtin.web.page_texts import SAMPLE_HTML, text_of

    logging.disable(logging.CRITICAL)
    text_of("html", SAMPLE_HTML, "https://example.org/", "")
    with tempfile.TemporaryDirectory() as folder:
        make = f"from toolwire import Store; Store.open('sqlite:///{folder}/a.db', key={_KEY!r}).close()"
        subprocess.run([sys.executable, "-c", make], check=True)
        _EMPTY_STORE.append((Path(folder) / "a.db").read_bytes())


def _invoke(registry: ToolRegistry, tool: str, arguments: dict[str, Any]) -> str:
    failure = registry.invoke(tool, arguments).failure
    return "" if failure is None else failure.kind


def _given(arguments: Arguments, texts: Texts) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else arguments(texts)


def _file_target(name: str, tool: str, arguments: Arguments, *failures: str) -> Target:
    def prepare(texts: Texts, folder: Path) -> Call:
        (folder / "a").write_bytes(texts.text.encode())
        registry = ToolRegistry()
        for spec in workspace_tools(folder):
            if spec.name in (tool, "search_files"):
                registry.register(spec)
        given = _given(arguments, texts)
        # The first call also imports, which is not a cost of the measured one.
        _invoke(registry, "search_files", {"path": "/workspace/none/", "text": "x", "is_regex": True})
        return lambda: _invoke(registry, tool, given)

    return Target(name=f"{tool}: {name}", prepare=prepare, failures=failures)


def _many_names(tool: str, arguments: dict[str, Any]) -> Target:
    def prepare(texts: Texts, folder: Path) -> Call:
        for number in range(min(len(texts.text) // TOOL_CHARACTERS, NAMES)):
            (folder / f"{'a' * 200}{number}").touch()
        registry = ToolRegistry()
        for spec in workspace_tools(folder):
            if spec.name == tool:
                registry.register(spec)
        return lambda: _invoke(registry, tool, arguments)

    return Target(name=f"{tool}: many names", prepare=prepare)


def _raw_target(name: str, tool: str, arguments: Arguments, *failures: str) -> Target:
    def prepare(texts: Texts, folder: Path) -> Call:
        from toolwire.tools import insert_text_file, view_text_file, write_text_file

        (folder / "a").write_bytes(texts.text.encode())
        registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
        for spec in (view_text_file, write_text_file, insert_text_file):
            registry.register(spec)
        given = {"file_path": str(folder / "a"), **_given(arguments, texts)}
        return lambda: _invoke(registry, tool, given)

    return Target(name=f"{tool}: {name}", prepare=prepare, failures=failures)


def _artifact_target(name: str, tool: str, arguments: Arguments, *failures: str) -> Target:
    """The artifact `a` has two versions: the other text, and the text."""

    def prepare(texts: Texts, folder: Path) -> Call:
        (folder / "a.db").write_bytes(_EMPTY_STORE[0])
        artifacts = ArtifactManager(Store.open(f"sqlite:///{folder}/a.db", key=_KEY), namespace="n")
        artifacts.create("a", texts.other)
        artifacts.rewrite("a", texts.text)
        registry = ToolRegistry()
        for made in create_artifact_tools(artifacts):
            if made.name in (tool, "read_artifact"):
                registry.register(made)
        given = _given(arguments, texts)
        _invoke(registry, "read_artifact", {"id": "b"})
        return lambda: _invoke(registry, tool, given)

    return Target(name=f"{tool}: {name}", prepare=prepare, failures=failures)


def _search_target(name: str, query: Callable[[Texts], str]) -> Target:
    def prepare(texts: Texts, _: Path) -> Call:
        starts = range(0, min(len(texts.text), NAMES * TOOL_CHARACTERS), TOOL_CHARACTERS)
        described = [texts.text[start : start + TOOL_CHARACTERS].strip() or "Waits." for start in starts]
        schema = {"type": "object", "properties": {}}
        specs = [
            ToolSpec.from_jsonschema(name=f"t{number}", description=text, input_schema=schema, function=dict)
            for number, text in enumerate(described)
        ]
        session = Session(specs, protocol="openai", always=())
        asked = query(texts)[:TOOL_CHARACTERS] or "x"
        reply = {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "search_tools", "arguments": f'{{"query": {json.dumps(asked)}}}'},
                }
            ],
        }

        def call() -> str:
            (result,) = session.run_turn(reply).results
            return "" if result.failure is None else result.failure.kind

        return call

    # The first search reads all tools of the registry, which later ones do not.
    return Target(name=f"search_tools: {name}", prepare=prepare, share=4.0)


def _read_result(texts: Texts, _: Path) -> Call:
    registry = ToolRegistry(result_limit_bytes=PAGE_BYTES)

    def give() -> str:
        """Gives the text."""
        return texts.text

    registry.register(give)
    registry.configure(result_pages=True)
    given = {"id": registry.invoke("give").metadata["result_id"], "offset": len(texts.text) // 2}
    return lambda: _invoke(registry, "read_result", given)


def _page(texts: Texts, _: Path) -> Call:
    from toolwire.builtin.web.page_texts import UnreadablePage, text_of

    def call() -> str:
        try:
            text_of("html", texts.text.encode(), "https://example.org/", "utf-8")
        except UnreadablePage:
            return "limit"
        return ""

    return call


def _edits(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    return {"path": PATH, "edits": [{"oldText": old, "newText": new} for old, new in pairs]}


def _near(text: str) -> str:
    """Returns the text with a letter changed in each twenty."""
    return "".join(f"{text[start : start + 19]}#" for start in range(0, len(text), 20)) or "#"


TARGETS = (
    _file_target("whole", "write_file", lambda texts: {"path": PATH, "content": texts.other}),
    _file_target(
        "a conflict",
        "write_file",
        lambda texts: {"path": PATH, "content": texts.other, "base_sha256": "0" * 64},
        "tool_error",
    ),
    _file_target("one line", "edit_file", lambda texts: _edits([(texts.part, "new")]), "tool_error"),
    _file_target(
        "a text that is not there", "edit_file", lambda texts: _edits([(_near(texts.text), "new")]), "tool_error"
    ),
    _file_target(
        "many edits",
        "edit_file",
        lambda texts: _edits([(line, f"{line}!") for line in texts.lines[:2_000]]),
        "tool_error",
        "invalid_arguments",
    ),
    _file_target(
        "half of it",
        "edit_file",
        lambda texts: _edits([(texts.text[: len(texts.text) // 2], texts.other)]),
        "tool_error",
    ),
    _file_target("whole", "read_text_file", {"path": PATH}, "tool_error"),
    _file_target(
        "three lines",
        "read_text_file",
        lambda texts: {"path": PATH, "start_line": len(texts.lines) // 2 + 1, "read_lines": 3},
        "tool_error",
    ),
    _file_target("facts", "get_file_info", {"path": PATH}),
    _file_target("a text", "search_files", lambda texts: {"text": texts.part}, "invalid_arguments"),
    _file_target("all lines", "search_files", {"text": ""}),
    _file_target("a pattern", "search_files", {"text": "(a|b|[0-9])+ ?x$", "is_regex": True}),
    _many_names("find_files", {"pattern": "*a*a*b"}),
    _many_names("list_directory", {}),
    _raw_target("whole", "view_text_file", {}, "tool_error"),
    _raw_target("the last lines", "view_text_file", {"ranges": [-3, -1]}, "tool_error"),
    _raw_target("lines", "write_text_file", lambda texts: {"content": texts.other, "ranges": [1, 1]}, "tool_error"),
    _raw_target("lines", "insert_text_file", lambda texts: {"content": texts.other, "line_number": 1}, "tool_error"),
    _artifact_target("new", "create_artifact", lambda texts: {"id": "b", "content": texts.text}),
    _artifact_target("whole", "read_artifact", {"id": "a"}),
    _artifact_target(
        "one line",
        "update_artifact",
        lambda texts: {"id": "a", "old_str": texts.part[:5_000], "new_str": "x"},
        "invalid_arguments",
    ),
    _artifact_target(
        "a line that is alike",
        "update_artifact",
        lambda texts: {"id": "a", "old_str": _near(texts.part[:5_000]), "new_str": "x"},
        "invalid_arguments",
    ),
    _artifact_target(
        "sixty characters that are alike",
        "update_artifact",
        lambda texts: {"id": "a", "old_str": _near(texts.text[len(texts.text) // 2 :][:60]), "new_str": "x"},
        "invalid_arguments",
    ),
    _artifact_target(
        "half of it, alike",
        "update_artifact",
        lambda texts: {"id": "a", "old_str": _near(texts.text[: len(texts.text) // 2]), "new_str": "x"},
        "invalid_arguments",
    ),
    _artifact_target(
        "in other quotes",
        "update_artifact",
        lambda texts: {"id": "a", "old_str": f"{texts.text[-100:-1]}\u201c", "new_str": "x"},
        "invalid_arguments",
    ),
    _artifact_target(
        "a conflict",
        "rewrite_artifact",
        {"id": "a", "content": "x", "base_version": 1},
        "invalid_arguments",
    ),
    _artifact_target("two versions", "diff_artifact", {"id": "a", "old": 1}),
    _artifact_target("the first version", "restore_artifact", {"id": "a", "version": 1}),
    _artifact_target("all", "list_artifacts", {}),
    _search_target("a line", lambda texts: texts.part),
    _search_target("the start", lambda texts: texts.text),
    Target(name="read_result", prepare=_read_result),
    # It is read in a process of its own, which has ten processor seconds and 512 MB.
    Target(name="a page of the web", prepare=_page, share=4.0),
)
