"""The port for what holds a program: a process forked here (`zygote.py`) or elsewhere (`fleet`), or a guest."""

from __future__ import annotations

import signal
from typing import Protocol

from toolwire.sandbox.forked import Exit
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import Isolation


class FrameReader(Protocol):
    """The end of a channel from which frames come. A `FileIO` is one."""

    def fileno(self) -> int:
        """Returns the descriptor to poll."""
        ...

    def read(self, size: int, /) -> bytes | None:
        """Returns bytes once the descriptor can be read, about `size`; b"" at the end, None if none came after all."""
        ...


class FrameWriter(Protocol):
    """The end of a channel to which frames go. A `FileIO` that does not block is one."""

    def fileno(self) -> int:
        """Returns the descriptor to poll."""
        ...

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Returns how many bytes it took; None for none. What it did not take is given again, in the same order."""
        ...


class ProgramProcess(Protocol):
    """What holds one program, and the means to end it: a process, or an instance of the guest (`wasm`)."""

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


class PipeProcess(ProgramProcess, Protocol):
    """A process with the channel of its program. `Child` is one on this machine."""

    @property
    def reader(self) -> FrameReader:
        """Frames from the program."""
        ...

    @property
    def writer(self) -> FrameWriter:
        """Frames to the program."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal if the process still runs; from any thread."""
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
