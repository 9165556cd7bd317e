"""`execute_python_code`: a tool function that runs Python in the sandbox, without any other tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolwire.vocabulary.calls import PROGRAM_TIME_S
from toolwire.vocabulary.results import ToolResult

TIMEOUT_LIMIT_S = 300.0
"""The most seconds that a model may ask for: enough for a long calculation, too short for a stuck turn."""


async def execute_python_code(
    code: str,
    timeout: Annotated[float, Field(gt=0, le=TIMEOUT_LIMIT_S)] = PROGRAM_TIME_S,  # noqa: ASYNC109  # the sandbox keeps it
) -> ToolResult:
    """Runs a Python program and gives what it printed, and its result.

    It runs in a sandbox: without files, network or other processes. Of Python's standard library it may import what
    computes, such as math, json, datetime, re, collections, itertools, decimal and zoneinfo. Print what you want to
    see; a value assigned to __result__ is shown too.

    Args:
        code: The Python source text
        timeout: Seconds that it may take
    """
    from toolwire.builtin.code_execution import CodeExecution, code_execution_tool
    from toolwire.catalogue.catalogue import Catalogue
    from toolwire.catalogue.entry import Entry
    from toolwire.facade.built_in.program_entry import program_runner
    from toolwire.facade.driving import async_scope, new_scope
    from toolwire.invocation.invoker import invoke
    from toolwire.invocation.scope import require_result
    from toolwire.runtime.identity import new_id
    from toolwire.sandbox.limits import Limits
    from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

    scope = new_scope(Catalogue())
    execution = CodeExecution(lambda: program_runner(scope), limits=Limits.within(timeout))
    tool = code_execution_tool(list)
    scope.catalogue.add(Entry(name=CODE_EXECUTION, tool=tool, handle=tool, composite=execution))
    call = ToolCall(CODE_EXECUTION, {"code": code}, id=new_id("r"))
    return require_result(await invoke(call, async_scope(scope)))
