"""The fork server. Standard input is a SOCK_SEQPACKET socket to the host; its end is the zygote's end.

At start it sends `{"process": id}` if it runs in namespaces, then `{"ready": report, "level": level}`. Each request is
a JSON packet `{"memory": bytes, "cpu": seconds}` with one end of a socket pair beside it. On that socket the zygote
answers with the host's end of a new channel and the child's pidfd, later with `{"status": wait status, "cpu_s":
seconds}`, and closes it. So runs never wait for each other.

Children are locked down before anybody knows what they will run, and some are kept ready. Each plays one program.
"""

import array
import gc
import json
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from . import lockdown, namespaces, program, self_test, warmup
from .lockdown import Allowance, Layer
from .namespaces import Entered

CONTROL = 0
PACKET_BYTES = 4096
SPARES = 2
"""Locked children that wait for a program."""
IDLE_MS = 10
"""Milliseconds without a request after which a spare is made: under load it would only stand in a program's way."""
_FD_BYTES = array.array("i").itemsize
_SETUP_FAILED = 1


class Kept(NamedTuple):
    """A locked child and the host's end of its channel."""

    process: int
    channel: socket.socket


def main() -> None:
    """Warms up, locks itself in, says that it is ready, and forks until the host goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=CONTROL)
    missed = warmup.warm_up()
    sys.argv = [""]
    sys.path.clear()
    _empty_environment()
    locks = lockdown.Lockdown()
    # Before the fork into the namespaces too: a collection touches every object, and so copies every page.
    gc.collect()
    gc.freeze()
    entered = namespaces.enter(lambda process: _tell(control, {"process": process}))
    zygote = Zygote(control, locks, entered, "complete" if not missed else f"without {', '.join(missed)}")
    gc.freeze()
    _tell(control, zygote.examine())
    zygote.serve()


class Zygote:
    """Single-threaded: a fork copies no lock that another thread holds."""

    def __init__(self, control: socket.socket, locks: lockdown.Lockdown, entered: Entered, warm_up: str) -> None:
        self._control = control
        self._warm_up = warm_up
        self._locks = locks
        self._entered = entered
        self._layers = locks.present
        self._stage = program.Stage(partial(os.read, lockdown.CHANNEL), partial(os.write, lockdown.CHANNEL))
        self._stage.take_signals()
        self._fork, is_apart = namespaces.make_fork(own_processes=entered.own_processes)
        # Who has a PID namespace of its own cannot see its parent.
        self._id = 0 if is_apart else os.getpid()
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._children: dict[int, tuple[int, socket.socket]] = {}
        self._spares: deque[Kept] = deque()
        self._may_spare = True

    def examine(self) -> dict[str, Any]:
        """What children found that ran into the walls: the level, and the report that every result carries."""
        verdict = self_test.examine(self._try, self._layers, self._locks.landlock_abi, self._entered)
        self._layers = verdict.layers
        system = {
            "python": sys.version.split()[0],
            "platform": f"{sys.platform} {os.uname().machine}",
            "warm_up": self._warm_up,
        }
        return {"ready": system | verdict.report, "level": verdict.level}

    def serve(self) -> None:
        """Until the host closes its end. Children die with this process."""
        while True:
            lacks = self._may_spare and len(self._spares) < SPARES
            events = self._poll.poll(IDLE_MS if lacks else None)
            if not events:
                self._make_spare()
            for descriptor, _ in events:
                if descriptor != CONTROL:
                    self._reap(descriptor)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        data, ancillary, _, _ = self._control.recvmsg(PACKET_BYTES, socket.CMSG_SPACE(_FD_BYTES))
        if not data:
            return False
        status = socket.socket(fileno=_descriptor(ancillary))
        self._may_spare = True
        try:
            self._start(json.loads(data), status)
        except OSError as error:
            _send(status, {"refused": f"{type(error).__name__}: {error}"})
            status.close()
        return True

    def _start(self, request: dict[str, Any], status: socket.socket) -> None:
        if request.get("bare"):
            child = self._make(_end)
        else:
            child = self._spare() if not request.get("fresh") else None
            child = child or self._locked(self._stage.play)
            self._locks.allow(child.process, Allowance(memory_bytes=request["memory"], cpu_s=request["cpu"]))
        with child.channel:
            pidfd = os.pidfd_open(child.process)
            self._poll.register(pidfd, select.POLLIN)
            self._children[pidfd] = (child.process, status)
            rights = array.array("i", [child.channel.fileno(), pidfd])
            _send(status, {"started": child.process}, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    def _make_spare(self) -> None:
        try:
            self._spares.append(self._locked(self._wait_rehearsed))
        except OSError:
            # Too much is running. The next request says so, or finds that it is over.
            self._may_spare = False

    def _wait_rehearsed(self) -> None:
        self._stage.rehearse()
        self._stage.play()

    def _spare(self) -> Kept | None:
        """A spare that still lives; one that the machine ended, for want of memory, is no use to anybody."""
        while self._spares:
            spare = self._spares.popleft()
            if os.waitpid(spare.process, os.WNOHANG)[0] == 0:
                return spare
            spare.channel.close()
        return None

    def _locked(self, play: Callable[[], None], layers: Collection[Layer] | None = None) -> Kept:
        chosen = self._layers if layers is None else layers

        def begin(channel: int) -> None:
            self._locks.apply(channel, self._id, chosen)
            play()

        return self._make(begin)

    def _make(self, begin: Callable[[int], None]) -> Kept:
        """A child that begins so, with its end of the channel, and never comes back from it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._fork()
            if process == 0:
                _become(begin, theirs.fileno())
        return Kept(process, ours)

    def _try(
        self,
        attempts: Callable[[], Mapping[str, str]],
        layers: Collection[Layer],
        last: Callable[[], None],
    ) -> self_test.Tried:
        """A child of the self-test. As a program does, it waits on its channel until its limits are set."""

        def play() -> None:
            os.read(lockdown.CHANNEL, PACKET_BYTES)
            os.write(lockdown.CHANNEL, json.dumps(dict(attempts())).encode())
            last()

        child = self._locked(play, layers)
        with child.channel as channel:
            if "limits" in layers:
                self._locks.allow(child.process, self_test.ALLOWANCE)
            _send(channel, {})
            data = _read_all(channel)
        return self_test.Tried(outcomes=json.loads(data or b"{}"), status=os.waitpid(child.process, 0)[1])

    def _reap(self, pidfd: int) -> None:
        process, status = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, wait_status, usage = os.wait4(process, 0)
        _send(status, {"status": wait_status, "cpu_s": usage.ru_utime + usage.ru_stime})
        status.close()


def _empty_environment() -> None:
    """Only the C library keeps the time zone: without it, formatting a date makes it look for the machine's file."""
    zone = os.environ.get("TZ")
    os.environ.clear()
    if zone:
        os.putenv("TZ", zone)


def _become(begin: Callable[[int], None], channel: int) -> None:
    code = _SETUP_FAILED
    try:
        begin(channel)
        code = 0
    finally:
        # No handler, no flush, no destructor: nothing of the zygote's may run twice.
        os._exit(code)


def _end(_: int) -> None:
    """All that a bare child does."""


def _read_all(channel: socket.socket) -> bytes:
    pieces: list[bytes] = []
    try:
        while piece := channel.recv(PACKET_BYTES):
            pieces.append(piece)
    except ConnectionResetError:
        # It went without reading what it was sent.
        return b""
    return b"".join(pieces)


def _descriptor(ancillary: list[tuple[int, int, bytes]]) -> int:
    received = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(data[:_FD_BYTES])
    return received[0]


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


def _send(status: socket.socket, message: dict[str, Any], ancillary: Any = ()) -> None:
    try:
        status.sendmsg([json.dumps(message).encode()], ancillary)
    except OSError:
        # The host no longer asks about this run.
        return
