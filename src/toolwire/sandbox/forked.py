"""A child as the host holds it: its channel, and the means to end it and to hear of its end."""

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
_PACKET_BYTES = 65_536
_FDINFO_BYTES = 1024
_FDS = 3
"""What comes with a child: both ends of its channel that are ours, and its pidfd."""
_RIGHTS_SPACE = socket.CMSG_SPACE(_FDS * array.array("i").itemsize)


class ZygoteGone(Exception):
    """The zygote died, or was closed, before it gave a child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a child's process ended, as the kernel told the zygote."""

    status: int
    """A wait status, for `os.waitstatus_to_exitcode`."""
    cpu_s: float
    """Processor seconds it used."""


class Child:
    """One forked child: its channel and what is needed to end it. Closing it kills it."""

    def __init__(
        self, reader: FileIO, writer: FileIO, pidfd: int, status: socket.socket, released: Callable[[], None]
    ) -> None:
        self.reader = reader
        """What it says."""
        self.writer = writer
        """What it is told; writing never blocks."""
        self._released = released
        self._pidfd = pidfd
        self._status = status
        self._lock = threading.Lock()
        self._closed = False

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal if it still runs. The pidfd cannot mean another process."""
        with self._lock:
            if not self._closed:
                try:
                    signal.pidfd_send_signal(self._pidfd, number)
                except ProcessLookupError:
                    return

    def kill(self) -> None:
        """Ends it."""
        self.signal(signal.SIGKILL)

    def killed(self) -> Exit | None:
        """Its end as far as it is known once it was killed, without waiting for it; None when nobody can say.

        For a program that has told its result: until the kernel has taken its process down is a third of the time
        that a short one takes, and nothing more is to be learnt from it.
        """
        try:
            with self._lock:
                cpu_s = time.clock_gettime(_processor_clock(_process_id(self._pidfd)))
        except (OSError, ValueError):
            return None
        return Exit(status=signal.SIGKILL, cpu_s=cpu_s)

    def exit(self, timeout_s: float) -> Exit | None:
        """Its end; None when the zygote did not tell in time or is gone. Asked once, after `kill` or its own end."""
        _receive_timeout(self._status, timeout_s)
        return _exit_of(self._status)

    def close(self) -> None:
        """Kills it and lets go of its descriptors; safe to repeat and from any thread."""
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
        """The socket on which the end is told, for those who wait with an event loop."""
        return self._status


class Spawning:
    """A child that was asked for. Either `wait` for it, or call `receive` once `status` can be read."""

    def __init__(self, status: socket.socket, report: dict[str, str], released: Callable[[], None]) -> None:
        self.status = status
        self._report = report
        self._released = released

    def wait(self) -> Child:
        """The child; blocks until it is there.

        Raises:
            ZygoteGone: the zygote died.
            SandboxUnavailable: it cannot fork.
        """
        _receive_timeout(self.status, SPAWN_TIMEOUT_S)
        return self.receive()

    def receive(self) -> Child:
        """The child, when it is there."""
        try:
            return self._received()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Nobody wants the child any more: its channel closes, and it ends."""
        self.status.close()
        self._released()

    def _received(self) -> Child:
        try:
            data, ancillary, _, _ = self.status.recvmsg(_PACKET_BYTES, _RIGHTS_SPACE)
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
    """The id by which this process's namespace knows it.

    Raises:
        OSError: there is no /proc here.
        ValueError: it is gone, or /proc belongs to another namespace.
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
    """The clock of another process's processor time, as the C library's `clock_getcpuclockid` makes it."""
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
    """A deadline for blocking reads, set in the kernel: `settimeout` costs a poll for each read."""
    whole = int(seconds)
    value = struct.pack("@ll", whole, max(int((seconds - whole) * 1_000_000), 1 if not whole else 0))
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
