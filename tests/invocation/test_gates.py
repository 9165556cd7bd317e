"""Tools that run one call at a time, and calls that come from inside of one."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.vocabulary.context import CallContext

WAITS = (
    "'outer' was not started: it runs one call at a time, and this call comes from inside such a call.\n"
    "It cannot be reached now. Try again later, or do without."
)


def test_a_tool_that_calls_itself_is_told_instead_of_waiting_for_itself(world: World) -> None:
    async def outer(context: CallContext) -> str:
        return (await context.call("outer")).text

    world.add(outer, parallel=False)
    assert world.call("outer").data == WAITS
    assert world.recording.story == [("r_1/1", "r_1", "unavailable"), ("r_1", "", "success")]
    assert world.call("outer").success


@pytest.mark.parametrize("inner_kind", ["sync", "async"])
def test_it_is_told_though_the_call_comes_by_other_tools_threads_and_loops(world: World, inner_kind: str) -> None:
    def inner() -> str:
        return world.call("outer").text

    async def inner_later() -> str:
        return await asyncio.to_thread(inner)

    def outer() -> str:
        return world.call("inner").text

    world.add(outer, parallel=False)
    world.add(inner if inner_kind == "sync" else inner_later, name="inner")
    assert world.call("outer").data == WAITS


def test_a_tool_may_call_another_that_runs_alone(world: World) -> None:
    async def outer(context: CallContext) -> Any:
        return (await context.call("inner")).data

    world.add(outer, parallel=False)
    world.add(lambda: "inside", name="inner", parallel=False)
    assert world.call("outer").data == "inside"


def test_what_a_tool_leaves_behind_may_call_it_when_it_has_ended(world: World) -> None:
    left: list[threading.Thread] = []
    may_go_on, outcomes = threading.Event(), []

    def again() -> None:
        may_go_on.wait(PATIENCE_S)
        outcomes.append(outcome(world.call("outer")))

    def outer() -> None:
        if not left:
            thread = threading.Thread(target=contextvars.copy_context().run, args=(again,))
            left.append(thread)
            thread.start()

    world.add(outer, parallel=False)
    world.call("outer")
    may_go_on.set()
    left[0].join(PATIENCE_S)
    assert outcomes == ["success"]


def test_a_gate_opens_again_after_a_tool_that_failed(world: World) -> None:
    world.add(lambda: 1 // 0, name="fail", parallel=False)
    assert [outcome(world.call("fail")) for _ in range(3)] == ["tool_error"] * 3
