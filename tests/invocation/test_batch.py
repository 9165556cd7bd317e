"""The calls of one reply, side by side where their tools allow it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.runtime.workers import Workers


def test_no_calls_give_no_results(world: World) -> None:
    assert world.batch() == []


def test_results_stand_in_the_order_of_the_calls_though_they_end_in_another(world: World) -> None:
    first_may_end = threading.Event()

    def work(n: int) -> int:
        if n == 0:
            first_may_end.wait(PATIENCE_S)
        if n == 4:
            first_may_end.set()
        return n

    world.add(work)
    results = world.batch(*[("work", {"n": n}) for n in range(5)])
    assert [result.data for result in results] == [0, 1, 2, 3, 4]
    assert [result.call.id for result in results if result.call] == ["r_1", "r_2", "r_3", "r_4", "r_5"]


def test_sync_tools_run_beside_each_other(world: World) -> None:
    barrier = threading.Barrier(5)
    world.add(lambda: barrier.wait(PATIENCE_S), name="meet")
    results = world.batch(*[("meet", {})] * 5)
    assert sorted(result.data for result in results) == [0, 1, 2, 3, 4]


def test_async_tools_run_beside_each_other(world: World) -> None:
    async def meet(barriers: list[asyncio.Barrier]) -> int:
        barriers.append(barriers[0] if barriers else asyncio.Barrier(5))
        async with asyncio.timeout(PATIENCE_S):
            return await barriers[0].wait()

    shared: list[asyncio.Barrier] = []

    async def work() -> int:
        return await meet(shared)

    world.add(work)
    results = world.batch(*[("work", {})] * 5)
    assert sorted(result.data for result in results) == [0, 1, 2, 3, 4]


def test_one_failing_call_leaves_the_others(world: World) -> None:
    def work(n: int) -> int:
        return 6 // n

    world.add(work)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("work", {"n": 1}),
        ("work", {"n": 0}),
        ("wrok", {}),
        ("work", {"n": "x"}),
        ("work", {"n": 2}),
    ]
    results = world.batch(*calls)
    outcomes = ["success", "tool_error", "unknown_tool", "invalid_arguments", "success"]
    assert [outcome(result) for result in results] == outcomes
    assert (results[0].data, results[-1].data) == (6, 3)


class Alone:
    """A tool that notes how many of it run at once, and in which order they came."""

    def __init__(self) -> None:
        self.inside = 0
        self.seen: list[tuple[int, int]] = []

    def enter(self, n: int) -> None:
        self.inside += 1
        self.seen.append((n, self.inside))

    def sync(self, n: int) -> None:
        """Runs alone."""
        self.enter(n)
        self.inside -= 1

    async def later(self, n: int) -> None:
        """Runs alone."""
        self.enter(n)
        await asyncio.sleep(0)
        self.inside -= 1


@pytest.mark.parametrize("kind", ["sync", "later"])
def test_a_tool_that_runs_alone_takes_its_calls_one_by_one_and_in_order(world: World, kind: str) -> None:
    for _ in range(10):
        alone = Alone()
        world.catalogue = type(world.catalogue)()
        world.add(getattr(alone, kind), name="alone", parallel=False)
        world.add(lambda: None, name="other")
        world.batch(*[call for n in range(10) for call in (("other", {}), ("alone", {"n": n}))])
        assert alone.seen == [(n, 1) for n in range(10)]


def test_tools_that_run_alone_run_beside_others(world: World) -> None:
    barrier = threading.Barrier(3)
    for name in ("a", "b", "c"):
        world.add(lambda: barrier.wait(PATIENCE_S), name=name, parallel=False)
    results = world.batch(("a", {}), ("b", {}), ("c", {}))
    assert sorted(result.data for result in results) == [0, 1, 2]


def test_a_blocking_batch_larger_than_the_pool_is_slower_and_never_locked() -> None:
    world = World(driver="blocking")
    world.runtime._workers = Workers(cap=4)
    world.add(lambda: "done", name="quick")
    world.add(lambda: "done", name="limited", timeout_s=PATIENCE_S)
    for name in ("quick", "limited"):
        assert {result.text for result in world.batch(*[(name, {})] * 50)} == {"done"}


def test_a_blocking_batch_runs_though_every_worker_is_stuck(release: threading.Event) -> None:
    world = World(driver="blocking")
    world.runtime._workers = workers = Workers(cap=2)
    for _ in range(2):
        workers.start(lambda: release.wait(PATIENCE_S))
    world.add(lambda: "done", name="quick")
    assert [result.data for result in world.batch(*[("quick", {})] * 5)] == ["done"] * 5


def test_a_batch_may_mix_tools_of_both_kinds(world: World) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    world.add(later)
    world.add(lambda: "now", name="now")
    results = world.batch(("later", {}), ("now", {}), ("later", {}))
    assert [result.data for result in results] == ["later", "now", "later"]
