"""The port for programs: `ProgramRunner`. The `Sandbox` of `host.py` is the implementation that comes with toolwire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Literal, Protocol

from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import MinIsolation, ProgramResult


class Flag(Protocol):
    """Tells a run to stop: a `threading.Event`, for example."""

    def is_set(self) -> bool:
        """Returns True if the run must stop."""
        ...


LaterAnswer = Answer | Parked | BaseException | None
"""How a call ended that is answered later. None: it was cancelled."""


@dataclass(frozen=True, slots=True)
class CallHandlers:
    """Answers the calls of a program, some of them later. A runner may call it as any other `call`, and so wait.

    Attributes:
        answer: Answers a call in the current thread.
        start: Starts a call and returns a function that cancels it, or None if `answer` must answer it. Calls its
            second argument once, from any thread, when the call has ended.
    """

    answer: Callable[[ProgramCall], Answer | Parked]
    start: Callable[[ProgramCall, Callable[[LaterAnswer], None]], Callable[[], None] | None]

    def __call__(self, call: ProgramCall, /) -> Answer | Parked:
        ended: Future[LaterAnswer] = Future()
        if self.start(call, ended.set_result) is None:
            return self.answer(call)
        outcome = ended.result()
        if outcome is None:
            raise CancelledError
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class ProgramRunner(Protocol):
    """Runs programs, for all threads and event loops at once. `check_runner` of `toolwire.testing` checks one.

    The result tells how a program ended, in every case. Exceptions are for the caller of the run.

    A runner may have `usual_isolation`, the least isolation of a program for which nobody asked for another ("kernel"
    without it), and `replay_engine`, a text that names where its records replay (that of this process's Python).
    """

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /, *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Runs the program and blocks until it is over; `cancel`, once set, ends it.

        `call` answers the program's calls, numbered from 1 in order of issue. An `Exception` that it raises becomes an
        error to the program. Any other exception ends the program and is raised here. When `call` returns PARKED, a
        program with `replay` is suspended as soon as only such calls can bring it further; to any other program PARKED
        is an error. An answer with `ends` ends the program: nothing after that call runs, and no record answers it.

        Raises:
            Overloaded: too many programs run or wait; nothing was run.
            SandboxUnavailable: the isolation is weaker than `min_isolation`; nothing was run.
        """
        ...

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        """Works as `run`, with answers that are awaited on the running asyncio loop.

        When the task that awaits this is cancelled, the program is ended and its calls are cancelled.
        """
        ...

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /) -> ProgramResult:
        """Works as `run`, awaited: `call` runs in other threads than the loop's, and the loop goes on meanwhile."""
        ...


RunnerName = Literal["kernel", "wasm"]
"""A runner of this machine: the sandbox that the kernel holds, or the one in WebAssembly."""
RunnerChoice = ProgramRunner | RunnerName


def usual_isolation(runner: ProgramRunner) -> MinIsolation:
    """Returns the least isolation of this runner's programs for which nobody asked for another."""
    usual: MinIsolation = getattr(runner, "usual_isolation", "kernel")
    return usual
