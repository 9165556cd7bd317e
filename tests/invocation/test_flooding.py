"""Tools that never end, and more calls than can be made."""

from __future__ import annotations

import asyncio
import logging
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from tests.soak.mixed import use
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.runtime.workers import WORKERS_CAP, Workers
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

STUCK = 100
ANSWER_LIMIT_S = 0.1
GROWTH_LIMIT_MB = 20
SLOWER_LIMIT = 2.0
WORK_S = 0.1
LIMIT = 8


@pytest.mark.threat(51)
def test_a_hundred_stuck_tools_take_no_more_than_the_pool_and_the_log_is_told(
    world: World, release: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "toolwire.workers")

    async def later() -> str:
        return "later"

    world.add(lambda: release.wait(60), name="stuck", timeout_s=0.5)
    world.add(lambda: "quick", name="quick", timeout_s=1)
    world.add(later)
    assert at_once(world) == ["overloaded"] * (STUCK - WORKERS_CAP) + ["unknown_outcome"] * WORKERS_CAP
    assert world.runtime.workers.busy == WORKERS_CAP
    assert len(caplog.records) == 1
    started = time.perf_counter()
    answers = [outcome(world.call("quick")) for _ in range(10)]
    assert (time.perf_counter() - started) / 10 <= ANSWER_LIMIT_S
    assert (answers, world.call("later").data) == (["overloaded"] * 10, "later")
    # The control: a pool without a cap to speak of takes a thread for each of them.
    world.runtime._workers = Workers(cap=10 * STUCK)
    assert at_once(world) == ["unknown_outcome"] * STUCK
    assert world.runtime.workers.busy == STUCK


def at_once(world: World) -> list[str]:
    """How calls of the tool that never ends end, made from as many threads."""
    with ThreadPoolExecutor(STUCK) as threads:
        return sorted(threads.map(lambda _: outcome(world.call("stuck")), range(STUCK)))


async def timed(world: World, found: list[tuple[float, str]]) -> None:
    started = time.perf_counter()
    result = await invoke(ToolCall("work"), world.loop_scope())
    assert isinstance(result, ToolResult)
    found.append((time.perf_counter() - started, outcome(result)))


async def flood(world: World, seconds: float, calls_s: float) -> list[tuple[float, str]]:
    """Calls that come at that rate, whatever becomes of those before: seconds and outcome of each."""
    found: list[tuple[float, str]] = []
    async with asyncio.TaskGroup() as group:
        started, made = time.perf_counter(), 0
        while (now := time.perf_counter() - started) < seconds:
            while made < now * calls_s:
                group.create_task(timed(world, found))
                made += 1
            await asyncio.sleep(0.002)
    return found


def world_of(queue_limit: int) -> World:
    async def work() -> None:
        await asyncio.sleep(WORK_S)

    world = World(driver="asyncio", middleware=(Concurrency(LIMIT, queue_limit=queue_limit),))
    world.add(work)
    return world


def p99(found: list[tuple[float, str]]) -> float:
    return statistics.quantiles([seconds for seconds, how in found if how == "success"], n=100)[98]


async def at_capacity(world: World, seconds: float) -> list[tuple[float, str]]:
    """As many callers as there is room for, each calling again as soon as it has its answer."""
    found: list[tuple[float, str]] = []

    async def caller() -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            await timed(world, found)

    await asyncio.gather(*(caller() for _ in range(2 * LIMIT)))
    return found


@pytest.mark.threat(54)
async def test_ten_times_more_calls_than_can_be_made_are_refused_and_the_others_take_no_longer() -> None:
    calls_s = 10 * LIMIT / WORK_S
    normal = p99(await at_capacity(world_of(LIMIT), 1.0))
    world = world_of(LIMIT)
    before = use(0, 0)
    found = await flood(world, 1.5, calls_s)
    grown = use(0, 0).resident_mb - before.resident_mb
    kinds = [how for _, how in found]
    assert set(kinds) == {"success", "overloaded"}
    assert kinds.count("overloaded") > kinds.count("success") > 0.3 * LIMIT / WORK_S
    assert grown <= GROWTH_LIMIT_MB
    assert p99(found) <= SLOWER_LIMIT * normal
    # The control: a queue that takes in whatever comes makes those that it takes in wait.
    unbounded = await flood(world_of(100_000), 0.2, calls_s)
    assert p99(unbounded) > SLOWER_LIMIT * normal
    assert all(how == "success" for _, how in unbounded)


async def test_a_refusal_comes_at_once() -> None:
    world, held = world_of(0), []
    holders = [asyncio.ensure_future(timed(world, held)) for _ in range(LIMIT)]
    await asyncio.sleep(0)
    refused: list[tuple[float, str]] = []
    await timed(world, refused)
    assert refused[0][1] == "overloaded"
    assert refused[0][0] <= ANSWER_LIMIT_S
    await asyncio.wait_for(asyncio.gather(*holders), PATIENCE_S)
