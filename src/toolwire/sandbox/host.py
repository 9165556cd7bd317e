"""The sandbox's public face: runs programs, each in its own process, and returns their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self, TypeVar

from toolwire.runtime.workers import Workers, WorkersExhausted
from toolwire.sandbox.admission import LIVE_CAP, QUEUE_CAP, Places
from toolwire.sandbox.answers import Answer, Parked, replay_engine
from toolwire.sandbox.drive.drive import Drive
from toolwire.sandbox.drive.program_run import MakeDrive, ProgramRun, watch
from toolwire.sandbox.processes import ProcessSource
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import MinIsolation, ProgramResult
from toolwire.sandbox.runner import CallHandlers, Flag, LaterAnswer
from toolwire.sandbox.zygote import Zygotes

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")

DRIVERS_CAP = 2 * LIVE_CAP + QUEUE_CAP
"""Threads that drive programs: one for each that runs or waits for a place, and as many as run at once for programs
that were given up while a tool held their thread.
"""


class Sandbox:
    """Runs programs. All threads and event loops of a process share one sandbox and its zygote.

    Nothing is started until the first run. `close` ends the zygote and every program that still runs.
    """

    usual_isolation: MinIsolation = "kernel"
    """The least isolation of programs for which nobody asked for another."""
    _make_drive: MakeDrive = Drive

    def __init__(self, zygotes: ProcessSource | None = None) -> None:
        """`zygotes` gives each program its process; None: a new `Zygotes`, which fork here."""
        self._make_threads()
        self._zygotes: ProcessSource = Zygotes() if zygotes is None else zygotes
        self._places = Places()

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Runs the program in its own process and blocks until it is over, at most half a second beyond its deadline.

        `call` answers the program's tool calls. Calls of plain code come one after the other in one worker thread;
        calls of async code come side by side in several threads. `call` should raise only exceptions meant for the
        caller of `run`. When `cancel` becomes set, the program is ended.

        Raises:
            Overloaded: too many programs run or wait; nothing was run.
            SandboxUnavailable: the isolation here is weaker than `min_isolation`, or no process can be started.
        """
        # The start of a zygote must not count as the program's time.
        isolation = self._zygotes.isolation()
        program_run = ProgramRun(program, isolation, self._zygotes, self._places, self._make_drive)
        try:
            return watch(self._start(lambda: program_run.run(call, self._callers)), program_run, cancel)
        finally:
            program_run.close()

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked]) -> ProgramResult:
        """Works as `run`, awaited: the program takes one thread, and the loop goes on meanwhile.

        When the task that awaits this is cancelled, the program is ended.
        """
        # asyncio takes longer to import than the rest of this package: only callers with a loop pay for it.
        import asyncio

        from toolwire.sandbox.drive.looping import watch_on_loop

        if not self._zygotes.is_ready:
            await asyncio.wrap_future(self._start(self._zygotes.isolation))
        isolation = self._zygotes.isolation()
        program_run = ProgramRun(program, isolation, self._zygotes, self._places, self._make_drive)
        try:
            driving = self._start(lambda: program_run.run(call, self._callers))
            return await watch_on_loop(driving, program_run)
        finally:
            program_run.close()

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]]
    ) -> ProgramResult:
        """Works as `run_beside`, for tools that are awaited: each call becomes a task of the running asyncio loop.

        When the task that awaits this is cancelled, the program is ended and its calls are cancelled.
        """
        from toolwire.runtime.loop_calls import LoopCalls

        async with LoopCalls() as calls:

            def start(made: ProgramCall, ended: Callable[[LaterAnswer], None]) -> Callable[[], None]:
                return calls.start(lambda: call(made), ended)

            return await self.run_beside(program, CallHandlers(_answer_here, start))

    @property
    def replay_engine(self) -> str:
        """Names where records of its programs replay: another Python, replay version or time zone does not."""
        return replay_engine

    @property
    def zygotes(self) -> Zygotes:
        """The fork servers, for tests, benchmarks and `doctor`.

        Raises:
            TypeError: the programs of this sandbox have their processes elsewhere.
        """
        if not isinstance(self._zygotes, Zygotes):
            raise TypeError("this sandbox forks no process on this machine, so it has no zygotes")
        return self._zygotes

    def close(self) -> None:
        """Ends the zygote, and with it every program that still runs."""
        self._zygotes.close()
        self._drivers.close()
        self._callers.close()
        self._make_threads()

    def after_fork(self) -> None:
        """Resets this sandbox in a forked child of the host; it leaves the parent's zygote alone and starts its own
        when needed.
        """
        self._zygotes.forget()
        self._places = Places()
        self._make_threads()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _make_threads(self) -> None:
        # Neither has a queue: programs wait for places, and a call without a free thread is answered in its driver's.
        self._drivers = Workers(DRIVERS_CAP, waiting_cap=0)
        self._callers = Workers(waiting_cap=0)

    def _start(self, function: Callable[[], T]) -> Future[T]:
        """Runs the function in a thread that may drive a program. Raises Overloaded if none is free."""
        try:
            return self._drivers.start(function)
        except WorkersExhausted:
            raise self._places.overload_error() from None


def _answer_here(call: ProgramCall) -> Answer | Parked:
    raise AssertionError(f"unreachable: call {call.ordinal} is answered later")
