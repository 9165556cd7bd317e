"""The port of what runs programs: `ProgramRunner`. The sandbox of `host.py` is the one that comes with us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import ProgramResult


class Flag(Protocol):
    """What tells a run to stop: a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...


class ProgramRunner(Protocol):
    """Runs programs, for all threads and event loops at once. `check_runner` of `toolwire.testing` checks one.

    How a program ends is in its result, whatever it does; what is raised is meant for who runs it.
    """

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /, *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Runs the program and blocks until it is over; `cancel`, once set, ends it.

        `call` answers its calls, numbered from 1 in order of issue. An `Exception` of it is an error to the program,
        any other ends the program and is raised here. Where it gives PARKED, a program with `replay` is suspended as
        soon as nothing else can bring it on; to any other that is an error.

        Raises:
            Overloaded: too many programs run or wait; nothing was run.
            SandboxUnavailable: its walls are weaker than `min_isolation`; nothing was run.
        """
        ...

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        """As `run`, with answers that are awaited on the running asyncio loop.

        When the task that awaits this is cancelled, the program is ended and its calls are cancelled.
        """
        ...

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /) -> ProgramResult:
        """As `run`, awaited: `call` is called in other threads than the loop's, which goes on meanwhile."""
        ...
