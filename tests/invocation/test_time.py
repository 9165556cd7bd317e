"""Time limits, deadlines, and tools that cannot be stopped."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.definition.from_function import from_function
from toolwire.runtime.workers import Workers
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.failures import FAILURE_RULES

LIMIT_S = 0.05
CHECK = FAILURE_RULES["unknown_outcome"].hint
STOPPED = FAILURE_RULES["timeout"].hint


@pytest.fixture
def short_cleanup(world: World) -> None:
    world.cleanup_s = LIMIT_S


def stuck_on(event: threading.Event) -> Callable[[], str]:
    def work() -> str:
        event.wait(PATIENCE_S)
        return "late"

    return work


def test_a_sync_tool_that_takes_too_long_has_an_unknown_outcome(world: World, release: threading.Event) -> None:
    world.add(stuck_on(release), timeout_s=LIMIT_S)
    assert world.call("work").text == (
        f"'work' took longer than 0.05 s and cannot be stopped; its result will be ignored.\n{CHECK}"
    )
    assert world.recording.story == [("r_1", "", "unknown_outcome")]


def test_its_worker_stays_taken(world: World, release: threading.Event) -> None:
    world.add(stuck_on(release), timeout_s=LIMIT_S)
    world.call("work")
    assert world.runtime.workers.busy == 1


def test_when_all_workers_are_stuck_calls_are_not_started(world: World, release: threading.Event) -> None:
    world.runtime._workers = Workers(cap=2)
    world.add(stuck_on(release), timeout_s=LIMIT_S)
    outcomes = [outcome(world.call("work")) for _ in range(2)]
    assert outcomes == ["unknown_outcome"] * 2
    assert world.call("work").text == (
        "'work' was not started: no worker was free within 0.05 s.\nToo much is running at once. Try again later."
    )
    assert outcome(world.call("work")) == "overloaded"


def test_an_async_tool_that_ends_when_cancelled_was_stopped(world: World) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    world.add(work, timeout_s=LIMIT_S)
    assert world.call("work").text == f"'work' took longer than 0.05 s and was stopped.\n{STOPPED}"
    assert (ended, world.recording.story) == (["cleaned up"], [("r_1", "", "timeout")])


def test_an_async_tool_that_breaks_off_with_an_error_was_stopped(world: World) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ConnectionError("no clean way out")

    world.add(work, timeout_s=LIMIT_S)
    assert outcome(world.call("work")) == "timeout"


def test_an_async_tool_that_goes_on_to_its_end_has_an_unknown_outcome(world: World) -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    world.add(work, timeout_s=LIMIT_S)
    assert world.call("work").text == (
        f"'work' took longer than 0.05 s and cannot be stopped; its result will be ignored.\n{CHECK}"
    )


@pytest.mark.usefixtures("short_cleanup")
def test_an_async_tool_that_will_not_end_has_an_unknown_outcome(world: World) -> None:
    async def work() -> None:
        # Once the call has been told of, it gives in: the loop that is closed then would wait for it.
        while not world.recording.records:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    world.add(work, timeout_s=LIMIT_S)
    assert outcome(world.call("work")) == "unknown_outcome"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_tool_that_ends_in_time_is_not_touched(world: World, is_async: bool) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "done"

    world.add(later if is_async else lambda: "done", name="work", timeout_s=PATIENCE_S)
    assert world.call("work").data == "done"


@pytest.mark.parametrize("parallel", [True, False])
def test_after_the_deadline_nothing_is_started(world: World, parallel: bool) -> None:
    ran: list[str] = []
    world.add(lambda: ran.append("ran"), name="work", timeout_s=PATIENCE_S, parallel=parallel)
    world.deadline = time.monotonic()
    assert world.call("work").text == (
        "'work' was not started: the run's time is over.\nIt did not run. Ask for less in one run."
    )
    assert (ran, world.recording.story) == ([], [("r_1", "", "timeout")])


def test_the_deadline_bounds_a_tool_without_a_limit_of_its_own(world: World, release: threading.Event) -> None:
    world.add(stuck_on(release))
    world.deadline = time.monotonic() + LIMIT_S
    result = world.call("work")
    assert outcome(result) == "unknown_outcome"
    assert str(result.error).startswith("'work' took longer than 0.0")


def test_a_turn_that_does_not_come_before_the_deadline_is_given_up(world: World) -> None:
    entry = world.add(lambda: "ran", name="work", parallel=False)
    assert entry.gate is not None
    entry.gate.enter()
    world.deadline = time.monotonic() + LIMIT_S
    assert world.call("work").error == "'work' was not started: the run's time is over."
    entry.gate.leave()
    world.deadline = None
    assert world.call("work").data == "ran"


@pytest.mark.parametrize(
    ("timeout_s", "deadline_s", "left_s"),
    [(None, None, None), (900, None, 900), (None, 600, 600), (900, 600, 600), (300, 600, 300)],
)
def test_a_tool_is_told_when_it_must_have_ended(
    world: World, timeout_s: float | None, deadline_s: float | None, left_s: float | None
) -> None:
    def work(context: CallContext) -> float | None:
        return None if context.deadline is None else context.deadline - time.monotonic()

    world.add(from_function(work), timeout_s=timeout_s)
    world.deadline = None if deadline_s is None else time.monotonic() + deadline_s
    assert world.call("work").data == (None if left_s is None else pytest.approx(left_s, abs=PATIENCE_S))
