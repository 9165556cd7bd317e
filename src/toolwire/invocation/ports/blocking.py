"""The synchronous driver. The core runs in the caller's thread, without an event loop."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar, cast

from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.ports import Raised, TimedOut
from toolwire.invocation.ports.under_way import CutOff, UnderWay
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.step import step
from toolwire.runtime.workers import WorkersExhausted
from toolwire.vocabulary.errors import BoundValueError, CallNotAnswered
from toolwire.vocabulary.machine.gate import Gate

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


class BlockingPorts:
    """Ports that never suspend. A wait blocks the current thread."""

    is_blocking = True

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @property
    def blocking(self) -> BlockingPorts:
        return self

    async def execute(
        self, function: Callable[[], Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Any:
        if limit_s is None:
            return function()
        future = self.runtime.workers.start(function)
        try:
            if not _is_done_within(future, limit_s, pauses):
                raise not_in_time(future, limit_s)
        except BaseException:
            # A job that has not started must not start after its caller has left.
            future.cancel()
            raise
        return future.result()

    def is_cancellation(self, error: BaseException) -> bool:
        # Without an event loop, a call is only cancelled by closing its coroutine.
        return isinstance(error, GeneratorExit)

    def is_still_running(self, error: BaseException) -> bool:  # noqa: ARG002 - a blocking call ends with its tool
        return False

    async def pass_gate(self, gate: Gate, limit_s: float | None) -> None:
        turn = gate.enter()
        if turn is None:
            return
        try:
            turn.result(limit_s)
        except BaseException as error:
            gate.withdraw(turn)
            if isinstance(error, TimeoutError):
                raise TimedOut(limit_s or 0, stopped=True) from error
            raise

    async def finish(self, work: Coroutine[Any, Any, T], limit_s: float | None, pauses: PauseClock | None = None) -> T:
        assert pauses is None, "an async tool reached the blocking driver: it belongs on the portal"
        try:
            return self.runtime.portal.run(lambda: work, limit_s=limit_s)
        except TimeoutError as late:
            raise TimedOut(limit_s or 0.0, stopped=True) from late

    async def await_tool_future(
        self, future: Future[Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Any:
        try:
            if not _is_done_within(future, limit_s, pauses):
                give_up(future, limit_s or 0.0)
        except BaseException:
            future.cancel()
            raise
        return value_of(future)

    async def ask(self, whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        answer = whom(question)
        if isinstance(answer, Awaitable):
            return self.runtime.portal.run(lambda: _finish(cast("Awaitable[A]", answer)))
        return cast("A", answer)

    def from_tool(self) -> Callable[[Callable[[], Coroutine[Any, Any, T]]], Future[T]]:
        return _run_to_future

    async def offload(self, function: Callable[[], T]) -> T:
        return function()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop is blocked here

    async def has_ended(self, future: Future[Any], limit_s: float) -> bool:
        return _is_done_within(future, limit_s)

    async def wait_for(self, future: Future[T]) -> T:
        return future.result()

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        # The first core runs in this thread, and so does every core for which no worker is free. A full pool slows a
        # batch
        # down, but never fails or deadlocks it.
        rest = [self._start(core) for core in cores[1:]]
        first = step(cores[0]())
        return [first, *(step(job()) if callable(job) else job.result() for job in rest)]

    async def unless_stopped(self, work: Coroutine[Any, Any, T], under_way: UnderWay) -> T | CutOff:  # noqa: ARG002
        return await work

    async def whole(self, core: Callable[[], Coroutine[Any, Any, T]], names: Callable[[], Iterable[str]]) -> T:  # noqa: ARG002 - a blocking turn cannot be cancelled
        return await core()

    def _start(self, core: Callable[[], Coroutine[Any, Any, T]]) -> Future[T] | Callable[[], Coroutine[Any, Any, T]]:
        workers = self.runtime.workers
        # Half of the workers stay free, because each call with a time limit needs a second one.
        if workers.busy >= workers.cap // 2 - 1:
            return core
        try:
            return workers.start(lambda: step(core()))
        except WorkersExhausted:
            return core


def _is_done_within(future: Future[Any], limit_s: float | None, pauses: PauseClock | None = None) -> bool:
    """True if the future was done within the limit and its pauses."""
    is_done = _is_done(future, limit_s)
    while not is_done and pauses is not None and (more_s := pauses.more_s()) > 0:
        is_done = _is_done(future, more_s)
    return is_done


def _is_done(future: Future[Any], limit_s: float | None) -> bool:
    try:
        # Not `wait`: it does not return for a future that was cancelled before its work began.
        with suppress(CancelledError):
            future.exception(limit_s)
    except TimeoutError:
        return False
    return True


def not_in_time(future: Future[Any], limit_s: float) -> TimedOut | WorkersExhausted:
    """Returns the reason why a job missed its limit: it did not end, or no worker was free to start it."""
    if future.cancel():
        return WorkersExhausted(f"no worker was free within {limit_s:g} s")
    return TimedOut(limit_s, stopped=False)


def give_up(future: Future[Any], limit_s: float) -> None:
    """Cancels a tool's future that is late. Returns if it ended just now.

    Raises:
        TimedOut: The future did not end.
    """
    is_stopped = future.cancel()
    if is_stopped or not future.done():
        raise TimedOut(limit_s, stopped=is_stopped)


def value_of(future: Future[Any]) -> Any:
    """Returns the result of a tool's future that is done, or `Raised`."""
    if future.cancelled():
        return Raised(CallNotAnswered("the future of the call was cancelled, and not by the caller"))
    error = future.exception()
    if isinstance(error, BoundValueError):
        raise error
    return future.result() if error is None else Raised(error)


def _run_to_future(core: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
    future = Future[T]()
    try:
        future.set_result(step(core()))
    except BaseException as error:  # noqa: BLE001 - the waiting tool receives it
        future.set_exception(error)
    return future


async def _finish(waiting: Awaitable[T]) -> T:
    return await waiting
