"""`CodeExecutionTool`: the registry's door to programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import CODE_EXECUTION
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.builtin.code_execution import CodeExecution


class CodeExecutionTool:
    """Runs programs that call the tools of one registry. Made by `registry.enable_code_execution()`."""

    name = CODE_EXECUTION

    def __init__(
        self, tool: Tool, execution: CodeExecution, invoke: Callable[[str, Mapping[str, Any]], ToolResult]
    ) -> None:
        self._tool = tool
        self._execution = execution
        self._invoke = invoke

    def __tool__(self) -> Tool:
        """The tool as models see it."""
        return self._tool

    @property
    def description(self) -> str:
        """What a model is told: what it does, and the signatures of the tools that a program may call now."""
        return self._tool.description

    def execute(self, code: str) -> str:
        """What the program printed and its result, as a model would read it; an error reads like Python's."""
        return self._invoke(CODE_EXECUTION, {"code": code}).text

    def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """The same as a result; `arguments` holds `code`."""
        return self._invoke(CODE_EXECUTION, arguments)

    @property
    def last_invocation_id(self) -> str | None:
        """`tr_ptc_` and hex digits: the id that all calls of the program that ended last share; None before the first.

        Where programs run side by side, read `ProgramResult.invocation_id` or `metadata["invocation_id"]` instead.
        """
        return self._execution.last_invocation_id
