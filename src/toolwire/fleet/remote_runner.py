"""`RemoteRunner`: programs run on machines that hold no store, no key and no tool. Their calls are answered here.

The sandbox runs as ever: its drive, limits, record and parser trust no byte of a child, and so none of a runner.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal
from weakref import WeakSet

from toolwire.fleet import relay
from toolwire.fleet.relay import MessageStream, RelayLost, one_line
from toolwire.fleet.remote_child import RemoteChild
from toolwire.fleet.runner_addresses import (
    CONNECT_LIMIT_S,
    PemFile,
    RunnerAddress,
    connect,
    runner_address,
    tls_context,
)
from toolwire.sandbox.answers import Answer, Parked, replay_engine
from toolwire.sandbox.forked import SPAWN_TIMEOUT_S
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import LEVELS, Isolation, ProgramResult
from toolwire.sandbox.runner import Flag
from toolwire.vocabulary.errors import ConfigurationError, SandboxUnavailable
from toolwire.vocabulary.machine.system import call_at_fork

Trust = Literal["kernel", "kernel+namespaces"]
TRIES = 3
"""Times that one program is run in all if connections break: more would hide what breaks them."""
IDLE_LIMIT = 16
"""Connections that are kept for later programs: half of those that run at a time."""
AVOID_S = 5.0
"""Seconds for which a runner that was not reached is asked last."""
LOST = "lost"
"""The key in an isolation's report under which stands why the connection of this program broke."""
PLACES_LIMIT = 1_000_000
"""Largest number of places that a runner is believed to have, for the figures of a worker."""
_REPORT_LINES = 32
_SETTLED = ("answered", "failed")
_LOG = logging.getLogger("toolwire.fleet")


class RemoteRunner(Sandbox):
    """Runs programs on runners, for `Session(..., runner=)`, `ToolRegistry(runner=)` and `toolwire worker --runner`.

    A program whose connection breaks runs again, on another runner if there is one: if it has made no call, or if it is
    on record and none of its calls is open. Else it ends as `crashed`. Leaving its `with`, or `close`, ends it.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        cert: PemFile | None = None,
        key: PemFile | None = None,
        ca: PemFile | None = None,
        trust: Trust | None = None,
        insecure: bool = False,
    ) -> None:
        """Names the runners. Nothing is connected before the first program.

        Args:
            addresses: `HOST:PORT` or `unix:PATH` of each runner. Programs take them in turn.
            cert: PEM file of the certificate that the runners ask for.
            key: PEM file of its key, without a password.
            ca: PEM file of the authority that signed the runners' certificates, which must name their hosts.
            trust: The strongest isolation that a runner may claim. None: what it claims above `process` does not count,
                so that only programs with `min_isolation="process"` run.
            insecure: True connects without TLS, to this machine alone. A `unix:` address never has TLS.

        Raises:
            ConfigurationError: An address or file is missing or cannot be used, or plain TCP would leave this machine.
        """
        found = [] if isinstance(addresses, str) else [runner_address(one) for one in addresses]
        if not found:
            raise ConfigurationError(f"RemoteRunner({addresses!r:.80}): give a list of addresses, such as ['r1:8443']")
        if trust not in (None, "kernel", "kernel+namespaces"):
            raise ConfigurationError(f"trust={trust!r:.80}: write 'kernel', 'kernel+namespaces' or None")
        context = tls_context(found, ssl.Purpose.SERVER_AUTH, cert, key, ca, insecure=insecure)
        self._processes = RunnerProcesses(found, context, trust)
        super().__init__(self._processes)
        _RUNNERS.add(self)

    def reach(self) -> tuple[int, dict[str, str]]:
        """Connects to each runner for a moment; a runner that is silent takes 5 seconds.

        Returns:
            How many programs those that answer take at a time in all, and why each of the others cannot be used.
        """
        return self._processes.reach()

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Works as `ProgramRunner.run`.

        Raises:
            Overloaded: too many programs run or wait; nothing was run.
            SandboxUnavailable: no runner gives a process, or its isolation is weaker than `min_isolation`.
        """
        result = super().run(program, call, cancel=cancel)
        for _ in range(TRIES - 1):
            again = program_to_repeat(program, result)
            if again is None:
                break
            program, result = again, super().run(again, call, cancel=cancel)
        return result

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked]) -> ProgramResult:
        """Works as `run`, awaited: the program takes one thread here, and the loop goes on meanwhile."""
        result = await super().run_beside(program, call)
        for _ in range(TRIES - 1):
            again = program_to_repeat(program, result)
            if again is None:
                break
            program, result = again, await super().run_beside(again, call)
        return result


@dataclass(frozen=True, slots=True)
class RunnerConnection:
    """A connection to a runner that has said what it is.

    Attributes:
        isolation: What its word counts for here.
        places: Programs that it takes at a time.
    """

    stream: MessageStream
    address: RunnerAddress
    isolation: Isolation
    places: int


class RunnerProcesses:
    """Gives each program a process on a runner, as `Zygotes` gives one on this machine."""

    def __init__(self, addresses: list[RunnerAddress], context: ssl.SSLContext | None, trust: Trust | None) -> None:
        self._addresses = deque(addresses)
        self._context = context
        self._trust: Trust | None = trust
        self._lock = threading.Lock()
        self._idle: deque[RunnerConnection] = deque()
        self._avoid_until: dict[RunnerAddress, float] = {}
        self._isolation: Isolation | None = None
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """True if a runner was reached before."""
        return self._isolation is not None

    def isolation(self) -> Isolation:
        """Returns the isolation of the runner that was reached first. Raises as `spawn`."""
        if self._isolation is None:
            reasons: dict[str, str] = {}
            for connection in self._new_connections(reasons):
                self._isolation = connection.isolation
                self._release(connection, True)
                return self._isolation
            raise unavailable(reasons)
        return self._isolation

    def reach(self) -> tuple[int, dict[str, str]]:
        """Works as `RemoteRunner.reach`."""
        reasons: dict[str, str] = {}
        places = 0
        for connection in self._new_connections(reasons):
            places += connection.places
            connection.stream.close()
        return places, reasons

    def spawn(self, limits: Limits) -> tuple[RemoteChild, Isolation]:
        """Returns a process and its isolation; blocks until it is there.

        Raises:
            SandboxUnavailable: No runner can be reached, or each of them refuses. The message has each reason.
        """
        request = json.dumps({"memory_mb": limits.memory_mb, "cpu_s": limits.cpu_s}).encode()
        reasons: dict[str, str] = {}
        refused: list[RunnerConnection] = []
        try:
            for connection in self._connections(reasons):
                try:
                    reason = _ask(connection.stream, request)
                except RelayLost as lost:
                    reasons[connection.address.text] = str(lost)
                    connection.stream.close()
                    continue
                if reason is None:
                    isolation = replace(connection.isolation, report=dict(connection.isolation.report))
                    lost = partial(_note_loss, isolation, connection.address)
                    return RemoteChild(connection.stream, lost, partial(self._release, connection)), isolation
                reasons[connection.address.text] = reason
                refused.append(connection)
        finally:
            for connection in refused:
                self._release(connection, True)
        raise unavailable(reasons)

    def close(self) -> None:
        """Closes the connections that no program uses; the others are closed when their program is over."""
        self._is_closed = True
        self.forget()

    def forget(self) -> None:
        """Closes this process's ends of the connections that no program uses; those of its parent stay."""
        self._lock = threading.Lock()
        idle, self._idle = self._idle, deque[RunnerConnection]()
        for connection in idle:
            connection.stream.close()

    def _connections(self, reasons: dict[str, str]) -> Iterator[RunnerConnection]:
        """Yields connections to try: those that are idle, then a new one to each runner."""
        if self._is_closed:
            raise SandboxUnavailable("the runner is closed", report={}, how_to_fix="Make a new RemoteRunner.")
        while True:
            with self._lock:
                connection = self._idle.popleft() if self._idle else None
            if connection is None:
                break
            yield connection
        yield from self._new_connections(reasons)

    def _new_connections(self, reasons: dict[str, str]) -> Iterator[RunnerConnection]:
        with self._lock:
            self._addresses.rotate(-1)
            addresses, now = list(self._addresses), time.monotonic()
        for address in sorted(addresses, key=lambda one: self._avoid_until.get(one, now) > now):
            try:
                connection = self._connect(address)
            except RelayLost as lost:
                reasons[address.text] = str(lost)
                self._avoid_until[address] = time.monotonic() + AVOID_S
            else:
                yield connection

    def _connect(self, address: RunnerAddress) -> RunnerConnection:
        stream = MessageStream(connect(address, self._context))
        try:
            kind, data = stream.wait(CONNECT_LIMIT_S)
            if kind != relay.ISOLATION:
                raise RelayLost(f"an unexpected message came: {kind!r}")
            return RunnerConnection(stream, address, *said_by(data, address.text, self._trust))
        except RelayLost:
            stream.close()
            raise

    def _release(self, connection: RunnerConnection, is_usable: bool) -> None:
        """Keeps a connection for later programs, or closes it."""
        with self._lock:
            is_kept = is_usable and not self._is_closed and len(self._idle) < IDLE_LIMIT
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.stream.close()


def said_by(data: bytes, runner: str, trust: Trust | None) -> tuple[Isolation, int]:
    """Returns what a runner's word about its isolation counts for, and the number of its places.

    `report["claimed"]` names the runner.

    Raises:
        RelayLost: It is no such word, or programs behave otherwise there, so that no record would fit.
    """
    try:
        told: Any = json.loads(data[: relay.READ_BYTES])
        engine, level, observed = told["engine"], told["level"], dict(told["report"])
        rank, places = LEVELS.index(level), min(int(told["places"]), PLACES_LIMIT)
    except (OverflowError, ValueError, TypeError, KeyError, RecursionError):
        raise RelayLost("it does not say what it is, so it is no runner of this version") from None
    if engine != replay_engine:
        raise RelayLost(
            f"it has {one_line(engine)}, and this process {replay_engine}: use one Python, toolwire and time zone"
        )
    report = {one_line(name): one_line(text) for name, text in list(observed.items())[:_REPORT_LINES]}
    report.pop(LOST, None)
    believed = LEVELS[min(rank, LEVELS.index(trust or "process"))]
    trusted = "" if believed == level else f"not trusted above {believed!r}: "
    report["claimed"] = f"{trusted}{level!r} by the runner {runner}"
    return Isolation(level=believed, report=report), places


def program_to_repeat(program: Program, result: ProgramResult) -> Program | None:
    """Returns the program to run again after its connection broke; None if it must not run again.

    A call that is open may still run, and its answer would reach nobody. So a program with one is not run again.
    """
    left_s = program.limits.deadline_s - result.duration_s
    if result.status != "crashed" or LOST not in result.isolation.report or left_s <= 0:
        return None
    if result.calls and (program.replay is None or any(one.status not in _SETTLED for one in result.calls)):
        return None
    replay = None if program.replay is None else replace(program.replay, recorded=result.recorded)
    return replace(program, replay=replay, limits=replace(program.limits, deadline_s=left_s))


def unavailable(reasons: dict[str, str]) -> SandboxUnavailable:
    """Returns the error when no runner gives a process, with the reason of each."""
    told = "; ".join(f"{runner}: {reason}" for runner, reason in reasons.items())
    how_to_fix = "Start `toolwire runner` there, or mend its address, the certificates, or the network between."
    return SandboxUnavailable(f"no runner takes this program ({told})", report=reasons, how_to_fix=how_to_fix)


def _note_loss(isolation: Isolation, address: RunnerAddress, reason: str) -> None:
    isolation.report[LOST] = f"the connection to the runner {address.text} broke: {reason}"
    _LOG.warning("%s", isolation.report[LOST])


def _ask(stream: MessageStream, request: bytes) -> str | None:
    """Asks for a process. Returns None when it is there, else the reason. Raises RelayLost."""
    stream.send(relay.START, request)
    kind, data = stream.wait(SPAWN_TIMEOUT_S)
    if kind not in (relay.THERE, relay.REFUSED):
        raise RelayLost(f"an unexpected message came: {kind!r}")
    return None if kind == relay.THERE else one_line(data.decode("utf-8", "replace"))


def _after_fork_in_child() -> None:
    for runner in list(_RUNNERS):
        runner.after_fork()


_RUNNERS: WeakSet[RemoteRunner] = WeakSet()
call_at_fork(after_in_child=_after_fork_in_child)
