"""A limited number of calls runs at once, and a limited number waits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.invocation.middleware.clock import Clock
from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import Outcome, ToolResult


class Room:
    """A tool that counts how many are inside, and stays until told to go."""

    def __init__(self) -> None:
        self.inside = self.most = self.seen = 0
        self.door = asyncio.Event()

    async def work(self) -> str:
        self.inside += 1
        self.seen += 1
        self.most = max(self.most, self.inside)
        await self.door.wait()
        self.inside -= 1
        return "done"


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("queue_limit", "refusals"), [(0, 8), (3, 5), (None, 6), (8, 0)])
async def test_so_many_run_so_many_wait_and_the_others_fail_at_once(queue_limit: int | None, refusals: int) -> None:
    world, room = World(driver="asyncio"), Room()
    world.add(room.work)
    world.middleware = (Concurrency(2, queue_limit=queue_limit),)
    batch = asyncio.ensure_future(invoke_all([ToolCall("work", id=f"r_{n}") for n in range(10)], world.loop_scope()))
    await settled()
    assert (room.inside, len(world.recording.records)) == (2, refusals)
    room.door.set()
    results = [outcome(result) for result in await asyncio.wait_for(batch, PATIENCE_S)]  # type: ignore[arg-type]
    assert sorted(results) == ["overloaded"] * refusals + ["success"] * (10 - refusals)
    assert (room.most, room.inside) == (2, 0)


def test_the_refusal_says_when_to_come_again(world: World, clock: Clock) -> None:
    inner: list[ToolResult] = []

    def work(again: bool) -> None:
        clock.sleep(4)
        if again:
            inner.append(world.call("work", again=False))

    world.add(work)
    world.middleware = (Concurrency(1, queue_limit=0, clock=clock),)
    world.call("work", again=False)
    world.call("work", again=True)
    (refusal,) = inner
    assert refusal.text == (
        "'work' was not started: 1 call runs and 0 wait already.\nIt did not run. Try again in 4 s, or do without."
    )
    assert refusal.failure is not None
    assert refusal.failure.data == {"is_started": False, "retry_after_s": 4.0}


def test_no_caller_waits_beyond_its_limit(world: World, release: threading.Event) -> None:
    began = threading.Event()

    def work() -> None:
        began.set()
        release.wait(PATIENCE_S)

    world.add(work)
    world.middleware = (Concurrency(1, wait_limit_s=0.02),)
    holder = threading.Thread(target=lambda: world.call("work"))
    holder.start()
    assert began.wait(PATIENCE_S)
    assert outcome(world.call("work")) == "overloaded"
    release.set()
    holder.join(PATIENCE_S)
    assert world.call("work").success


async def test_a_cancelled_waiter_gives_its_place_up_and_a_cancelled_call_its_room() -> None:
    world, room = World(driver="asyncio"), Room()
    world.add(room.work)
    world.middleware = (Concurrency(1, queue_limit=1),)

    def start() -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(invoke(ToolCall("work"), world.loop_scope()))  # type: ignore[return-value]

    inside, waiting = start(), start()
    await settled()
    waiting.cancel()
    await settled()
    second = start()
    await settled()
    inside.cancel()
    await settled()
    assert (inside.cancelled(), waiting.cancelled(), room.seen) == (True, True, 2)
    room.door.set()
    assert (await asyncio.wait_for(second, PATIENCE_S)).success  # type: ignore[union-attr]


def test_a_tool_that_fails_leaves_its_room(world: World) -> None:
    world.add(lambda: 1 // 0, name="work")
    world.middleware = (Concurrency(1, queue_limit=0),)
    assert [outcome(world.call("work")) for _ in range(3)] == ["tool_error"] * 3


def test_a_program_takes_no_room_of_the_calls_that_it_makes(world: World) -> None:
    async def program(validated: Any, inside: Any) -> Outcome:
        call = ToolCall("work", id="r_1/1", parent="r_1")
        if inside.is_blocking:
            return inside.blocking_calls("p")(call)
        return await inside.async_calls("p")(call)

    world.add(lambda: None, name="program", composite=program)
    world.add(lambda: "inside", name="work")
    world.middleware = (Concurrency(1, queue_limit=0, key=lambda call: "all"),)
    assert world.call("program").data == "inside"


def test_loops_and_threads_share_the_room(world: World) -> None:
    crowds, lock, inside = [], threading.Lock(), [0]

    def work() -> None:
        with lock:
            inside[0] += 1
            crowds.append(inside[0])
        with lock:
            inside[0] -= 1

    world.add(work)
    world.middleware = (Concurrency(2, queue_limit=1_000),)

    def on_a_loop() -> None:
        asyncio.run(invoke_all([ToolCall("work")] * 25, world.loop_scope()))

    def on_a_thread() -> None:
        for _ in range(25):
            world.call("work")

    threads = [threading.Thread(target=each) for each in [on_a_loop, on_a_thread] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(crowds), max(crowds) <= 2) == (100, True)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Concurrency(0)
    assert str(caught.value) == "Concurrency(limit=0): give a number above 0"
