"""`CodeExecutionTool`: runs programs for the owner of a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import CODE_EXECUTION
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.builtin.code_execution import CodeExecution


class CodeExecutionTool:
    """Runs programs that call the tools of one registry. `registry.enable_code_execution()` makes it."""

    name = CODE_EXECUTION

    def __init__(
        self, tool: Tool, execution: CodeExecution, invoke: Callable[[str, Mapping[str, Any]], ToolResult]
    ) -> None:
        self._tool = tool
        self._execution = execution
        self._invoke = invoke

    def __tool__(self) -> Tool:
        """Returns the tool as models see it."""
        return self._tool

    @property
    def description(self) -> str:
        """The description for models: its purpose, and the signatures of the tools that a program may call now."""
        return self._tool.description

    def execute(self, code: str) -> str:
        """Runs a program and returns its output and result as a model would read them; an error reads like Python's."""
        return self._invoke(CODE_EXECUTION, {"code": code}).text

    def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Works as `execute`, and returns a `ToolResult`; `arguments` holds `code`."""
        return self._invoke(CODE_EXECUTION, arguments)

    @property
    def last_invocation_id(self) -> str | None:
        """The id that all calls of the program that ended last share: `tr_ptc_` and hex digits; None before the first.

        If programs run side by side, read `ProgramResult.invocation_id` or `metadata["invocation_id"]` instead.
        """
        return self._execution.last_invocation_id
