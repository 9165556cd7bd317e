"""What holds one program: an engine with the guest, borrowed for that time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from toolwire.sandbox.forked import Exit
from toolwire.sandbox.wasm.machine import HostFunctions, Machine


class WasmProcess:
    """One program's use of a machine. `close` gives it back."""

    def __init__(self, machine: Machine, release: Callable[[Machine], None]) -> None:
        self._machine = machine
        self._release = release
        self._lock = threading.Lock()
        self._is_playing = False
        self._is_closed = False

    @property
    def cpu_s(self) -> float:
        """Processor seconds of the guest so far."""
        return self._machine.cpu_s

    def play(self, host: HostFunctions, memory_mb: float) -> None:
        """Works as `Machine.play`. Does nothing once the process is closed."""
        with self._lock:
            if self._is_closed:
                return
            self._is_playing = True
        try:
            self._machine.play(host, memory_mb)
        finally:
            with self._lock:
                self._is_playing = False

    def kill(self) -> None:
        """Ends the guest, from any thread. It cannot end the next program of that machine."""
        with self._lock:
            if self._is_playing:
                self._machine.interrupt()

    def exit_after_kill(self) -> Exit:
        """Returns its processor seconds. There is no exit status: the drive notes how the guest has ended."""
        return Exit(status=0, cpu_s=self._machine.cpu_s)

    def exit(self, timeout_s: float) -> Exit:  # noqa: ARG002 - the guest has ended by now
        """Works as `exit_after_kill`."""
        return self.exit_after_kill()

    def close(self) -> None:
        """Gives the machine back. One whose guest waits for a tool of the host is not used again."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._is_playing:
                self._machine.interrupt()
                return
        self._release(self._machine)
