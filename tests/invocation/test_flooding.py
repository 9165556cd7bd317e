"""Tools that never end, and more calls than can be made."""

from __future__ import annotations

import asyncio
import logging
import selectors
import statistics
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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

    world.add(lambda: release.wait(PATIENCE_S), name="stuck", timeout_s=0.5)
    world.add(lambda: "quick", name="quick", timeout_s=0.1)
    world.add(later)
    assert at_once(world) == ["overloaded"] * (STUCK - WORKERS_CAP) + ["unknown_outcome"] * WORKERS_CAP
    assert world.runtime.workers.busy == WORKERS_CAP
    assert len(caplog.records) == 1
    started, cost = time.monotonic(), time.process_time()
    answers = [outcome(world.call("quick")) for _ in range(10)]
    # None waited for much longer than its own time limit, and none was much work.
    assert time.monotonic() - started < PATIENCE_S
    assert (time.process_time() - cost) / 10 <= ANSWER_LIMIT_S
    assert (answers, world.call("later").data) == (["overloaded"] * 10, "later")
    # The control: a pool without a cap to speak of takes a thread for each of them.
    world.runtime._workers = Workers(cap=10 * STUCK)
    assert at_once(world) == ["unknown_outcome"] * STUCK
    assert world.runtime.workers.busy == STUCK


SHORT_CALLS = 500


@pytest.mark.threat(51)
def test_five_hundred_short_calls_at_once_all_run(world: World) -> None:
    are_made = threading.Event()

    def short(number: int) -> int:
        # None ends before all calls are made.
        are_made.wait(PATIENCE_S)
        return number

    async def made() -> None:
        are_made.set()

    world.add(short, timeout_s=PATIENCE_S)
    calls = [ToolCall("short", {"number": number}, id=f"c{number}") for number in range(SHORT_CALLS)]
    results = asyncio.run(every(world, calls, made()))
    assert [outcome(result) for result in results] == ["success"] * SHORT_CALLS
    assert [result.data for result in results] == list(range(SHORT_CALLS))
    # The control: without a queue, calls beyond the pool are refused.
    world.runtime._workers = Workers(waiting_cap=0)
    are_made.clear()
    outcomes = [outcome(result) for result in asyncio.run(every(world, calls, made()))]
    assert outcomes.count("overloaded") == SHORT_CALLS - WORKERS_CAP


async def every(world: World, calls: list[ToolCall], last: Coroutine[Any, Any, None]) -> list[ToolResult]:
    """The results of calls that are all made before `last` runs."""
    *made, _ = await asyncio.gather(*(invoke(call, world.loop_scope()) for call in calls), last)
    return [result for result in made if isinstance(result, ToolResult)]


async def test_a_cancelled_call_that_waits_for_a_worker_never_runs(world: World, release: threading.Event) -> None:
    ran: list[int] = []
    world.runtime._workers = Workers(cap=1)
    world.add(lambda: release.wait(PATIENCE_S), name="stuck")
    world.add(lambda: ran.append(1), name="late")
    first = asyncio.ensure_future(invoke(ToolCall("stuck"), world.loop_scope()))
    await asyncio.sleep(0)
    late = asyncio.ensure_future(invoke(ToolCall("late", id="c2"), world.loop_scope()))
    await asyncio.sleep(0)
    assert (world.runtime.workers.busy, world.runtime.workers._gate.waiting) == (1, 1)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert world.runtime.workers._gate.waiting == 0
    release.set()
    await first
    assert ran == []


def at_once(world: World) -> list[str]:
    """The outcomes of calls of a tool that never ends, made from as many threads."""
    with ThreadPoolExecutor(STUCK) as threads:
        return sorted(threads.map(lambda _: outcome(world.call("stuck")), range(STUCK)))


class Jump(selectors.SelectSelector):
    """Waits for nothing: the time of its loop jumps to when the next timer is due."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0
        return super().select(0)


T = TypeVar("T")


def without_waiting(work: Coroutine[Any, Any, T]) -> T:
    """Runs it on a loop of which only timers move the clock, so that a busy machine changes no time in it."""
    jump = Jump()
    loop = asyncio.SelectorEventLoop(jump)
    loop.time = lambda: jump.now  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()


async def timed(world: World, found: list[tuple[float, str]]) -> None:
    started = now()
    result = await invoke(ToolCall("work"), world.loop_scope())
    assert isinstance(result, ToolResult)
    found.append((now() - started, outcome(result)))


async def flood(world: World, seconds: float, calls_s: float) -> list[tuple[float, str]]:
    """Calls that come at that rate, whatever becomes of those before: seconds and outcome of each."""
    found: list[tuple[float, str]] = []
    async with asyncio.TaskGroup() as group:
        started, made = now(), 0
        while (past := now() - started) < seconds:
            while made < past * calls_s:
                group.create_task(timed(world, found))
                made += 1
            await asyncio.sleep(0.002)
    return found


async def weighed(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Its return value, and the megabytes by which this process grew."""
    before = use(0, 0).resident_mb
    return await work, use(0, 0).resident_mb - before


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
        until = now() + seconds
        while now() < until:
            await timed(world, found)

    await asyncio.gather(*(caller() for _ in range(2 * LIMIT)))
    return found


@pytest.mark.threat(54)
def test_ten_times_more_calls_than_can_be_made_are_refused_and_the_others_take_no_longer() -> None:
    calls_s = 10 * LIMIT / WORK_S
    normal = p99(without_waiting(at_capacity(world_of(LIMIT), 1.0)))
    found, grown = without_waiting(weighed(flood(world_of(LIMIT), 1.5, calls_s)))
    kinds = [how for _, how in found]
    assert set(kinds) == {"success", "overloaded"}
    assert kinds.count("overloaded") > kinds.count("success") > 0.3 * LIMIT / WORK_S
    assert grown <= GROWTH_LIMIT_MB
    assert p99(found) <= SLOWER_LIMIT * normal
    # The control: a queue that takes in whatever comes makes those that it takes in wait.
    unbounded = without_waiting(flood(world_of(100_000), 0.2, calls_s))
    assert p99(unbounded) > SLOWER_LIMIT * normal
    assert all(how == "success" for _, how in unbounded)


def test_a_refusal_comes_at_once() -> None:
    assert without_waiting(refuse_one()) == [(0, "overloaded")]


async def refuse_one() -> list[tuple[float, str]]:
    world, held = world_of(0), []
    holders = [asyncio.ensure_future(timed(world, held)) for _ in range(LIMIT)]
    await asyncio.sleep(0)
    refused: list[tuple[float, str]] = []
    await timed(world, refused)
    await asyncio.gather(*holders)
    assert [how for _, how in held] == ["success"] * LIMIT, "the control: those within the limit are answered"
    return refused
