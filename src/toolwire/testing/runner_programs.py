"""The programs for checking runners, each as text and as a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.sandbox.program import ProgramParameter, ProgramTool
from toolwire.testing.runner import Script, ScriptCallFailed, ScriptTools

SUMS = "rows = [echo(value=n) for n in (3, 1, 2)]\nprint('told', rows)\n__result__ = {'rows': rows}"
CATCHES = "try:\n    fail()\nexcept ToolError as error:\n    print(type(error).__name__, error)"
BREAKS = "print('before')\nfail()\nprint('after')"
GOES_ON = "while True:\n    echo(value=1)"
ASKS = "print('before')\nfirst = echo(value=1)\nsecond = ask(value=2)\n__result__ = [first, second]"


async def _sums(tools: ScriptTools) -> Any:
    rows = [await tools.call("echo", value=n) for n in (3, 1, 2)]
    tools.print("told", rows)
    return {"rows": rows}


async def _catches(tools: ScriptTools) -> None:
    try:
        await tools.call("fail")
    except ScriptCallFailed as failed:
        tools.print(failed.type_name, failed)


async def _breaks(tools: ScriptTools) -> None:
    tools.print("before")
    await tools.call("fail")
    tools.print("after")


async def _goes_on(tools: ScriptTools) -> None:
    while True:
        await tools.call("echo", value=1)


async def _asks(tools: ScriptTools) -> Any:
    tools.print("before")
    return [await tools.call("echo", value=1), await tools.call("ask", value=2)]


RUNNER_PROGRAMS: Mapping[str, Script] = {
    SUMS: _sums,
    CATCHES: _catches,
    BREAKS: _breaks,
    GOES_ON: _goes_on,
    ASKS: _asks,
}
"""The programs of the kit with equivalent scripts, for a runner that does not run text."""


def _tool(name: str, *parameters: str, raises: tuple[str, ...] = ()) -> ProgramTool:
    given = tuple(ProgramParameter(name=one, program_name=one, kind="either", required=True) for one in parameters)
    return ProgramTool(name=name, program_name=name, parameters=given, raises=raises)


TOOLS = (_tool("echo", "value"), _tool("ask", "value"), _tool("fail", raises=("RateLimited",)))
"""The tools that these programs may call."""
