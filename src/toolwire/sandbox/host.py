"""The sandbox's public face: runs programs, each in its own process, and returns their results."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from toolwire.runtime.runtime import default_runtime
from toolwire.runtime.workers import Workers, WorkersExhausted
from toolwire.sandbox import forked
from toolwire.sandbox.admission import LIVE_CAP, QUEUE_CAP, Places
from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.drive.blocking import BlockingDrive
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.forked import Child
from toolwire.sandbox.isolation import require
from toolwire.sandbox.outcome import compose, not_started, oversize, refusal
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import ProgramError, ProgramResult
from toolwire.sandbox.runner import Flag
from toolwire.sandbox.source_checks import check_source
from toolwire.sandbox.zygote import Zygotes

if TYPE_CHECKING:
    from types import TracebackType

DRIVERS_CAP = 2 * LIVE_CAP + QUEUE_CAP
"""Threads that drive programs: one for each that runs, and one for each awaited one that runs or waits."""
_LATE_S = 0.25
"""Seconds after the deadline at which a run returns although a tool is still busy."""
_CANCEL_TICK_S = 0.02


class Sandbox:
    """Runs programs. All threads and event loops of a process share one sandbox and its zygote.

    Nothing is started until the first run. `close` ends the zygote and every program that still runs.
    """

    def __init__(self, workers: Workers | None = None, zygotes: Zygotes | None = None) -> None:
        self._own_workers = workers
        self._make_threads()
        self._zygotes = Zygotes() if zygotes is None else zygotes
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
        isolation = self._zygotes.current().isolation
        started = time.monotonic()
        if error := _refusal(program):
            return not_started(error, isolation, time.monotonic() - started)
        place = self._places.take()
        try:
            self._wait_for(place, started + program.limits.deadline_s)
            return self._run_placed(program, call, cancel, started)
        finally:
            self._places.give_back(place)

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]]
    ) -> ProgramResult:
        """Works as `run`, for tools that are awaited: each call becomes a task of the running asyncio loop.

        When the task that awaits this is cancelled, the program is ended and its calls are cancelled.
        """
        # asyncio takes longer to import than the rest of this package: only callers with a loop pay for it.
        from toolwire.sandbox.drive.looping import run_on_loop, zygote_of

        zygote = await zygote_of(self._zygotes, self.workers)
        started = time.monotonic()
        if error := _refusal(program):
            return not_started(error, zygote.isolation, time.monotonic() - started)
        return await run_on_loop(self._zygotes, self._places, self.workers, self._reader, program, call, started)

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked]) -> ProgramResult:
        """Works as `run`, awaited: for plain tools under an event loop, three times as fast as a task for each call."""
        from toolwire.sandbox.drive.looping import run_in_worker

        return await run_in_worker(self._drivers, lambda flag: self.run(program, call, cancel=flag))

    @property
    def workers(self) -> Workers:
        """The threads that start the zygote for an event loop."""
        return self._own_workers or default_runtime().workers

    @property
    def zygotes(self) -> Zygotes:
        """The fork servers, for tests, benchmarks and `doctor`."""
        return self._zygotes

    def close(self) -> None:
        """Ends the zygote, and with it every program that still runs."""
        self._zygotes.close()
        self._drivers.close()
        self._callers.close()
        self._reader.shutdown(wait=False)
        self._make_threads()

    def after_fork(self) -> None:
        """Resets this sandbox in a forked child of the host; it leaves the parent's zygote alone and starts its own
        when needed.
        """
        self._zygotes.forget()
        self._places = Places()
        self._make_threads()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _make_threads(self) -> None:
        # A program waits for a place, not for a thread; a call without a free thread is answered in its driver's.
        self._drivers = Workers(DRIVERS_CAP, waiting_cap=0)
        self._callers = Workers(waiting_cap=0)
        # One thread: two would share the interpreter's lock, and each would keep memory of its own.
        self._reader = concurrent.futures.ThreadPoolExecutor(1, "toolwire-reader")

    def _wait_for(self, place: Future[None], until: float) -> None:
        try:
            place.result(max(until - time.monotonic(), 0.0))
        except concurrent.futures.TimeoutError:
            raise self._places.overloaded() from None

    def _run_placed(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], cancel: Flag | None, started: float
    ) -> ProgramResult:
        child, isolation = self._zygotes.spawn(program.limits)
        try:
            require(program, isolation)
            live = LiveProgram(program, started)
            drive = BlockingDrive(live, child, call, self._callers)
            drive.start()
            try:
                driving = self._drivers.start(drive.run)
            except WorkersExhausted:
                raise self._places.overloaded() from None
            _watch(driving, live, child, cancel)
            if drive.fatal is not None:
                raise drive.fatal
            end = (child.killed() if live.end is not None else None) or child.exit(forked.EXIT_TIMEOUT_S)
            return compose(live, end, isolation, time.monotonic())
        finally:
            child.close()


def _refusal(program: Program) -> ProgramError | None:
    """Returns the reason not to start the program; None when it may start."""
    error = oversize(program)
    if error is None and (refusals := check_source(program)):
        error = refusal(program, refusals)
    return error


def _watch(driving: Future[None], live: LiveProgram, child: Child, cancel: Flag | None) -> None:
    """Waits for the drive, at most until the deadline, even if a tool never returns."""
    until = live.started + live.limits.deadline_s + _LATE_S
    while not _is_done(driving, until, _CANCEL_TICK_S if cancel is not None else None):
        if cancel is not None and cancel.is_set():
            live.give_up("cancelled")
        elif time.monotonic() < until:
            continue
        live.give_up("deadline")
        child.kill()
        # The drive sees the closed channel at once, unless it is inside the tool.
        _is_done(driving, time.monotonic() + _CANCEL_TICK_S, None)
        return


def _is_done(driving: Future[None], until: float, at_most: float | None) -> bool:
    left = max(until - time.monotonic(), 0.0)
    try:
        driving.result(left if at_most is None else min(left, at_most))
    except concurrent.futures.TimeoutError:
        return False
    return True
