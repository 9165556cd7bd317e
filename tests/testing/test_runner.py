"""Scripts replace programs wherever programs are run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolwire import ConfigurationError, Decision, Session, ToolCall, ToolRegistry
from toolwire.catalogue.catalogue import Catalogue
from toolwire.facade.built_in.program_entry import program_runner, sandbox_of
from toolwire.facade.driving import new_scope
from toolwire.testing import MemoryStore, Script, ScriptCallFailed, ScriptedRunner, ScriptTools, programs_run_by
from toolwire.tools import execute_python_code

PROGRAM = "print(add(a=1, b=2))\npay(amount=3)"


async def script(tools: ScriptTools) -> Any:
    tools.print(await tools.call("add", a=1, b=2))
    return await tools.call("pay", amount=3)


def runner(written: Script = script, source: str = PROGRAM) -> ScriptedRunner:
    return ScriptedRunner({source: written})


def registry(paid: list[int] | None = None, **options: Any) -> ToolRegistry:
    made = ToolRegistry(**options)

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def pay(amount: int) -> str:
        """Pays."""
        if paid is not None:
            paid.append(amount)
        return f"paid {amount}"

    made.register(add)
    made.register(pay)
    made.enable_code_execution()
    return made


def ran(code: str = PROGRAM, written: Script = script, **options: Any) -> Any:
    with programs_run_by(runner(written, PROGRAM)):
        return registry(**options).invoke("code_execution", {"code": code})


def test_a_script_does_what_its_program_would() -> None:
    with_script, tools = ran(), registry()
    in_sandbox = tools.invoke("code_execution", {"code": PROGRAM})
    assert with_script.text == in_sandbox.text == "3\npaid 3"
    report = {"scripted": "nothing of a program's text is run"}
    assert with_script.metadata["isolation"] == {"level": "kernel", "report": report}
    assert in_sandbox.metadata["isolation"]["report"] != report


def test_space_around_a_program_does_not_count() -> None:
    assert ran("\n    print(add(a=1, b=2))\n    pay(amount=3)\n\n").text == "3\npaid 3"


def test_a_list_of_calls_is_a_script() -> None:
    result = ran(written=[("add", {"a": 1, "b": 2}), ("pay", {"amount": 3})])
    assert result.text == "paid 3"
    assert [(call.tool, call.arguments) for call in result.metadata["program"].calls] == [
        ("add", {"a": 1, "b": 2}),
        ("pay", {"amount": 3}),
    ]


def test_rules_hold_for_the_calls_of_a_script() -> None:
    paid: list[int] = []
    result = ran(paid=paid, rules=[{"effect": "deny", "tool": "pay"}])
    assert result.metadata["program"].error.type == "ToolDenied"
    assert paid == []


async def wrong(tools: ScriptTools) -> Any:
    try:
        await tools.call("pay", amount="three")
    except ScriptCallFailed as failed:
        tools.print(failed.type_name)
    await tools.call("nothing")


def test_calls_that_cannot_be_made_fail_as_in_a_program() -> None:
    program = ran(written=wrong).metadata["program"]
    assert program.stdout == "InvalidArguments\n"
    assert (program.error.type, program.error.message) == ("NameError", "name 'nothing' is not defined")


def test_a_program_without_a_script_fails() -> None:
    result = ran("print(1)")
    assert result.failure.kind == "tool_error"
    assert result.text == (
        "NotScripted: no script was written for the program 'print(1)'; "
        "there are scripts for ['print(add(a=1, b=2))\\npay(amount=3)']\n"
        "Do not send the same program again: it would fail the same way. Correct it and send the whole program."
    )


def test_a_script_can_stand_for_a_machine_without_walls() -> None:
    weak = ScriptedRunner({PROGRAM: script}, isolation="none")
    with programs_run_by(weak):
        result = registry().invoke("code_execution", {"code": PROGRAM})
    assert result.failure is not None
    assert result.failure.kind == "unavailable"
    assert [program.source for program in weak.programs] == [PROGRAM]


def test_a_script_that_is_none_is_refused() -> None:
    def plain(tools: ScriptTools) -> None: ...

    with pytest.raises(ConfigurationError, match="is not a coroutine function: write `async def script"):
        runner(plain)  # type: ignore[arg-type]


def test_a_script_may_await_nothing_but_calls() -> None:
    async def sleeps(tools: ScriptTools) -> None:
        await asyncio.sleep(0)

    with programs_run_by(runner(sleeps)), pytest.raises(ConfigurationError, match="let it await nothing but"):
        registry().run_program(PROGRAM)


async def test_sessions_and_the_python_tool_use_it_in_every_thread() -> None:
    found: dict[str, str] = {}

    async def turn() -> str:
        session = Session(registry(), protocol="openai")
        reply = session.protocol.render([ToolCall("code_execution", {"code": PROGRAM}, id="call_x")])
        return (await session.turn(reply)).results[0].text

    with programs_run_by(runner()):
        found["loop"] = await turn()
        thread = threading.Thread(target=lambda: found.update(thread=asyncio.run(turn())))
        thread.start()
        await asyncio.to_thread(thread.join)
    with programs_run_by(runner([], "1 + 1")):
        alone = await execute_python_code("1 + 1")
    assert found == {"loop": "3\npaid 3", "thread": "3\npaid 3"}
    assert alone.metadata["program"].isolation.report == {"scripted": "nothing of a program's text is run"}


async def test_a_turn_is_suspended_and_resumed_without_a_sandbox() -> None:
    paid: list[int] = []
    tools = registry(paid, rules=[{"effect": "confirm", "tool": "pay"}])
    scripts, store = runner(), MemoryStore()
    with programs_run_by(scripts):
        session = Session(tools, store=store, protocol="openai")
        reply = session.protocol.render([ToolCall("code_execution", {"code": PROGRAM}, id="call_x")])
        turn = await session.turn(reply)
        assert turn.suspended is not None
        assert (len(turn.suspended.pending), paid) == (1, [])
        decisions = [Decision(verdict="approve", request_id=request.id) for request in turn.suspended.pending]
        after = await session.resume(turn.suspended, decisions)
    assert (after.results[0].text, paid) == ("3\npaid 3", [3])
    program = after.results[0].metadata["program"]
    assert [(call.ordinal, call.replayed) for call in program.calls] == [(1, True), (2, False)]
    assert len(scripts.programs) == 2


def test_the_innermost_counts_until_it_is_left() -> None:
    scope, outer, inner = new_scope(Catalogue()), runner(), runner()
    with programs_run_by(outer):
        with programs_run_by(inner):
            assert program_runner(scope) is inner
        assert program_runner(scope) is outer
        with pytest.raises(ZeroDivisionError), programs_run_by(inner):
            raise ZeroDivisionError
        assert program_runner(scope) is outer
    assert program_runner(scope) is sandbox_of(scope.runtime)
