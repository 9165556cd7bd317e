"""Calls that are cancelled at any moment leave nothing running and nothing open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.invocation.world import World
from tests.patience import PATIENCE_S
from toolwire import ToolRegistry, ToolResult
from toolwire.definition.from_function import from_function
from toolwire.facade.built_in.program_entry import sandbox_of
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.invocation.middleware.retry import Retry
from toolwire.invocation.middleware.time_limit import TimeLimit
from toolwire.runtime.runtime import default_runtime
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext

POINTS = 200
TICKS = 40
SEED = 20_260_101
SPARE_PROCESSES = 2
"""Processes that wait for the next program."""


def files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Open:
    """Tools that hold a file, and know how many began and how many cleaned up."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.tries = 0

    @contextlib.contextmanager
    def _pipe(self) -> Any:
        self.begun += 1
        ends = os.pipe()
        try:
            yield
        finally:
            for end in ends:
                os.close(end)
            self.ended += 1

    async def plain(self) -> None:
        """Waits a little."""
        with self._pipe():
            for _ in range(10):
                await asyncio.sleep(0)

    async def parts(self) -> Any:
        """Gives parts."""
        with self._pipe():
            for number in range(10):
                await asyncio.sleep(0)
                yield str(number)

    async def outer(self, context: CallContext) -> str:
        """Calls another tool."""
        with self._pipe():
            await context.call("plain")
            return (await context.call("parts")).text

    async def flaky(self) -> None:
        """Fails at first."""
        with self._pipe():
            await asyncio.sleep(0)
            self.tries += 1
            if self.tries % 3:
                raise ConnectionResetError

    async def alone(self) -> None:
        """Runs alone."""
        with self._pipe():
            await asyncio.sleep(0)


NAMES = ("plain", "parts", "outer", "flaky", "alone")


def world_of(tools: Open) -> tuple[World, Concurrency]:
    world, concurrency = World(driver="asyncio"), Concurrency(4, queue_limit=100)
    world.middleware = (TimeLimit({"*": 60}), Retry(first_wait_s=0.0001), concurrency)
    for name in NAMES:
        tool = from_function(getattr(tools, name), idempotent="natural")
        world.add(tool, name=name, parallel=name != "alone")
    return world, concurrency


@pytest.mark.threat(52)
async def test_calls_cancelled_at_two_hundred_points_leave_no_task_file_thread_or_place() -> None:
    chance, tools = random.Random(SEED), Open()
    world, concurrency = world_of(tools)
    before = (files(), threading.active_count(), len(asyncio.all_tasks()))
    cancelled = 0
    for _ in range(POINTS):
        calls = [
            asyncio.ensure_future(invoke(ToolCall(name), world.loop_scope())) for name in chance.choices(NAMES, k=6)
        ]
        for _ in range(chance.randrange(TICKS)):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls, timeout=PATIENCE_S)
        cancelled += sum(call.cancelled() for call in calls)
    assert tools.begun == tools.ended > POINTS
    assert cancelled > POINTS
    # Not equal: threads that tests before this one left behind may end meanwhile.
    now = (files(), threading.active_count(), len(asyncio.all_tasks()))
    assert [is_now - was for is_now, was in zip(now, before, strict=True) if is_now > was] == []
    assert [concurrency._places.of(name).gate.inside for name in NAMES] == [0] * 5
    alone = world.catalogue.find("alone")
    assert alone is not None
    assert alone.gate is not None
    assert alone.gate.inside == 0
    # The control: a tool that swallows its cancellation is seen by the same count.
    stubborn = asyncio.ensure_future(asyncio.sleep(PATIENCE_S))
    assert len(asyncio.all_tasks()) == before[2] + 1
    stubborn.cancel()


def children() -> int:
    zygote = sandbox_of(default_runtime()).zygotes.current().process_id
    return len(Path(f"/proc/{zygote}/task/{zygote}/children").read_text("ascii").split())


@pytest.mark.threat(52)
async def test_programs_cancelled_at_two_hundred_moments_are_dead() -> None:
    chance, registry = random.Random(SEED), ToolRegistry()

    async def wait() -> None:
        """Waits."""
        await asyncio.sleep(0.001)

    registry.register(wait)
    registry.enable_code_execution()
    await registry.ainvoke("code_execution", {"code": "wait()"})

    def start() -> asyncio.Task[ToolResult]:
        return asyncio.ensure_future(registry.ainvoke("code_execution", {"code": "while True: wait()"}))

    for _ in range(POINTS):
        call = start()
        await asyncio.sleep(chance.uniform(0, 0.02))
        call.cancel()
        await asyncio.wait((call,), timeout=PATIENCE_S)
        assert call.cancelled()
    await until(lambda: children() == SPARE_PROCESSES)
    # The control: one that runs is seen.
    call = start()
    await until(lambda: children() > SPARE_PROCESSES)
    call.cancel()
    await until(lambda: children() == SPARE_PROCESSES)
    assert (await registry.ainvoke("code_execution", {"code": "1 + 1"})).text == "2"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - it is other processes that come and go
            await asyncio.sleep(0.005)
