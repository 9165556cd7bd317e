"""The tools that toolwire brings, with their definitions alone: no folder, store or network belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.errors import ConfigurationError


def built_in_tools() -> list[ToolSpec]:
    """Returns the definitions of the tools that toolwire brings, for lists and pages. They cannot be called.

    No registry has these tools by itself. `workspace_tools`, `create_artifact_tools` and the other functions of
    `docs/built_in/README.md` give tools that can be called.
    """
    return [ToolSpec(_definition(tool)) for tools in _BOX for tool in tools()]


def _files() -> Iterable[Tool]:
    from toolwire.facade.built_in.file_tools import FILE_TOOLS

    for tool in FILE_TOOLS:
        spec = ToolSpec.from_function(tool.function, **tool.options)
        spec.bind("service", state_key="service")
        yield spec.__tool__()


def _raw_files() -> Iterable[Tool]:
    from toolwire.facade.built_in.raw_files import insert_text_file, view_text_file, write_text_file

    return [tool.__tool__() for tool in (view_text_file, write_text_file, insert_text_file)]


def _artifacts() -> Iterable[Tool]:
    from toolwire.facade.built_in.artifact_tools import create_artifact_tools

    return [tool.__tool__() for tool in create_artifact_tools(cast("Any", None))]


def _programs() -> Iterable[Tool]:
    from toolwire.facade.built_in.execute_python_code import execute_python_code

    return [ToolSpec.from_function(execute_python_code).__tool__()]


def _web() -> Iterable[Tool]:
    from toolwire.facade.built_in.web_search_tool import WebSearchTool
    from toolwire.facade.built_in.web_tools import WebFetchTool

    for kind in (WebSearchTool, WebFetchTool):
        # Their own constructors want packages of an extra, and the search tool wants an engine.
        shown = kind.__new__(kind)
        BaseTool.__init__(shown, *kind.described)
        yield shown.__tool__()


_BOX: tuple[Callable[[], Iterable[Tool]], ...] = (_files, _raw_files, _artifacts, _web, _programs)
"""The tools of each kind. Their modules are imported when the list is asked for."""


def _definition(tool: Tool) -> Tool:
    """Returns the tool with a function that says how to get one that works, and without the operator's guard."""

    def explain(*_: object, **__: object) -> None:
        raise ConfigurationError(
            f"{tool.name!r} of built_in_tools() is a definition alone: docs/built_in/{tool.name}.md says how to get it"
        )

    shown = tool.clone()
    shown.function, shown.is_async = explain, False
    vars(shown).pop("withheld", None)
    return shown
