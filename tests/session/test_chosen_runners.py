"""Programs run by the runner that was chosen nearest to them: the session's, the registry's, or the sandbox."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from toolwire import Session, ToolRegistry
from toolwire.testing import ScriptedRunner, ScriptTools

PROGRAM = "add(a=1, b=1)"


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def runner(name: str) -> ScriptedRunner:
    """A runner whose programs have its name as value."""

    async def script(tools: ScriptTools) -> str:
        await tools.call("add", a=1, b=1)
        return name

    return ScriptedRunner({PROGRAM: script})


def value_of(session: Session) -> str:
    call = {"name": "code_execution", "arguments": json.dumps({"code": PROGRAM})}
    reply: Any = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    return session.run_turn(reply).results[0].text


def registry(**options: Any) -> ToolRegistry:
    made = ToolRegistry(**options)
    made.register(add)
    made.enable_code_execution()
    return made


def test_a_registry_has_its_runner_however_its_program_is_started() -> None:
    made = registry(runner=runner("the registry's"))
    assert made.run_program(PROGRAM).value == "the registry's"
    assert made.invoke("code_execution", {"code": PROGRAM}).text == "the registry's"
    toolkit = made.create_agent_toolkit("clerk", ["add", "code_execution"])
    assert asyncio.run(toolkit.execute_tool("code_execution", {"code": PROGRAM})).text == "the registry's"
    for tools in (made, toolkit):
        assert value_of(Session(tools, protocol="openai")) == "the registry's"


def test_a_session_has_its_own_and_leaves_that_of_its_registry() -> None:
    made = registry(runner=runner("the registry's"))
    assert value_of(Session(made, protocol="openai", runner=runner("the session's"))) == "the session's"
    assert made.run_program(PROGRAM).value == "the registry's"
    assert value_of(Session([add], protocol="openai", programs=True, runner=runner("its own"))) == "its own"


def test_without_one_the_sandbox_runs_them() -> None:
    assert value_of(Session(registry(), protocol="openai")) == "2"
