"""The host's side of the fork server: starts it, asks it for children, and starts another when it is gone.

The host itself never forks. Each child comes with its channel, a pidfd to end it by, and a socket on which the zygote
sends its exit status. Runs share nothing on the host's side.
"""

from __future__ import annotations

import array
import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
import threading
import zoneinfo
from pathlib import Path
from typing import Literal

from toolwire.sandbox.forked import Child, Spawning, ZygoteGone
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import WASM_INSTEAD, Isolation
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine import system

HASH_SEED = "0"
"""One constant for all zygotes: the order of sets of text is the same in every run, on every host."""
RUNS_PER_ZYGOTE = 10_000
START_TIMEOUT_S = 20.0
ChildKind = Literal["any", "fresh", "bare"]
SCRIPT = Path(__file__).parent / "child" / "start.py"
_PACKET_BYTES = 65_536
_HOW_TO_FIX = "Programs run on Linux with CPython 3.11 or newer; `toolwire doctor` says what this machine lacks."


class Zygote:
    """One running fork server."""

    def __init__(self, script: Path = SCRIPT) -> None:
        if not system.IS_LINUX or not sys.executable:
            raise SandboxUnavailable(
                f"the runner 'kernel' needs Linux, and this is {system.PLATFORM}",
                report={"platform": system.PLATFORM},
                how_to_fix=WASM_INSTEAD,
            )
        self.spawned = 0
        self._lock = threading.Lock()
        self._live = 0
        self._retired = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _start_process(theirs, script)
        self._process_id = self._process.pid
        self.isolation = self._wait_ready()
        """The level and report that its self-test observed."""

    @property
    def is_alive(self) -> bool:
        """True if its process runs, as far as this can be known without asking it."""
        return self._process.poll() is None

    @property
    def process_id(self) -> int:
        """The id of the process that forks, for tests and benchmarks."""
        return self._process_id

    def ask(self, limits: Limits, *, kind: ChildKind = "any") -> Spawning:
        """Asks for a child. The kinds `fresh` and `bare` are for measuring: a child that was not a spare, or one that
        ends at once.

        Raises:
            ZygoteGone: it died.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"memory": int(limits.memory_mb * 1_048_576), "cpu": math.ceil(limits.cpu_s)}
        if kind != "any":
            request[kind] = True
        with theirs:
            rights = array.array("i", [theirs.fileno()])
            try:
                with self._lock:
                    self._live += 1
                self._control.sendmsg([json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            except OSError as error:
                ours.close()
                self.release()
                raise ZygoteGone(str(error)) from None
        self.spawned += 1
        return Spawning(ours, self.isolation.report, self.release)

    def release(self) -> None:
        """Notes that one of its children is over."""
        with self._lock:
            self._live -= 1
            over = self._retired and self._live <= 0
        if over:
            self.close()

    def retire(self) -> None:
        """Closes it as soon as its last child is over."""
        with self._lock:
            self._retired = True
            over = self._live <= 0
        if over:
            self.close()

    def close(self) -> None:
        """Ends it and all its children."""
        self._control.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Resets it in a forked child of the host: closes the socket of the parent and leaves the parent's zygote
        alone.
        """
        self._control.close()
        # At its end Popen would warn about a process that still runs; that process belongs to the parent.
        self._process.returncode = 0

    def _wait_ready(self) -> Isolation:
        self._control.settimeout(START_TIMEOUT_S)
        reason = "it ended before it was ready"
        try:
            while data := self._control.recv(_PACKET_BYTES):
                message = json.loads(data)
                if "ready" in message:
                    self._control.settimeout(None)
                    return Isolation(level=message["level"], report=message["ready"])
                self._process_id = message["process"]
        except OSError as error:
            reason = str(error)
        self.close()
        raise SandboxUnavailable(
            f"the sandbox's process {sys.executable!r} does not start: {reason}",
            report={"python": sys.executable, "exit": str(self._process.returncode)},
            how_to_fix=f"{_HOW_TO_FIX} {WASM_INSTEAD}",
        )


class Zygotes:
    """Keeps one zygote ready. Starts it when first needed, after it died, and after `RUNS_PER_ZYGOTE` runs."""

    def __init__(self, script: Path = SCRIPT) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._current: Zygote | None = None
        self._closed = False

    @property
    def is_ready(self) -> bool:
        """True if a child can be had without starting a zygote first, which takes a tenth of a second."""
        current = self._current
        return current is not None and current.is_alive and current.spawned < RUNS_PER_ZYGOTE

    def current(self) -> Zygote:
        """Returns a live zygote.

        Raises:
            SandboxUnavailable: a zygote cannot be started here.
        """
        if self.is_ready and self._current is not None:
            return self._current
        with self._lock:
            if self._closed:
                raise SandboxUnavailable(
                    "the sandbox is closed", report={}, how_to_fix="Make a new one, or close it later."
                )
            if not self.is_ready or self._current is None:
                before, self._current = self._current, None
                if before is not None:
                    before.retire()
                self._current = Zygote(self._script)
            return self._current

    def isolation(self) -> Isolation:
        """Returns the isolation that a live zygote observed. Raises as `current`."""
        return self.current().isolation

    def spawn(self, limits: Limits, *, kind: ChildKind = "any") -> tuple[Child, Isolation]:
        """Returns a child and its zygote's isolation; blocks until the child is there.

        Raises:
            SandboxUnavailable: a zygote cannot be started here, or it cannot fork.
        """
        try:
            return self._spawn(limits, kind)
        except ZygoteGone:
            self.discard()
        try:
            return self._spawn(limits, kind)
        except ZygoteGone as gone:
            raise dead_zygote_error(gone) from None

    def discard(self) -> None:
        """Lets go of the present zygote; the next run starts another."""
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            current.retire()

    def close(self) -> None:
        """Ends the zygote and all its children."""
        with self._lock:
            self._closed = True
            current, self._current = self._current, None
        if current is not None:
            current.close()

    def forget(self) -> None:
        """Lets go of the parent's zygote, in a forked child of the host."""
        self._lock = threading.Lock()
        current, self._current = self._current, None
        if current is not None:
            current.forget()

    def _spawn(self, limits: Limits, kind: ChildKind) -> tuple[Child, Isolation]:
        zygote = self.current()
        return zygote.ask(limits, kind=kind).wait(), zygote.isolation


def dead_zygote_error(gone: ZygoteGone) -> SandboxUnavailable:
    """Returns the error for a new zygote that dies as well."""
    return SandboxUnavailable(
        f"the sandbox's process dies before it gives a child: {gone}",
        report={"python": sys.executable},
        how_to_fix="Find the cause here: the memory limit of a container, or an operator.",
    )


def _start_process(control: socket.socket, script: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-s", "-S", "-P", "-X", "utf8", str(script)]
    environment = {"PYTHONHASHSEED": HASH_SEED, "LD_BIND_NOW": "1"}
    environment["PYTHONTZPATH"] = os.pathsep.join(_zone_folders())
    if zone := os.environ.get("TZ"):
        environment["TZ"] = zone
    return subprocess.Popen(  # noqa: S603 - our own script by our own interpreter
        command,
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        # Out of reach of the terminal's signals. Not a new session: the scheduler shares time between sessions first,
        # and a
        # round trip between two of them takes up to a third longer.
        process_group=0,
    )


def _zone_folders() -> list[str]:
    """Returns the folders in which `zoneinfo` looks for time zones: its search path, then the tzdata package."""
    package = importlib.util.find_spec("tzdata")
    places = package.submodule_search_locations if package is not None else None
    return [*zoneinfo.TZPATH, *(str(Path(place) / "zoneinfo") for place in places or ())]
