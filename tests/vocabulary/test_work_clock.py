"""The clock that ends the work of toolwire's own tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import copy_context

import pytest

from toolwire import ToolRegistry
from toolwire.vocabulary.machine import work_clock
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE, WorkClock


def spend(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1_000))


def test_work_is_over_when_its_processor_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_clock, "WORK_S", 0.02)
    small, large = WorkClock(1_000), WorkClock(1_000_000_000)
    assert (small.is_over, large.is_over) == (False, False)
    spend(0.03)
    assert (small.is_over, large.is_over) == (True, False)
    small.add(1_000_000_000)
    assert not small.is_over


def test_the_time_of_other_threads_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_clock, "WORK_S", 0.5)
    clock = WorkClock()
    asyncio.run(asyncio.to_thread(spend, 0.6))
    assert not clock.is_over


def test_work_may_have_a_limit_by_the_clock_on_the_wall() -> None:
    assert WorkClock(seconds=-1.0).is_over
    assert not WorkClock(seconds=600.0).is_over


def test_work_is_over_at_the_deadline_of_its_call() -> None:
    def is_over_with(deadline: float | None) -> bool:
        CALL_DEADLINE.set(deadline)
        return WorkClock(seconds=600.0).is_over

    now = time.monotonic()
    found = [copy_context().run(is_over_with, deadline) for deadline in (now - 1, now + 600, None)]
    assert found == [True, False, False]


async def deadline_later() -> None:
    SEEN.append(await asyncio.to_thread(CALL_DEADLINE.get))


def deadline_now() -> None:
    SEEN.append(CALL_DEADLINE.get())


SEEN: list[float | None] = []


@pytest.mark.parametrize("function", [deadline_now, deadline_later])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_knows_its_deadline_in_each_thread_that_works_for_it(
    function: Callable[[], object], is_async: bool
) -> None:
    registry = ToolRegistry()
    registry.register(function, name="limited", timeout_s=600)
    registry.register(function, name="unlimited")
    SEEN.clear()
    for name in ("limited", "unlimited"):
        done = asyncio.run(registry.ainvoke(name, {})) if is_async else registry.invoke(name, {})
        assert done.error is None
    limited, unlimited = SEEN
    assert limited is not None
    assert 0 < limited - time.monotonic() <= 600
    assert (unlimited, CALL_DEADLINE.get()) == (None, None)
