"""Calls of a program on an event loop: each begins or is refused, ends once, and is cancelled once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire.runtime.loop_calls import LoopCalls
from toolwire.runtime.workers import PROGRAM_SHARE, program_share


class Noted:
    """A call that waits until it is cancelled, and its end."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.ends: list[Any] = []
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    async def wait(self) -> str:
        self.steps.append("begun")
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.steps.append("cleaned up")
        return "never"

    def end(self, outcome: Any) -> None:
        self.ends.append(outcome)
        self.ended.set()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_of_another_thread_runs_on_the_loop_and_ends_with_its_result_or_exception() -> None:
    error, ends, threads = LookupError("no"), list[Any](), set[int]()
    ended = asyncio.Event()

    async def gives() -> int:
        threads.add(threading.get_ident())
        return 7

    async def raises() -> int:
        raise error

    def note(outcome: Any) -> None:
        ends.append(outcome)
        if len(ends) == 2:
            ended.set()

    async with LoopCalls() as calls:
        for function in (gives, raises):
            await asyncio.to_thread(calls.start, function, note)
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
    assert (ends, threads) == ([7, error], {threading.get_ident()})


class Meant(BaseException):
    """An exception for the caller of a program."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Meant])
async def test_an_exception_that_would_end_the_loop_is_the_outcome_of_its_call(kind: type[BaseException]) -> None:
    async def raises() -> None:
        raise kind

    ends: list[Any] = []
    async with LoopCalls() as calls:
        calls.start(raises, ends.append)
        await turns()
    assert [type(outcome) for outcome in ends] == [kind]


async def test_a_call_that_is_cancelled_before_it_has_begun_does_not_begin() -> None:
    call = Noted()
    async with LoopCalls() as calls:
        cancel = calls.start(call.wait, call.end)
        cancel()
        await turns()
    assert (call.steps, call.ends) == ([], [None])


async def test_a_call_that_has_begun_is_cancelled_once_and_ends_after_its_clean_up() -> None:
    call = Noted()
    async with LoopCalls() as calls:
        cancel = calls.start(call.wait, call.end)
        await call.began.wait()
        cancel()
        cancel()
        assert call.ends == []
        await call.ended.wait()
        cancel()
        await turns()
    assert (call.steps, call.ends) == (["begun", "cleaned up"], [None])


async def started_late(calls: LoopCalls, call: Noted) -> None:
    """Starts a call in the step in which the block ends: its task is created, and makes no step before the end."""
    calls.start(call.wait, call.end)
    await asyncio.sleep(0)


async def not_posted(calls: LoopCalls, call: Noted) -> None:
    calls.start(call.wait, call.end)


@pytest.mark.parametrize("start", [started_late, not_posted])
async def test_a_call_that_has_not_begun_when_the_block_ends_does_not_begin(start: Callable[..., Any]) -> None:
    call = Noted()
    async with LoopCalls() as calls:
        await start(calls, call)
    await turns()
    assert (call.steps, call.ends) == ([], [None])


async def test_the_calls_that_run_are_cancelled_at_the_end_of_the_block() -> None:
    call = Noted()
    async with LoopCalls() as calls:
        calls.start(call.wait, call.end)
        await call.began.wait()
    await asyncio.wait_for(call.ended.wait(), PATIENCE_S)
    assert call.steps == ["begun", "cleaned up"]


def test_a_call_for_a_closed_loop_is_refused() -> None:
    async def opened() -> LoopCalls:
        async with LoopCalls() as calls:
            return calls

    calls, call = asyncio.run(opened()), Noted()
    calls.start(call.wait, call.end)()
    assert (call.steps, call.ends) == ([], [None])


async def test_calls_share_the_workers_of_one_program_and_not_their_context() -> None:
    rooms: list[int] = []

    async def note() -> None:
        share = program_share.get()
        assert share is not None
        rooms.append(share.room)
        program_share.set(None)

    async with LoopCalls() as calls:
        for _ in range(2):
            calls.start(note, lambda _: None)
        await turns()
    assert (rooms, program_share.get()) == ([PROGRAM_SHARE] * 2, None)
