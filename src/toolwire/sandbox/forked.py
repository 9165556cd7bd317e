"""A child process as the host holds it: its channel, and the means to end it and to learn its exit status."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from typing import Any

from toolwire.vocabulary.errors import SandboxUnavailable

SPAWN_TIMEOUT_S = 10.0
EXIT_TIMEOUT_S = 5.0
"""Seconds to wait for the exit status of a child that ended. The zygote sends it after half a millisecond, but on a
busy machine it may have to wait for a processor. If the zygote is dead, the wait ends at once."""
_PACKET_BYTES = 65_536
_FDINFO_BYTES = 1024
_FDS = 3
"""Descriptors that come with a child: our two ends of its channel, and its pidfd."""
_RIGHTS_BYTES = _FDS * array.array("i").itemsize


class ZygoteGone(Exception):
    """The zygote died, or was closed, before it gave a child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a child's process ended, as the kernel told the zygote.

    Attributes:
        status: A wait status, for `os.waitstatus_to_exitcode`.
        cpu_s: Processor seconds that it used.
    """

    status: int
    cpu_s: float


class Child:
    """One forked child: its channel and the means to end it. `close` kills it."""

    def __init__(
        self, reader: FileIO, writer: FileIO, pidfd: int, status: socket.socket, released: Callable[[], None]
    ) -> None:
        self.reader = reader
        """Read end: frames from the child."""
        self.writer = writer
        """Write end: frames to the child; writing never blocks."""
        self._released = released
        self._pidfd = pidfd
        self._status = status
        self._lock = threading.Lock()
        self._closed = False

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal if the child still runs. The pidfd cannot refer to another process."""
        with self._lock:
            if not self._closed:
                try:
                    signal.pidfd_send_signal(self._pidfd, number)
                except ProcessLookupError:
                    return

    def kill(self) -> None:
        """Kills the child."""
        self.signal(signal.SIGKILL)

    def exit_after_kill(self) -> Exit | None:
        """Returns the child's exit after a kill without waiting for it; None when its processor time cannot be read.

        Meant for a program that has sent its result. The kernel needs a third of a short program's time to take its
        process down, and the exit status would add nothing.
        """
        try:
            with self._lock:
                cpu_s = time.clock_gettime(_processor_clock(_process_id(self._pidfd)))
        except (OSError, ValueError):
            return None
        return Exit(status=signal.SIGKILL, cpu_s=cpu_s)

    def exit(self, timeout_s: float) -> Exit | None:
        """Returns the child's exit; None when the zygote did not send it in time or is gone.

        Call it once, after `kill` or after the child has ended by itself.
        """
        _receive_timeout(self._status, timeout_s)
        return _exit_of(self._status)

    def close(self) -> None:
        """Kills the child and closes its descriptors; safe to repeat and from any thread."""
        self.kill()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._pidfd)
        self.reader.close()
        self.writer.close()
        self._status.close()
        self._released()

    @property
    def status(self) -> socket.socket:
        """The socket on which the zygote sends the exit status, for waiting on an event loop."""
        return self._status


class Spawning:
    """A child that has been requested. Either `wait` for it, or call `receive` once `status` can be read."""

    def __init__(self, status: socket.socket, report: dict[str, str], released: Callable[[], None]) -> None:
        self.status = status
        self._report = report
        self._released = released

    def wait(self) -> Child:
        """Returns the child; blocks until it is there, at most `SPAWN_TIMEOUT_S`.

        Raises:
            ZygoteGone: the zygote died, or did not send the child in time.
            SandboxUnavailable: the zygote cannot fork, or this process may not open more files.
        """
        _receive_timeout(self.status, SPAWN_TIMEOUT_S)
        return self.receive()

    def receive(self) -> Child:
        """Returns the child once `status` can be read; raises as `wait`."""
        try:
            return self._receive_child()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Gives the child up: its channel closes, and it ends."""
        self.status.close()
        self._released()

    def _receive_child(self) -> Child:
        try:
            data, ancillary, _, _ = self.status.recvmsg(_PACKET_BYTES, socket.CMSG_SPACE(_RIGHTS_BYTES))
        except OSError as error:
            raise ZygoteGone(str(error)) from None
        if not data:
            raise ZygoteGone("it closed the socket")
        message = json.loads(data)
        if "refused" in message:
            raise SandboxUnavailable(
                f"no process can be started for a program: {message['refused']}",
                report=self._report,
                how_to_fix="Run fewer programs at once, or raise this machine's limit on processes.",
            )
        descriptors = array.array("i")
        for _, _, rights in ancillary:
            descriptors.frombytes(rights[: len(rights) - len(rights) % descriptors.itemsize])
        if len(descriptors) != _FDS:
            for descriptor in descriptors:
                os.close(descriptor)
            raise SandboxUnavailable(
                "no process can be started for a program: this process may open no more files",
                report=self._report,
                how_to_fix="Run fewer programs at once, or raise the limit of open files (ulimit -n).",
            )
        reading, writing, pidfd = descriptors
        os.set_blocking(writing, False)
        return Child(FileIO(reading, "r"), FileIO(writing, "w"), pidfd, self.status, self._released)


def _process_id(pidfd: int) -> int:
    """Returns the child's process id in this process's namespace.

    Raises:
        OSError: /proc is missing here.
        ValueError: the child is gone, or /proc belongs to another namespace.
    """
    if os.readlink("/proc/self") != str(os.getpid()):  # noqa: PTH115 - a path object would cost more than the call
        raise ValueError("/proc is another namespace's")
    with open(f"/proc/self/fdinfo/{pidfd}", "rb", buffering=0) as file:
        _, _, found = file.read(_FDINFO_BYTES).partition(b"\nPid:")
    process_id = int(found.split(maxsplit=1)[0] if found else b"")
    if process_id <= 0:
        raise ValueError(process_id)
    return process_id


def _processor_clock(process_id: int) -> int:
    """Returns the clock of another process's processor time, as the C library's `clock_getcpuclockid` makes it."""
    return ~process_id << 3 | 2


def _exit_of(status: socket.socket) -> Exit | None:
    try:
        data = status.recv(_PACKET_BYTES)
    except OSError:
        return None
    if not data:
        return None
    message: dict[str, Any] = json.loads(data)
    return Exit(status=message["status"], cpu_s=message["cpu_s"])


def _receive_timeout(receiver: socket.socket, seconds: float) -> None:
    """Sets a deadline for blocking reads in the kernel: `settimeout` costs a poll for each read."""
    whole = int(seconds)
    value = struct.pack("@ll", whole, max(int((seconds - whole) * 1_000_000), 1 if not whole else 0))
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
