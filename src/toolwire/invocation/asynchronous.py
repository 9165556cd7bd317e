"""The asyncio driver. Async tools run on the current loop, and all blocking work runs in a worker."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from toolwire.invocation.asking.pauses import PauseClock
from toolwire.invocation.blocking import BlockingPorts, give_up, not_in_time, value_of
from toolwire.invocation.ports import Raised, TimedOut
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.workers import WAIT_LIMIT_S, WorkersExhausted, program_share
from toolwire.vocabulary.gate import Gate

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")

CANCEL_GRACE_S = 1.0
"""Seconds for a cancelled async tool to end, enough to close a connection. After that its outcome is unknown."""


class AsynchronousPorts:
    """Ports for any event loop. Their state belongs to no single loop."""

    is_blocking = False

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.blocking = BlockingPorts(runtime)

    async def execute(
        self, function: Callable[[], Any], *, is_async: bool, limit_s: float | None, pauses: PauseClock | None = None
    ) -> Any:
        if is_async:
            return await (function() if limit_s is None else _within(function(), limit_s, pauses))
        return await _worked(await self._started(function), limit_s, pauses)

    def is_cancellation(self, error: BaseException) -> bool:
        if not isinstance(error, asyncio.CancelledError):
            return False
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0

    async def pass_gate(self, gate: Gate, limit_s: float | None) -> None:
        turn = gate.enter()
        if turn is None:
            return
        try:
            # Not `wait_for`: before Python 3.12 it swallows a cancellation that arrives together with the turn.
            async with asyncio.timeout(limit_s):
                await asyncio.wrap_future(turn)
        except BaseException as error:
            gate.withdraw(turn)
            if isinstance(error, TimeoutError):
                raise TimedOut(limit_s or 0, stopped=True) from error
            raise

    async def finish(self, work: Coroutine[Any, Any, T], limit_s: float | None) -> T:
        return await (work if limit_s is None else _within(work, limit_s))

    async def answered(self, future: Future[Any], limit_s: float | None, pauses: PauseClock | None = None) -> Any:
        if not future.done():
            waiting = asyncio.wrap_future(future)
            try:
                if not await _waited(waiting, limit_s, pauses):
                    give_up(future, limit_s or 0.0)
            finally:
                # Cancels the tool's future too, if it is not done. asyncio logs exceptions that were never retrieved.
                if not waiting.cancel() and not waiting.cancelled():
                    waiting.exception()
        return value_of(future)

    async def ask(self, whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        # Asking a person may take hours, so only async approvers run on the loop.
        if _is_async(whom):
            answer = whom(question)
        else:
            answer = await _worked(await self._started(lambda: _answer(whom, question)), None)
        if isinstance(answer, Raised):
            raise answer.error
        return await cast("Awaitable[A]", answer) if isinstance(answer, Awaitable) else cast("A", answer)

    async def _started(self, function: Callable[[], T]) -> Future[T]:
        """Starts a job in a worker. The job of a program first waits for its turn, which no time limit covers."""
        share = program_share.get()
        if share is None:
            return self.runtime.workers.start(function)

        def outside() -> T:
            # A tool that makes calls must not wait for the worker that it occupies itself.
            program_share.set(None)
            return function()

        await self.pass_gate(share, None)
        try:
            future = self.runtime.workers.start(outside)
        except BaseException:
            share.leave()
            raise
        future.add_done_callback(lambda _: share.leave())
        return future

    def from_tool(self) -> Callable[[Callable[[], Coroutine[Any, Any, T]]], Future[T]]:
        loop = asyncio.get_running_loop()
        return lambda core: asyncio.run_coroutine_threadsafe(core(), loop)

    async def aside(self, function: Callable[[], T]) -> T:
        working = asyncio.ensure_future(asyncio.to_thread(function))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait((working,))
            raise

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def arrived(self, future: Future[T]) -> T:
        # Cancelling a wrapped future would cancel the future itself, on which others wait.
        return future.result() if future.done() else await asyncio.shield(asyncio.wrap_future(future))

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(core()) for core in cores]
        except BaseExceptionGroup as errors:
            # The first failure caused the cancellation of the others. A single failing call would raise exactly this
            # error.
            raise errors.exceptions[0] from errors
        return [task.result() for task in tasks]


async def _worked(future: Future[T], limit_s: float | None, pauses: PauseClock | None = None) -> T:
    """Returns the result of a worker's job. The limit covers the wait for a worker and the job together."""
    waiting = asyncio.wrap_future(future)
    try:
        done = await _waited(waiting, WAIT_LIMIT_S if limit_s is None else limit_s, pauses)
        if not done and limit_s is not None:
            raise not_in_time(future, limit_s)
        if not done and future.cancel():
            raise WorkersExhausted(f"no worker was free within {WAIT_LIMIT_S:g} s")
        await asyncio.wait((waiting,))
    except BaseException:
        # A job that has not started must not start after its caller has left.
        future.cancel()
        waiting.cancel()
        raise
    return waiting.result()


async def _waited(waiting: asyncio.Future[Any], limit_s: float | None, pauses: PauseClock | None) -> bool:
    """True if the work ended within the limit and its pauses."""
    done, _ = await asyncio.wait((waiting,), timeout=limit_s)
    while not done and pauses is not None and (more_s := pauses.more_s()) > 0:
        done, _ = await asyncio.wait((waiting,), timeout=more_s)
    return bool(done)


async def _within(work: Awaitable[T], limit_s: float, pauses: PauseClock | None = None) -> T:
    """Returns the result of `work` if it ends in time, and cancels it otherwise.

    `TimedOut.stopped` tells whether the cancellation ended the work.
    """
    task = asyncio.ensure_future(work)
    try:
        done = await _waited(task, limit_s, pauses)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_GRACE_S)
        raise
    if done or not task.cancel():
        return task.result()
    ended, _ = await asyncio.wait((task,), timeout=CANCEL_GRACE_S)
    raise TimedOut(limit_s, stopped=bool(ended) and _broke_off(task))


def _broke_off(task: asyncio.Future[Any]) -> bool:
    """True if a cancelled task stopped, and did not run to its end in spite of the cancellation."""
    return task.cancelled() or task.exception() is not None or isinstance(task.result(), Raised)


def _answer(whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A | Awaitable[A] | Raised:
    try:
        return whom(question)
    except Exception as error:  # noqa: BLE001 - re-raised where the question was asked
        return Raised(error)


def _is_async(whom: Callable[..., Any]) -> bool:
    call = whom if inspect.isroutine(whom) else type(whom).__call__
    return inspect.iscoroutinefunction(whom) or inspect.iscoroutinefunction(call)
