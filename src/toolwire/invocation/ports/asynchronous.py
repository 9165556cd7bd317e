"""The asyncio driver. Async tools run on the current loop, and all blocking work runs in a worker."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from toolwire.invocation.ports.blocking import BlockingPorts, give_up, not_in_time, value_of
from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.ports import Raised, TimedOut
from toolwire.invocation.ports.under_way import CutOff, UnderWay
from toolwire.runtime.cleanup import StillRunning, cancel_once, have_ended
from toolwire.runtime.own_cancellation import is_from_caller
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.wakes import wait_for_future
from toolwire.runtime.workers import WAIT_LIMIT_S, WorkersExhausted, program_share
from toolwire.vocabulary.calls import CLEANUP_S
from toolwire.vocabulary.machine.gate import Gate

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")

_LOG = logging.getLogger("toolwire.calls")


class AsynchronousPorts:
    """Ports for any event loop. Their state belongs to no single loop.

    Cancelled tools get `cleanup_s` seconds for their clean-up. After that their outcome is unknown.
    """

    is_blocking = False

    def __init__(self, runtime: Runtime, cleanup_s: float = CLEANUP_S) -> None:
        self.runtime = runtime
        self._cleanup_s = cleanup_s
        self.blocking = BlockingPorts(runtime)

    def execute(
        self, function: Callable[[], Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Awaitable[Any]:
        return self._run_job(function, limit_s, pauses)

    def is_cancellation(self, error: BaseException) -> bool:
        return is_from_caller(error)

    def is_still_running(self, error: BaseException) -> bool:
        return isinstance(error, StillRunning)

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

    def finish(
        self, work: Coroutine[Any, Any, T], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Awaitable[T]:
        # Not a coroutine itself: it would be one more frame around every tool.
        return work if limit_s is None else self._within(work, limit_s, pauses)

    async def await_tool_future(
        self, future: Future[Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Any:
        if not future.done():
            waiting = asyncio.wrap_future(future)
            try:
                if not await _is_done_within(waiting, limit_s, pauses):
                    give_up(future, limit_s or 0.0)
            except asyncio.CancelledError as cancelled:
                await self._clean_up(future, waiting, cancelled)
                raise
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
            answer = await self._run_job(lambda: _ask_guarded(whom, question), None, is_tool=False)
        if isinstance(answer, Raised):
            raise answer.error
        return await cast("Awaitable[A]", answer) if isinstance(answer, Awaitable) else cast("A", answer)

    async def _start_job(self, function: Callable[[], T]) -> Future[T]:
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

    async def offload(self, function: Callable[[], T]) -> T:
        working = asyncio.ensure_future(asyncio.to_thread(function))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait((working,))
            raise

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def wait_for(self, future: Future[T]) -> Coroutine[Any, Any, T]:
        return wait_for_future(future)

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        tasks = [asyncio.create_task(core()) for core in cores]
        # Not a task group: it cancels a task that is cancelled already, and waits for it without a limit.
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is not None:
                    task.result()
            return [task.result() for task in tasks]
        finally:
            if left := [task for task in tasks if not task.done()]:
                for task in left:
                    cancel_once(task)
                await have_ended(left, self._cleanup_s)
            for task in tasks:
                # Retrieve the exception, or asyncio logs that it was never retrieved.
                if task.done() and not task.cancelled():
                    task.exception()

    async def has_ended(self, future: Future[Any], limit_s: float) -> bool:
        waiting = asyncio.wrap_future(future)
        try:
            return await have_ended((waiting,), limit_s)
        finally:
            waiting.cancel()

    async def unless_stopped(self, work: Coroutine[Any, Any, T], under_way: UnderWay) -> T | CutOff:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        is_over = is_cancelled = False

        def cancel() -> None:
            nonlocal is_cancelled
            if task is not None and not is_over and not is_cancelled:
                is_cancelled = True
                task.cancel()

        def cancel_soon() -> None:
            loop.call_soon_threadsafe(cancel)

        under_way.add_cancel(cancel_soon)
        try:
            return await work
        except asyncio.CancelledError as error:
            # A turn that is cancelled too goes on to end.
            if not is_cancelled or task is None or task.cancelling() > 1:
                raise
            return CutOff(is_still_running=isinstance(error, StillRunning))
        finally:
            is_over = True
            under_way.remove_cancel(cancel_soon)
            if is_cancelled and task is not None:
                task.uncancel()

    async def whole(self, core: Callable[[], Coroutine[Any, Any, T]], names: Callable[[], Iterable[str]]) -> T:
        # A task of its own: a caller that cancels twice would interrupt the clean-up of a tool that it awaits itself.
        task = asyncio.create_task(core())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            cancel_once(task)
            try:
                await have_ended((task,), self._cleanup_s)
            finally:
                if still := ", ".join(map(repr, names())):
                    _LOG.warning("a turn was cancelled, and %s still runs after %g s", still, self._cleanup_s)
            raise

    async def _run_job(
        self, job: Callable[[], T], limit_s: float | None, pauses: PauseClock | None = None, *, is_tool: bool = True
    ) -> T:
        """Returns the result of a worker's job. The limit covers the wait for a worker and the job together."""
        future = await self._start_job(job)
        waiting = asyncio.wrap_future(future)
        try:
            done = await _is_done_within(waiting, WAIT_LIMIT_S if limit_s is None else limit_s, pauses)
            if not done and limit_s is not None:
                raise not_in_time(future, limit_s)
            if not done and future.cancel():
                raise WorkersExhausted(f"no worker was free within {WAIT_LIMIT_S:g} s")
            await asyncio.wait((waiting,))
        except asyncio.CancelledError as cancelled:
            if is_tool:
                await self._clean_up(future, waiting, cancelled)
            raise
        finally:
            # A job that has not started must not start after its caller has left.
            future.cancel()
            if not waiting.cancel() and not waiting.cancelled():
                waiting.exception()
        return waiting.result()

    async def _clean_up(
        self, future: Future[Any], waiting: asyncio.Future[Any], cancelled: asyncio.CancelledError
    ) -> None:
        """Cancels a tool's future. If it runs in a thread, which cannot be cancelled, waits until it ends.

        Raises:
            StillRunning: It did not end within the time for a clean-up.
        """
        if not future.cancel() and not await have_ended((waiting,), self._cleanup_s):
            raise StillRunning from cancelled

    async def _within(self, work: Coroutine[Any, Any, T], limit_s: float, pauses: PauseClock | None = None) -> T:
        """Returns the result of `work` if it ends in time, and cancels it otherwise.

        `TimedOut.stopped` tells whether the cancellation ended the work.
        """
        task = asyncio.create_task(work)
        try:
            done = await _is_done_within(task, limit_s, pauses)
        except asyncio.CancelledError as cancelled:
            cancel_once(task)
            if not await have_ended((task,), self._cleanup_s):
                raise StillRunning from cancelled
            raise
        if done or task.done():
            return task.result()
        cancel_once(task)
        ended = await have_ended((task,), self._cleanup_s)
        raise TimedOut(limit_s, stopped=ended and _broke_off(task))


async def _is_done_within(waiting: asyncio.Future[Any], limit_s: float | None, pauses: PauseClock | None) -> bool:
    """True if the work ended within the limit and its pauses."""
    done, _ = await asyncio.wait((waiting,), timeout=limit_s)
    while not done and pauses is not None and (more_s := pauses.more_s()) > 0:
        done, _ = await asyncio.wait((waiting,), timeout=more_s)
    return bool(done)


def _broke_off(task: asyncio.Future[Any]) -> bool:
    """True if a cancelled task stopped, and did not run to its end in spite of the cancellation."""
    return task.cancelled() or task.exception() is not None or isinstance(task.result(), Raised)


def _ask_guarded(whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A | Awaitable[A] | Raised:
    try:
        return whom(question)
    except Exception as error:  # noqa: BLE001 - re-raised where the question was asked
        return Raised(error)


def _is_async(whom: Callable[..., Any]) -> bool:
    call = whom if inspect.isroutine(whom) else type(whom).__call__
    return inspect.iscoroutinefunction(whom) or inspect.iscoroutinefunction(call)
