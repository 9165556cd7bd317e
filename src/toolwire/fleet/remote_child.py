"""The process of a program on a runner, as the sandbox's drive needs it: two pipes, signals, and its exit."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from io import FileIO
from typing import Any

from toolwire.fleet import relay
from toolwire.fleet.relay import MessageStream, Relay, RelayLost
from toolwire.sandbox.drive.waker import Waker
from toolwire.sandbox.forked import Exit

KILL_LIMIT_S = 1.0
"""Seconds for the exit of a process that was told to end. After that its connection is closed, which ends it too."""
EXIT_LIMIT_BYTES = 256
"""Size of the largest exit: a status and a number of seconds."""


class RemoteChild:
    """One process on a runner. A thread of its own passes the bytes; the drive sees two pipes."""

    def __init__(self, stream: MessageStream, over: Callable[[str], None]) -> None:
        """`over` is called once, in another thread: with the reason if the connection is lost, else with ''."""
        self._stream = stream
        self._tell_over = over
        from_runner, to_drive = os.pipe()
        from_drive, to_runner = os.pipe()
        os.set_blocking(to_drive, False)
        os.set_blocking(to_runner, False)
        self.reader, self._to_drive = FileIO(from_runner, "r"), FileIO(to_drive, "w")
        self._from_drive, self.writer = FileIO(from_drive, "r"), FileIO(to_runner, "w")
        self._waker = Waker()
        self._signals = deque[signal.Signals]()
        self._is_killed = False
        self._exit: Exit | None = None
        self._over = threading.Event()
        threading.Thread(target=self._pass_bytes, name="toolwire-relay", daemon=True).start()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process was killed before."""
        if self._is_killed:
            return
        self._is_killed = number == signal.SIGKILL
        self._signals.append(number)
        self._waker.wake()

    def kill(self) -> None:
        """Kills the process."""
        self.signal(signal.SIGKILL)

    def exit_after_kill(self) -> Exit | None:
        """Returns None: only the runner knows the processor time."""
        return None

    def exit(self, timeout_s: float) -> Exit | None:
        """Returns the exit as the runner told it; None if it does not come in time, or if the connection is lost."""
        self._over.wait(timeout_s)
        return self._exit

    def close(self) -> None:
        """Kills the process and closes the drive's ends. The connection is given back once the exit has come."""
        self.kill()
        self.reader.close()
        self.writer.close()

    def _pass_bytes(self) -> None:
        passing, reason = Relay(self._stream, self._waker.descriptor), ""
        passing.attach(self._from_drive, self._to_drive)
        try:
            self._exit = self._wait_for_exit(passing)
        except RelayLost as lost:
            reason = str(lost)
        finally:
            # In this order: the drive reads the end of the pipe only when it is known why there is one.
            self._tell_over(reason)
            passing.drain()
            self._to_drive.close()
            self._from_drive.close()
            self._over.set()
            self._waker.close()

    def _wait_for_exit(self, passing: Relay) -> Exit | None:
        for kind, data in passing.messages():
            if kind == relay.EXIT:
                return exit_of(data)
            if kind == relay.WOKEN:
                self._waker.clear()
                while self._signals:
                    number = self._signals.popleft()
                    self._stream.send(relay.SIGNAL, bytes([number]))
                    if number == signal.SIGKILL:
                        passing.deadline = time.monotonic() + KILL_LIMIT_S
            elif kind != relay.ENDED:
                raise RelayLost(f"an unexpected message came: {kind!r}")
        raise AssertionError("unreachable: a relay never ends by itself")


def exit_of(data: bytes) -> Exit | None:
    """Returns an exit that a runner told; None if the runner did not learn it. Raises RelayLost for anything else."""
    try:
        if len(data) > EXIT_LIMIT_BYTES:
            raise ValueError(len(data))
        told: Any = json.loads(data)
        if told is None:
            return None
        status, cpu_s = told["status"], told["cpu_s"]
        if type(status) is not int or type(cpu_s) is not float or not 0 <= cpu_s < math.inf:
            raise TypeError(status)
        os.waitstatus_to_exitcode(status)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise RelayLost("the runner told an exit that is none") from None
    return Exit(status=status, cpu_s=cpu_s)
