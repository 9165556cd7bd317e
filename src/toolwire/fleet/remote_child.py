"""The process of a program on a runner, as the sandbox's drive needs it: bytes in and out, signals, and its exit."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolwire.fleet import relay
from toolwire.fleet.relay import READ_BYTES, MessageStream, RelayLost, wait_for
from toolwire.sandbox.drive.waker import Waker
from toolwire.sandbox.forked import Exit

KILL_LIMIT_S = 1.0
"""Seconds for the exit of a process that was killed. After that its connection is closed, which kills it as well."""
EXIT_LIMIT_BYTES = 256
"""Size of the largest exit: a status and a number of seconds."""


@dataclass(frozen=True, slots=True)
class RemoteEnd:
    """One end of the channel, with the descriptor to poll for it."""

    fileno: Callable[[], int]
    read: Callable[[int], bytes | None]
    write: Callable[[bytes | memoryview], int | None]


class RemoteChild:
    """One process on a runner. All methods may be called from any thread; only `exit` blocks."""

    def __init__(self, stream: MessageStream, lost: Callable[[str], None], release: Callable[[bool], None]) -> None:
        """`lost` is called with the reason if the connection is lost, before the drive reads the end of the program.
        `release` is called at the end, with True if the connection is of use for another program.
        """
        self._stream = stream
        self._tell_lost = lost
        self._release = release
        # Reentrant: a garbage collection in here may end a call, and its program is killed.
        self._lock = threading.RLock()
        self._sending = 0
        """Bytes that the stream was given for `write`, and has not sent whole; 0 for none."""
        self._is_killed = self._is_over = self._is_lost = self._is_closed = False
        self._exit: Exit | None = None
        # After the exit nothing more comes, so the end needs a descriptor of its own that can be read.
        self._end, self._ready = Waker(), select.epoll()
        for descriptor in (stream.fileno(), self._end.descriptor):
            self._ready.register(descriptor, select.EPOLLIN)
        self.reader = RemoteEnd(self._ready.fileno, self._read, self._write)
        self.writer = RemoteEnd(stream.fileno, self._read, self._write)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process was killed before."""
        with self._lock:
            if self._is_over or self._is_closed or self._is_killed:
                return
            self._is_killed = number == signal.SIGKILL
            try:
                self._stream.send(relay.SIGNAL, bytes([number]))
            except RelayLost as lost:
                self._lose(str(lost))

    def kill(self) -> None:
        """Kills the process."""
        self.signal(signal.SIGKILL)

    def exit_after_kill(self) -> Exit | None:
        """Returns None: only the runner knows the processor time."""
        return None

    def exit(self, timeout_s: float) -> Exit | None:
        """Returns the exit as the runner told it; None if it does not come in time, or if the connection is lost."""
        until = time.monotonic() + min(timeout_s, KILL_LIMIT_S)
        while not self._is_over and not self._is_closed:
            try:
                wait_for(self._stream, select.POLLIN | (select.POLLOUT if self._stream.unsent else 0), until)
                with self._lock:
                    self._read(READ_BYTES)
                    self._stream.flush()
            except RelayLost as lost:
                self._lose(str(lost))
            except (OSError, ValueError):
                # Another thread has closed it.
                break
        return self._exit

    def close(self) -> None:
        """Kills the process, and gives the connection back if its exit has come."""
        self.kill()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._ready.close()
                self._end.close()
                self._release(self._is_over and not self._is_lost)

    def _read(self, _: int) -> bytes | None:
        """Reads what has come, at most some messages; see `FrameReader`."""
        stream, data = self._stream, bytearray()
        with self._lock:
            if self._is_closed:
                raise ValueError("the process is closed")
            stream.is_readable = True
            try:
                while not self._is_over and (message := stream.next()) is not None:
                    if message.kind == relay.DATA:
                        data += message.data
                        # What was received is taken whole, since it makes no descriptor readable.
                        stream.is_readable = stream.is_readable and len(data) < READ_BYTES
                    elif message.kind == relay.EXIT:
                        self._exit = exit_of(message.data)
                        self._is_over = True
                        self._end.wake()
                    else:
                        raise RelayLost(f"an unexpected message came: {message.kind!r}")
            except RelayLost as lost:
                self._lose(str(lost))
            return bytes(data) if data or self._is_over else None

    def _write(self, data: bytes | memoryview) -> int | None:
        """Sends the first part of `data`. Takes it only when all of it is sent, since later calls send the rest."""
        with self._lock:
            if self._is_over or self._is_closed:
                raise BrokenPipeError
            try:
                if self._sending:
                    self._stream.flush()
                else:
                    self._sending = len(data[: relay.MESSAGE_LIMIT_BYTES])
                    self._stream.send(relay.DATA, bytes(data[: relay.MESSAGE_LIMIT_BYTES]))
            except RelayLost as lost:
                self._lose(str(lost))
                raise BrokenPipeError from lost
            if self._stream.unsent:
                return None
            sent, self._sending = self._sending, 0
            return sent

    def _lose(self, reason: str) -> None:
        with self._lock:
            if not self._is_over and not self._is_closed:
                self._is_over = self._is_lost = True
                self._tell_lost(reason)
                self._end.wake()


def exit_of(data: bytes) -> Exit | None:
    """Returns the exit that a runner told; None if it did not learn it. Raises RelayLost for anything else."""
    try:
        told: Any = json.loads(data) if len(data) <= EXIT_LIMIT_BYTES else {}
        if told is None:
            return None
        status, cpu_s = told["status"], told["cpu_s"]
        if type(status) is not int or type(cpu_s) is not float or not 0 <= cpu_s < math.inf:
            raise TypeError(status)
        os.waitstatus_to_exitcode(status)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise RelayLost("the exit that it told is none") from None
    return Exit(status=status, cpu_s=cpu_s)
