"""The fork server. Standard input is a SOCK_SEQPACKET socket to the host; when it closes, the zygote ends.

At start the zygote sends `{"process": id}` if it runs in namespaces, then `{"ready": report, "level": level}`. Each
request is a JSON packet `{"memory": bytes, "cpu": seconds}` with one end of a socket pair beside it. On that socket the
zygote answers with the host's ends of a new channel and the child's pidfd. Later it sends `{"status": wait status,
"cpu_s": seconds}` and closes the socket. So runs never wait for each other.

Children are locked down before their program is known, and some are kept ready. Each runs one program.
"""

import _socket
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from . import stage, warmup
from .kernel import lockdown, namespaces, self_test
from .kernel.lockdown import FROM_HOST, TO_HOST, Allowance, Layer, Step
from .kernel.namespaces import NamespaceState
from .wire import scan

CONTROL = 0
PACKET_BYTES = 4096
SPARES = 2
"""Locked children that wait for a program."""
IDLE_MS = 10
"""Milliseconds without a request after which a spare is made: under load it would only delay programs."""
_ONE_FD = struct.Struct("i")
_THREE_FDS = struct.Struct("iii")
_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
_PACKETS = int(socket.AF_UNIX), int(socket.SOCK_SEQPACKET), 0
_FD_SPACE = socket.CMSG_SPACE(_ONE_FD.size)
_SETUP_FAILED = 1
Socket = _socket.socket
"""The plain C class, without Python's wrapper. Here and below, a request should touch few objects, so that few pages of
the zygote's memory are copied after each fork.
"""


class LockedChild(NamedTuple):
    """A locked child and the host's ends of its channel, two pipes: a third faster for a round trip than a socket."""

    process: int
    reading: int
    writing: int

    def close(self) -> None:
        """Closes the host's ends of the channel."""
        os.close(self.reading)
        os.close(self.writing)


def main() -> None:
    """Warms up, locks itself in, reports that it is ready, and forks until the host goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=CONTROL)
    missed = warmup.warm_up()
    sys.argv = [""]
    sys.path.clear()
    _empty_environment()
    locks = lockdown.Lockdown()
    # Also before the fork into the namespaces: a collection touches every object, and so copies every page.
    gc.collect()
    gc.freeze()
    entered = namespaces.enter(lambda process: _tell(control, {"process": process}))
    server = ForkServer(control, locks, entered, "complete" if not missed else f"without {', '.join(missed)}")
    gc.freeze()
    _tell(control, server.examine())
    warmup.fill_gaps()
    gc.freeze()
    server.serve()
    # To free all objects one by one would only take time.
    os._exit(0)


class ForkServer:
    """The fork server's state. Single-threaded: a fork copies no lock that another thread holds."""

    def __init__(self, control: socket.socket, locks: lockdown.Lockdown, entered: NamespaceState, warm_up: str) -> None:
        self._control = control
        self._warm_up = warm_up
        self._locks = locks
        self._entered = entered
        self._layers = locks.present
        self._stage = stage.Stage(partial(os.read, FROM_HOST), partial(os.write, TO_HOST))
        warmup.usual()()
        self._rehearse = warmup.usual()
        self._stage.take_signals()
        self._fork, self._fork_or_say_why, is_apart = namespaces.make_forks(own_processes=entered.own_processes)
        # A process in its own PID namespace cannot see its parent.
        self._id = 0 if is_apart else os.getpid()
        self._steps = locks.steps(self._id, self._layers)
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._children: dict[int, tuple[int, Socket]] = {}
        self._spares: deque[LockedChild] = deque()
        self._may_spare = True

    def examine(self) -> dict[str, Any]:
        """Runs the self-test; returns the level, and the report that every result carries."""
        verdict = self_test.examine(self._try, self._layers, self._locks.landlock_abi, self._entered)
        self._layers = verdict.layers
        self._steps = self._locks.steps(self._id, verdict.layers)
        system = {
            "python": sys.version.split()[0],
            "platform": f"{sys.platform} {os.uname().machine}",
            "warm_up": self._warm_up,
        }
        return {"ready": system | verdict.report, "level": verdict.level}

    def serve(self) -> None:
        """Serves requests until the host closes its end. Children die with this process."""
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
        data, ancillary, _, _ = self._control.recvmsg(PACKET_BYTES, _FD_SPACE)
        if not data:
            return False
        status = Socket(*_PACKETS, _ONE_FD.unpack_from(ancillary[0][2])[0])
        self._may_spare = True
        try:
            self._start(scan(data.decode(), 0)[0], status)
        except OSError as error:
            _send(status, json.dumps({"refused": f"{type(error).__name__}: {error}"}).encode())
            status.close()
        return True

    def _start(self, request: dict[str, Any], status: Socket) -> None:
        is_bare = "bare" in request
        if is_bare:
            kept = self._make(None, _end)
        else:
            spare = self._spare() if "fresh" not in request else None
            kept = spare or self._make(self._steps, self._stage.play)
        try:
            if not is_bare:
                self._locks.allow(kept.process, Allowance(request["memory"], request["cpu"]))
            pidfd = os.pidfd_open(kept.process)
            self._poll.register(pidfd, select.POLLIN)
            self._children[pidfd] = (kept.process, status)
            rights = _THREE_FDS.pack(kept.reading, kept.writing, pidfd)
            _send(status, b'{"started":%d}' % kept.process, [(*_RIGHTS, rights)])
        finally:
            kept.close()

    def _make_spare(self) -> None:
        try:
            self._spares.append(self._make(self._steps, self._wait_rehearsed))
        except OSError:
            # Too many processes run. The next request reports it, or succeeds again.
            self._may_spare = False

    def _wait_rehearsed(self) -> None:
        self._rehearse()
        self._stage.play()

    def _spare(self) -> LockedChild | None:
        """Returns a spare that still runs; the machine may have ended one for lack of memory."""
        while self._spares:
            spare = self._spares.popleft()
            if os.waitpid(spare.process, os.WNOHANG)[0] == 0:
                return spare
            spare.close()
        return None

    def _make(self, steps: tuple[Step, ...] | None, play: Callable[[], None]) -> LockedChild:
        """Returns a child that takes these steps, or none, and then calls `play`, with our ends of its channel."""
        opened: list[int] = []
        try:
            reading, outgoing = _pipe(opened)
            incoming, writing = _pipe(opened)
            process = self._fork()
            if process < 0:
                process = self._fork_or_say_why()
            if process == 0:
                _become(outgoing, incoming, steps, play)
            opened = [outgoing, incoming]
        finally:
            for descriptor in opened:
                os.close(descriptor)
        return LockedChild(process, reading, writing)

    def _try(
        self,
        attempts: Callable[[], Mapping[str, str]],
        layers: Collection[Layer],
        last: Callable[[], None],
    ) -> self_test.ChildReport:
        """Runs a child of the self-test. Like a program, it waits on its channel until its limits are set."""

        def play() -> None:
            os.read(FROM_HOST, PACKET_BYTES)
            os.write(TO_HOST, json.dumps(dict(attempts())).encode())
            last()

        kept = self._make(self._locks.steps(self._id, layers), play)
        if "limits" in layers:
            self._locks.allow(kept.process, self_test.ALLOWANCE)
        with suppress(BrokenPipeError):
            os.write(kept.writing, b"{}")
        data = _read_all(kept.reading)
        kept.close()
        return self_test.ChildReport(outcomes=json.loads(data or b"{}"), status=os.waitpid(kept.process, 0)[1])

    def _reap(self, pidfd: int) -> None:
        process, status = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, wait_status, usage = os.wait4(process, 0)
        _send(status, b'{"status":%d,"cpu_s":%a}' % (wait_status, usage.ru_utime + usage.ru_stime))
        status.close()


def _empty_environment() -> None:
    """Clears the environment, except that the C library keeps TZ: without it, formatting a date looks for the zone
    file.
    """
    zone = os.environ.get("TZ")
    os.environ.clear()
    if zone:
        os.putenv("TZ", zone)


def _become(outgoing: int, incoming: int, steps: tuple[Step, ...] | None, play: Callable[[], None]) -> None:
    code = _SETUP_FAILED
    try:
        if steps is not None:
            lockdown.apply(outgoing, incoming, steps)
        play()
        code = 0
    finally:
        # No handler, no flush, no destructor: code of the zygote must not run twice.
        os._exit(code)


def _end() -> None:
    """The whole work of a bare child: nothing."""


def _pipe(opened: list[int]) -> tuple[int, int]:
    """Returns a pipe's read and write end, and adds both to `opened`."""
    ends = os.pipe()
    opened += ends
    return ends


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while piece := os.read(descriptor, PACKET_BYTES):
        pieces.append(piece)
    return b"".join(pieces)


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


def _send(status: Socket, message: bytes, ancillary: Any = ()) -> None:
    try:
        status.sendmsg([message], ancillary)
    except OSError:
        # The host no longer asks about this run.
        return
