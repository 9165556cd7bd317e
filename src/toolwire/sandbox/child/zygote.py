"""The fork server. Standard input is a SOCK_SEQPACKET socket to the host; its end is the zygote's end.

At start it sends `{"ready": report}`. Each request is a JSON packet `{"memory": bytes, "cpu": seconds}` with one end
of a socket pair beside it. On that socket the zygote answers with the host's end of a new channel and the child's
pidfd, later with `{"status": wait status, "cpu_s": seconds}`, and closes it. So runs never wait for each other.
"""

import array
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from . import lockdown, program, warmup
from .lockdown import Allowance

CONTROL = 0
PACKET_BYTES = 4096
_PR_GET_NO_NEW_PRIVS = 39
_FD_BYTES = array.array("i").itemsize


def main() -> None:
    """Warms up, says that it is ready, and forks until the host goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=CONTROL)
    missed = warmup.warm_up()
    sys.argv = [""]
    sys.path.clear()
    os.environ.clear()
    zygote = Zygote(control, "complete" if not missed else f"without {', '.join(missed)}")
    control.send(json.dumps({"ready": zygote.probe()}).encode())
    gc.collect()
    gc.freeze()
    zygote.serve()


class Zygote:
    """Single-threaded: a fork copies no lock that another thread holds."""

    def __init__(self, control: socket.socket, warm_up: str) -> None:
        self._control = control
        self._warm_up = warm_up
        self._fork = _make_fork()
        self._stage = program.Stage(partial(os.read, lockdown.CHANNEL), partial(os.write, lockdown.CHANNEL))
        self._stage.take_signals()
        self._lock_down = lockdown.prepare()
        self._id = os.getpid()
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._children: dict[int, tuple[int, socket.socket]] = {}

    def probe(self) -> dict[str, str]:
        """What one child of this zygote found when it was set up and tried: the report every result carries."""
        return {
            "python": sys.version.split()[0],
            "platform": f"{sys.platform} {os.uname().machine}",
            "warm_up": self._warm_up,
            **self._observed(),
            "seccomp": "not in use",
            "landlock": "not in use",
            "namespaces": "not in use",
        }

    def serve(self) -> None:
        """Until the host closes its end. Children die with this process."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != CONTROL:
                    self._reap(descriptor)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        data, ancillary, _, _ = self._control.recvmsg(PACKET_BYTES, socket.CMSG_SPACE(_FD_BYTES))
        if not data:
            return False
        status = socket.socket(fileno=_descriptor(ancillary))
        try:
            self._start(json.loads(data), status)
        except OSError as error:
            _send(status, {"refused": f"{type(error).__name__}: {error}"})
            status.close()
        return True

    def _start(self, request: dict[str, Any], status: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = self._fork()
            if process == 0:
                self._become_child(theirs.fileno(), request)
            pidfd = os.pidfd_open(process)
            self._poll.register(pidfd, select.POLLIN)
            self._children[pidfd] = (process, status)
            rights = array.array("i", [ours.fileno(), pidfd])
            _send(status, {"started": process}, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    def _become_child(self, channel: int, request: dict[str, Any]) -> None:
        try:
            if request.get("bare"):
                return
            allowance = Allowance(memory_bytes=request["memory"], cpu_s=request["cpu"])
            self._lock_down(channel, allowance, self._id)
            self._stage.play()
        finally:
            # No handler, no flush, no destructor: nothing of the zygote's may run twice.
            os._exit(0)

    def _reap(self, pidfd: int) -> None:
        process, status = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, wait_status, usage = os.wait4(process, 0)
        _send(status, {"status": wait_status, "cpu_s": usage.ru_utime + usage.ru_stime})
        status.close()

    def _observed(self) -> dict[str, str]:
        """Forks a child, sets it up, and lets it try what a program may not do."""
        reader, writer = os.pipe()
        process = self._fork()
        if process == 0:
            try:
                self._lock_down(writer, Allowance(memory_bytes=1 << 28, cpu_s=5), self._id)
                os.write(lockdown.CHANNEL, json.dumps(_try_out()).encode())
            finally:
                os._exit(0)
        os.close(writer)
        found: dict[str, str] = json.loads(os.read(reader, PACKET_BYTES))
        os.close(reader)
        os.waitpid(process, 0)
        return found


def _try_out() -> dict[str, str]:
    return {
        "files": _tried(lambda: os.open("/", os.O_RDONLY)),
        "processes": _tried(_fork_once),
        "memory": _tried(lambda: bytearray(1 << 29)),
        "no_new_privs": "set" if ctypes.CDLL(None).prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 else "not set",
    }


def _fork_once() -> None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)


def _tried(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except (OSError, MemoryError):
        return "refused"
    return "not refused"


def _make_fork() -> Callable[[], int]:
    """The C library's fork, called with the interpreter lock held.

    `os.fork` runs at-fork hooks that exist for threads, which a zygote does not have; they touch, and so copy,
    a hundred pages and more, which is a third of the time to the first line of a program.
    """
    libc = ctypes.PyDLL(None, use_errno=True)

    def fork() -> int:
        process: int = libc.fork()
        if process < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return process

    return fork


def _descriptor(ancillary: list[tuple[int, int, bytes]]) -> int:
    received = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(data[:_FD_BYTES])
    return received[0]


def _send(status: socket.socket, message: dict[str, Any], ancillary: Any = ()) -> None:
    try:
        status.sendmsg([json.dumps(message).encode()], ancillary)
    except OSError:
        # The host no longer asks about this run.
        return
