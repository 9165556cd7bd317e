"""The port for the process of a program: forked on this machine (`zygote.py`), or on another one (`fleet`)."""

from __future__ import annotations

import signal
from io import FileIO
from typing import Protocol

from toolwire.sandbox.forked import Exit
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import Isolation


class ProgramProcess(Protocol):
    """The process of one program: its channel, and the means to end it. `Child` is one on this machine."""

    @property
    def reader(self) -> FileIO:
        """Frames from the program; can be polled."""
        ...

    @property
    def writer(self) -> FileIO:
        """Frames to the program; can be polled, and writing never blocks."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal if the process still runs; from any thread."""
        ...

    def kill(self) -> None:
        """Kills the process; from any thread."""
        ...

    def exit_after_kill(self) -> Exit | None:
        """Returns the exit after a kill without waiting for it; None when it is not known yet."""
        ...

    def exit(self, timeout_s: float) -> Exit | None:
        """Returns the exit; None when it does not come in time. Call it once, after the process was killed or ended."""
        ...

    def close(self) -> None:
        """Kills the process and closes its channel; safe to repeat and from any thread."""
        ...


class ProcessSource(Protocol):
    """Gives each program its process. `Zygotes` is the source on this machine."""

    @property
    def is_ready(self) -> bool:
        """True if `isolation` does not block."""
        ...

    def isolation(self) -> Isolation:
        """Returns the isolation of the next process, as far as it can be known; may block.

        Raises:
            SandboxUnavailable: no process can be had.
        """
        ...

    def spawn(self, limits: Limits) -> tuple[ProgramProcess, Isolation]:
        """Returns a process and its isolation; blocks until it is there. Raises as `isolation`."""
        ...

    def close(self) -> None:
        """Ends all processes."""
        ...

    def forget(self) -> None:
        """Resets it in a forked child of the host, and leaves the parent's processes alone."""
        ...
