"""Cancelling a call ends its tool, propagates, and is reported."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.invocation.world import World
from tests.patience import PATIENCE_S
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.invoker import invoke
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import FAILURE_RULES

INTERRUPTED = FAILURE_RULES["interrupted"].hint

CALL = ToolCall("work", id="r_1")


@pytest.fixture
def world() -> World:
    return World(driver="asyncio")


async def cancelled(core: Any, begun: asyncio.Event) -> bool:
    """Whether the cancellation of a call that has begun passes."""
    task = asyncio.ensure_future(core)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        task.cancel()
        await asyncio.wait((task,))
    return task.cancelled()


def waiting(begun: asyncio.Event, ended: list[str]) -> Callable[[], Any]:
    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    return work


@pytest.mark.parametrize("timeout_s", [None, PATIENCE_S])
async def test_a_cancelled_call_cancels_its_async_tool_and_is_told_as_interrupted(
    world: World, timeout_s: float | None
) -> None:
    begun, ended = asyncio.Event(), []
    world.add(waiting(begun, ended), timeout_s=timeout_s)
    assert await cancelled(invoke(CALL, world.loop_scope()), begun)
    (record,) = world.recording.records
    assert record.result.text == f"'work' was interrupted.\n{INTERRUPTED}"
    assert (ended, world.recording.story) == (["ended"], [("r_1", "", "interrupted")])


async def test_a_cancelled_batch_cancels_every_call_of_it(world: World) -> None:
    begun, ended = asyncio.Event(), []
    world.add(waiting(begun, ended))
    assert await cancelled(invoke_all([CALL, CALL, CALL], world.loop_scope()), begun)
    assert (ended, world.recording.story) == (["ended"] * 3, [("r_1", "", "interrupted")] * 3)


async def test_a_cancelled_call_of_a_sync_tool_leaves_its_worker_to_end_alone(
    world: World, release: threading.Event
) -> None:
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(PATIENCE_S)

    world.add(work)
    assert await cancelled(invoke(CALL, world.loop_scope()), begun)
    assert (world.runtime.workers.busy, world.recording.story) == (1, [("r_1", "", "interrupted")])


async def test_a_call_cancelled_while_a_person_is_asked_never_runs(world: World) -> None:
    begun, ran = asyncio.Event(), []

    async def ask(_: ApprovalRequest) -> Decision:
        begun.set()
        await asyncio.Event().wait()
        return Decision(verdict="approve")

    world.add(lambda: ran.append("ran"), name="work", permission="confirm")
    world.approver = ask
    assert await cancelled(invoke(CALL, world.loop_scope()), begun)
    assert (ran, world.recording.story) == ([], [("r_1", "", "interrupted")])


async def test_a_call_cancelled_at_the_gate_leaves_the_way_to_others(world: World) -> None:
    begun = asyncio.Event()
    entry = world.add(lambda: "ran", name="work", parallel=False)
    assert entry.gate is not None
    entry.gate.enter()
    begun.set()
    assert await cancelled(invoke(CALL, world.loop_scope()), begun)
    entry.gate.leave()
    assert (await invoke(CALL, world.loop_scope())).data == "ran"


async def test_a_tool_whose_own_inner_task_was_cancelled_is_interrupted(world: World) -> None:
    async def work() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    world.add(work)
    results = await invoke_all([CALL, CALL], world.loop_scope())
    assert [result.error for result in results] == ["'work' was interrupted."] * 2


async def test_a_time_limit_around_a_call_works(world: World) -> None:
    begun, ended = asyncio.Event(), []
    world.add(waiting(begun, ended))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await invoke(CALL, world.loop_scope())
    assert ended == ["ended"]


async def test_a_cancellation_that_comes_as_the_turn_does_passes_and_gives_the_turn_on(world: World) -> None:
    ran: list[str] = []
    entry = world.add(lambda: ran.append("ran"), name="work", parallel=False)
    world.deadline = time.monotonic() + 60
    assert entry.gate is not None
    assert entry.gate.enter() is None
    waiting = asyncio.ensure_future(invoke(CALL, world.loop_scope()))
    for _ in range(10):
        await asyncio.sleep(0)
    entry.gate.leave()
    # The turn is this call's, and the loop's future is not resolved yet.
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting,), timeout=PATIENCE_S)
    assert (waiting.cancelled(), ran, entry.gate.inside) == (True, [], 0)
