"""A program with many slow calls leaves workers to plain calls and to other programs."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.patience import PATIENCE_S
from toolwire import Limits, ToolRegistry
from toolwire.runtime.workers import PROGRAM_SHARE, WORKERS_CAP

PARALLEL = 64
GREEDY = f"__result__ = sum(await asyncio.gather(*(slow(n) for n in range({PARALLEL}))))"
ROUND = "__result__ = await asyncio.gather(*(quick(n) for n in range(20)))"


class World:
    """A registry whose tool `slow` ends when `release` is set."""

    def __init__(self, *, awaited: bool, timeout_s: float | None) -> None:
        self.release = threading.Event()
        self.lock = threading.Lock()
        self.inside = self.most = 0
        self.registry = ToolRegistry()
        self.full = threading.Event()

        def slow(number: int) -> int:
            """Waits."""
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                if self.inside >= PROGRAM_SHARE - 1:
                    self.full.set()
            self.release.wait(PATIENCE_S)
            with self.lock:
                self.inside -= 1
            return number

        def quick(number: int) -> int:
            """Gives it back."""
            return number

        async def later(number: int) -> int:
            """Makes an event loop drive the programs."""
            return number

        for tool in (slow, quick, *([later] if awaited else [])):
            self.registry.register(tool, timeout_s=timeout_s)


@pytest.fixture(params=["threads", "threads, timed", "loop", "loop, timed"])
def world(request: pytest.FixtureRequest) -> Generator[World]:
    found = World(awaited="loop" in request.param, timeout_s=PATIENCE_S if "timed" in request.param else None)
    yield found
    found.release.set()


@pytest.mark.threat(69)
def test_64_slow_calls_of_a_program_leave_room_for_others(world: World) -> None:
    def run(source: str) -> object:
        return world.registry.run_program(source, limits=Limits(wall_s=60)).value

    with ThreadPoolExecutor(8) as callers:
        greedy: Future[object] = callers.submit(run, GREEDY)
        assert world.full.wait(PATIENCE_S)
        # All of these end while the slow calls still hang.
        assert run(ROUND) == list(range(20))
        assert [world.registry.invoke("quick", {"number": n}).data for n in range(3)] == [0, 1, 2]
        assert not greedy.done()
        world.release.set()
        assert greedy.result(PATIENCE_S) == sum(range(PARALLEL))
    assert PROGRAM_SHARE - 1 <= world.most <= PROGRAM_SHARE <= WORKERS_CAP // 4
