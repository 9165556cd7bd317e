"""One run of a program from its place to its result, in a thread of its own, and the wait for it."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from toolwire.runtime.workers import Workers
from toolwire.sandbox import forked
from toolwire.sandbox.admission import Places
from toolwire.sandbox.drive.call_drive import Call, CallDrive
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.drive.outcome import compose, not_started, oversize, source_error
from toolwire.sandbox.isolation import require
from toolwire.sandbox.processes import ProcessSource, ProgramProcess
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import Isolation, ProgramError, ProgramResult, ProgramStatus
from toolwire.sandbox.runner import Flag
from toolwire.sandbox.source_checks import check_source

LATE_S = 0.25
"""Seconds after the deadline at which a run returns although a tool is still busy."""
STOP_S = 0.02
"""Seconds between two looks at `cancel`, and seconds that the thread of a stopped run gets to end."""
_clock = time.monotonic

MakeDrive = Callable[[LiveProgram, Any, Call, Workers], CallDrive]
"""Makes the drive of a program in what its source gave."""


class ProgramRun:
    """One run of a program. `run` does all of it in one thread; another thread waits for it, and then calls `close`."""

    def __init__(
        self, program: Program, isolation: Isolation, zygotes: ProcessSource, places: Places, make_drive: MakeDrive
    ) -> None:
        """Takes a place, or one in the queue. The time of the program begins here.

        Raises:
            Overloaded: the queue is full.
        """
        self._live = LiveProgram(program, _clock())
        self._isolation = isolation
        self._zygotes = zygotes
        self._places = places
        self._make_drive = make_drive
        self._place = places.take()
        self._child: ProgramProcess | None = None
        self._drive: CallDrive | None = None

    @property
    def remaining_s(self) -> float:
        """Seconds until the waiting thread gives it up; it ends earlier unless a tool is still busy."""
        return max(self._live.started + self._live.limits.deadline_s + LATE_S - _clock(), 0.0)

    def run(self, call: Call, callers: Workers) -> ProgramResult:
        """Runs the program. Raises as `Sandbox.run`."""
        program, live = self._live.program, self._live
        if error := _refused(program):
            return not_started(error, self._isolation, _clock() - live.started)
        self._wait_for_place()
        child, self._isolation = self._zygotes.spawn(program.limits)
        self._child = child
        try:
            require(program, self._isolation)
            self._drive = self._make_drive(live, child, call, callers)
            self._drive.run()
            end = (child.exit_after_kill() if live.end is not None else None) or child.exit(forked.EXIT_TIMEOUT_S)
            return compose(live, end, self._isolation, _clock())
        finally:
            child.close()

    def stop(self, reason: ProgramStatus) -> None:
        """Gives the program up, from any thread. `run` returns soon, unless a tool holds its thread."""
        self._live.give_up(reason)
        # `run` looks whether the program is over after it has set these.
        if self._child is not None:
            self._child.kill()
        if self._drive is not None:
            self._drive.stop()

    def result(self) -> ProgramResult:
        """Returns the result of a program that was stopped, although a tool still holds its thread. Raises as `run`."""
        if self._drive is not None:
            self._drive.raise_fatal()
        end = self._child.exit_after_kill() if self._child is not None else None
        return compose(self._live, end, self._isolation, _clock())

    def close(self) -> None:
        """Gives the place back and ends the program's process."""
        self._place.cancel()
        self._places.give_back(self._place)
        if self._child is not None:
            self._child.close()

    def _wait_for_place(self) -> None:
        until = self._live.started + self._live.limits.deadline_s
        try:
            self._place.result(max(until - _clock(), 0.0))
        except concurrent.futures.TimeoutError:
            raise self._places.overload_error() from None


def watch(driving: Future[ProgramResult], run: ProgramRun, cancel: Flag | None) -> ProgramResult:
    """Waits for the result, at most until the deadline, even if a tool never returns. Raises as `Sandbox.run`."""
    while not _is_done(driving, run.remaining_s if cancel is None else min(run.remaining_s, STOP_S)):
        if cancel is not None and cancel.is_set():
            run.stop("cancelled")
        elif run.remaining_s:
            continue
        else:
            run.stop("deadline")
        _is_done(driving, STOP_S)
        break
    return driving.result() if driving.done() else run.result()


def _refused(program: Program) -> ProgramError | None:
    """Returns the reason not to start the program; None when it may start."""
    error = oversize(program)
    if error is None and (refusals := check_source(program)):
        error = source_error(program, refusals)
    return error


def _is_done(driving: Future[ProgramResult], timeout_s: float) -> bool:
    try:
        driving.exception(timeout_s)
    except concurrent.futures.TimeoutError:
        return False
    return True
