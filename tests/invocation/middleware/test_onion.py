"""Functions around the execution of a call: the call that each sees, its allowed changes, and the wrapped calls."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.permission.policy import Rule
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import Outcome, Pending, ToolResult

ETC = {"path": "/arguments/path", "op": "under", "value": "/etc"}


def telling(name: str, told: list[str], *, is_colourless: bool = True) -> Any:
    """A middleware that tells when it is entered and left."""

    async def layer(call: PreparedCall, call_next: CallNext) -> ToolResult:
        told.append(f"+{name}")
        try:
            return await call_next(call)
        finally:
            told.append(f"-{name}")

    return colourless(layer) if is_colourless else layer


def rewriting(**arguments: Any) -> Any:
    @colourless
    async def rewrite(call: PreparedCall, call_next: CallNext) -> ToolResult:
        return await call_next(call.with_arguments({**call.arguments, **arguments}))

    return rewrite


@pytest.mark.parametrize("is_colourless", [True, False], ids=["colourless", "plain async"])
def test_the_first_one_is_outermost_and_a_tools_own_are_inside_of_all(world: World, is_colourless: bool) -> None:
    told: list[str] = []
    world.middleware = tuple(telling(name, told, is_colourless=is_colourless) for name in "ab")
    world.add(lambda: told.append("tool"), name="work", middleware=(telling("own", told, is_colourless=is_colourless),))
    world.add(lambda: told.append("other"), name="other")
    assert (world.call("work").success, world.call("other").success) == (True, True)
    assert told == ["+a", "+b", "+own", "tool", "-own", "-b", "-a", "+a", "+b", "other", "-b", "-a"]


def test_it_is_told_what_will_run_and_on_whose_behalf(world: World) -> None:
    seen: list[Any] = []

    @colourless
    async def look(call: PreparedCall, call_next: CallNext) -> ToolResult:
        seen.append((call.tool, call.call.id, call.arguments, call.caller, call.effects.idempotent, call.deadline))
        seen.append((call.has_own_values, call.is_composite, call.rewritten))
        return await call_next(call)

    def add(a: int, b: int = 2) -> int:
        return a + b

    world.middleware = (look,)
    world.add(add)
    assert world.call("add", a="1").data == 3
    assert seen == [("add", "r_1", {"a": 1, "b": 2}, world.caller, "no", None), (False, False, None)]


def test_calls_that_do_not_run_do_not_reach_it(world: World) -> None:
    told: list[str] = []
    world.middleware = (telling("a", told),)
    world.add(lambda n: n, name="work", permission="deny")
    assert [outcome(result) for result in world.batch(("work", {"n": 1}), ("work", {}), ("gone", {}))] == [
        "denied",
        "invalid_arguments",
        "unknown_tool",
    ]
    assert told == []


def test_arguments_that_it_writes_are_validated(world: World) -> None:
    ran: list[int] = []

    def work(n: int) -> None:
        ran.append(n)

    world.add(work)
    world.middleware = (rewriting(n="2"),)
    assert (world.call("work", n=1).success, ran) == (True, [2])
    world.middleware = (rewriting(n="two"),)
    assert (outcome(world.call("work", n=1)), ran) == ("invalid_arguments", [2])


def test_arguments_that_it_writes_are_judged_by_the_rules(world: World) -> None:
    ran: list[str] = []

    def delete(path: str) -> None:
        ran.append(path)

    world.add(delete)
    world.rules = [Rule(effect="deny", tool="delete", when=[ETC])]
    assert (world.call("delete", path="/tmp/a").success, ran) == (True, ["/tmp/a"])
    world.middleware = (rewriting(path="/etc/passwd"),)
    assert (outcome(world.call("delete", path="/tmp/a")), ran) == ("denied", ["/tmp/a"])


def test_it_may_answer_in_place_of_the_tool(world: World) -> None:
    ran: list[str] = []

    @colourless
    async def answer(call: PreparedCall, call_next: CallNext) -> ToolResult:
        return ToolResult(True, "from memory", call=call.call)

    world.add(lambda: ran.append("ran"), name="work", middleware=(answer,))
    assert (world.call("work").data, ran) == ("from memory", [])


def test_it_may_call_the_tool_more_than_once(world: World) -> None:
    ran: list[str] = []

    @colourless
    async def twice(call: PreparedCall, call_next: CallNext) -> ToolResult:
        await call_next(call)
        return await call_next(call)

    world.add(lambda: ran.append("ran"), name="work", middleware=(twice,))
    assert (world.call("work").success, ran) == (True, ["ran", "ran"])


def test_a_fault_of_a_middleware_is_internal_and_logged_and_not_the_tools(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @colourless
    async def fail(call: PreparedCall, call_next: CallNext) -> ToolResult:
        raise LookupError("no such thing")

    world.add(lambda: 1, name="work", middleware=(fail,))
    world.add(lambda: 2, name="other")
    failed, other = world.batch(("work", {}), ("other", {}))
    message = "The middleware around 'work' raised LookupError; the tool itself may have run."
    assert (outcome(failed), failed.error, other.data) == ("internal", message, 2)
    assert failed.failure is not None
    assert isinstance(failed.failure.exception, LookupError)
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("toolwire.tools", "A middleware around 'work' raised LookupError.")
    assert record.exc_info is not None


def test_one_that_gives_something_else_is_told_what_to_give(world: World) -> None:
    @colourless
    async def forget(call: PreparedCall, call_next: CallNext) -> Any:
        await call_next(call)

    world.add(lambda: 1, name="work", middleware=(forget,))
    result = world.call("work")
    assert result.failure is not None
    assert (outcome(result), str(result.failure.exception)) == (
        "internal",
        "the middleware forget gave None: give a ToolResult, for example await call_next(call)",
    )


def test_a_failing_tool_is_a_result_and_no_exception_to_it(world: World) -> None:
    seen: list[str] = []

    @colourless
    async def look(call: PreparedCall, call_next: CallNext) -> ToolResult:
        try:
            result = await call_next(call)
        except Exception:
            seen.append("exception")
            raise
        seen.append(outcome(result))
        return result

    world.add(lambda: 1 // 0, name="work", middleware=(look,))
    assert (outcome(world.call("work")), seen) == ("tool_error", ["tool_error"])


async def test_a_cancellation_passes_every_layer() -> None:
    world, told, begun = World(driver="asyncio"), [], asyncio.Event()

    @colourless
    async def swallow(call: PreparedCall, call_next: CallNext) -> ToolResult:
        try:
            return await call_next(call)
        except Exception:
            told.append("swallowed")
            return ToolResult(True, None, call=call.call)

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    world.middleware = (telling("a", told), swallow)
    world.add(work)
    task = asyncio.ensure_future(invoke(ToolCall("work", id="r_1"), world.loop_scope()))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        task.cancel()
        await asyncio.wait((task,))
    assert (task.cancelled(), told, world.recording.story) == (True, ["+a", "-a"], [("r_1", "", "interrupted")])


def test_a_composite_that_waits_for_a_person_passes_layers_that_catch_every_exception(world: World) -> None:
    told: list[str] = []

    @colourless
    async def swallow(call: PreparedCall, call_next: CallNext) -> ToolResult:
        try:
            return await call_next(call)
        except Exception:
            told.append("swallowed")
            return ToolResult(True, None, call=call.call)

    async def waits(validated: Any, inside: Any) -> Outcome:
        return Pending(call=inside.call, request_ids=("q_1",))

    world.middleware = (telling("a", told), swallow)
    world.add(lambda: None, name="program", composite=waits)
    call = ToolCall("program", id="r_1")
    assert world.come_to(call) == Pending(call=call, request_ids=("q_1",))
    assert told == ["+a", "-a"]


def test_inner_calls_pass_the_layers_too(world: World) -> None:
    told: list[str] = []

    async def outer(context: CallContext) -> str:
        return (await context.call("inner")).text

    world.middleware = (telling("a", told),)
    world.add(outer)
    world.add(lambda: "in", name="inner")
    assert (world.call("outer").data, told) == ("in", ["+a", "+a", "-a", "-a"])


@pytest.mark.parametrize("is_colourless", [True, False], ids=["colourless", "plain async"])
def test_layers_run_in_several_loops_and_threads_at_once(is_colourless: bool) -> None:
    world, told, found = World(driver="blocking"), [], []
    world.middleware = (telling("a", told, is_colourless=is_colourless),)

    def plain(n: int) -> int:
        return n

    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    world.add(plain)
    world.add(later)
    calls = [ToolCall(("plain", "later")[n % 2], {"n": n}, id=f"r_{n}") for n in range(20)]
    loop_scope, blocking_scope = world.loop_scope(), world.scope(BlockingPorts(world.runtime))

    def on_a_loop() -> None:
        found.append([result.data for result in asyncio.run(invoke_all(calls, loop_scope))])  # type: ignore[union-attr]

    def on_a_thread() -> None:
        if is_colourless:
            step(invoke_all([call for call in calls if call.name == "plain"], blocking_scope))
        found.append(list(range(20)))

    threads = [threading.Thread(target=each) for each in [on_a_loop, on_a_thread] * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    world.runtime.close()
    assert found == [list(range(20))] * 6
    assert sorted(told) == ["+a"] * (90 if is_colourless else 60) + ["-a"] * (90 if is_colourless else 60)


def test_less_time_for_what_is_inside_never_makes_more(world: World) -> None:
    seen: list[float | None] = []

    @colourless
    async def hurry(call: PreparedCall, call_next: CallNext) -> ToolResult:
        hurried = call.within(10)
        seen.extend([hurried.deadline, hurried.within(20).deadline])
        return await call_next(hurried)

    world.add(lambda: 1, name="work", middleware=(hurry,))
    assert world.call("work").data == 1
    assert seen[0] == seen[1]
