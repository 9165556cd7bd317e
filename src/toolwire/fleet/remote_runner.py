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
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Literal, cast
from weakref import WeakSet

from toolwire.fleet import relay
from toolwire.fleet.relay import MessageStream, RelayLost, one_line
from toolwire.fleet.remote_child import RemoteChild
from toolwire.fleet.runner_addresses import (
    CONNECT_LIMIT_S,
    CertificateFile,
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
"""Times that one program is run in all when connections break: more would hide what breaks them."""
IDLE_LIMIT = 16
"""Connections that are kept for later programs: half of the programs that run at a time."""
AVOID_S = 5.0
"""Seconds for which a runner that could not be reached is asked last."""
LOST = "lost"
"""The key in an isolation's report that says why the connection of this program broke."""
_REPORT_LINES = 32
_HOW_TO_FIX = "Start `toolwire runner` there, or mend its address, the certificates, or the network between."
_LOG = logging.getLogger("toolwire.fleet")


class RemoteRunner:
    """Runs programs on runners, for `Session(..., runner=)`, `ToolRegistry(runner=)` and `toolwire worker --runner`.

    A program whose connection breaks runs again on another runner, if it has made no call, or if it is on record and
    none of its calls is open. Else it ends as `crashed`. `close` it, or use it in a `with`.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        cert: CertificateFile | None = None,
        key: CertificateFile | None = None,
        ca: CertificateFile | None = None,
        trust: Trust | None = None,
        insecure: bool = False,
    ) -> None:
        """Names the runners. Nothing is connected before the first program.

        Args:
            addresses: `HOST:PORT` or `unix:PATH` of each runner. Programs take them in turn.
            cert: PEM file of the certificate that the runners ask for.
            key: PEM file of its key, without a password.
            ca: PEM file of the authority that signed the runners' certificates, which must name their hosts.
            trust: The highest isolation that a runner's word counts for. None: what it says of itself counts as
                `process`, so that programs need `min_isolation="process"`.
            insecure: True connects without TLS, to this machine alone. A `unix:` address never has TLS.

        Raises:
            ConfigurationError: An address or file cannot be used, a file is missing, or plain TCP would leave this
                machine.
        """
        if isinstance(addresses, str):
            raise ConfigurationError(f"RemoteRunner({addresses!r:.80}): give a list, such as [{addresses!r:.80}]")
        found = [runner_address(one) for one in addresses]
        if not found:
            raise ConfigurationError("RemoteRunner([]): give the address of a runner, such as 'r1:8443'")
        if trust not in (None, "kernel", "kernel+namespaces"):
            raise ConfigurationError(f"trust={trust!r:.80}: write 'kernel', 'kernel+namespaces' or None")
        context = host_context(found, cert, key, ca, insecure=insecure)
        self._sandbox = Sandbox(RunnerProcesses(found, context, trust))
        _RUNNERS.add(self)

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /, *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Works as `run` of the sandbox.

        Raises:
            Overloaded: too many programs run or wait; nothing was run.
            SandboxUnavailable: no runner gives a process, or its isolation is weaker than `min_isolation`.
        """
        for is_last in _tries():
            result = self._sandbox.run(program, call, cancel=cancel)
            again = None if is_last else program_to_repeat(program, result)
            if again is None:
                return result
            program = again
        raise AssertionError("unreachable")

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /) -> ProgramResult:
        """Works as `run`, awaited: the program takes one thread here, and the loop goes on meanwhile."""
        for is_last in _tries():
            result = await self._sandbox.run_beside(program, call)
            again = None if is_last else program_to_repeat(program, result)
            if again is None:
                return result
            program = again
        raise AssertionError("unreachable")

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        """Works as `run_beside`, for calls that are awaited on the running loop."""
        for is_last in _tries():
            result = await self._sandbox.run_async(program, call)
            again = None if is_last else program_to_repeat(program, result)
            if again is None:
                return result
            program = again
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Closes all connections; programs that still run end."""
        self._sandbox.close()

    def after_fork(self) -> None:
        """Leaves the connections to the parent, in a forked child of this process."""
        self._sandbox.after_fork()

    def __enter__(self) -> RemoteRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerConnection:
    """A connection to a runner that has said what it is."""

    stream: MessageStream
    runner: str
    """The address."""
    isolation: Isolation
    """What its word counts for here."""


class RunnerProcesses:
    """Gives each program a process on a runner. Stands where `Zygotes` stands for programs of this machine."""

    def __init__(self, addresses: list[RunnerAddress], context: ssl.SSLContext | None, trust: Trust | None) -> None:
        self._addresses = addresses
        self._context = context
        self._trust: Trust | None = trust
        self._lock = threading.Lock()
        self._idle: deque[RunnerConnection] = deque()
        self._avoid_until = dict[str, float]()
        self._turn = 0
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
            connection = next(self._new_connections(reasons), None)
            if connection is None:
                raise unavailable(reasons)
            self._keep(connection)
        return cast("Isolation", self._isolation)

    def spawn(self, limits: Limits) -> tuple[RemoteChild, Isolation]:
        """Returns a process and its isolation; blocks until it is there.

        Raises:
            SandboxUnavailable: no runner can be reached, or each of them refuses; the message has each reason.
        """
        request = json.dumps({"memory_mb": limits.memory_mb, "cpu_s": limits.cpu_s}).encode()
        reasons: dict[str, str] = {}
        refused: list[RunnerConnection] = []
        try:
            for connection in self._connections(reasons):
                reason = _ask(connection.stream, request)
                if reason is None:
                    isolation = replace(connection.isolation, report=dict(connection.isolation.report))
                    over = partial(self._give_back, connection, isolation)
                    return RemoteChild(connection.stream, over), isolation
                reasons[connection.runner], is_usable = reason
                if is_usable:
                    refused.append(connection)
                else:
                    connection.stream.close(at_once=True)
        finally:
            for connection in refused:
                self._keep(connection)
        raise unavailable(reasons)

    def close(self) -> None:
        """Closes the connections that no program uses; the others are closed when their program is over."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, deque[RunnerConnection]()
        for connection in idle:
            connection.stream.close()

    def forget(self) -> None:
        """Leaves the connections to the parent, in a forked child of this process."""
        self._lock = threading.Lock()
        idle, self._idle = self._idle, deque[RunnerConnection]()
        for connection in idle:
            # Closes the child's descriptor only: the parent's connection goes on.
            connection.stream.close()

    def _connections(self, reasons: dict[str, str]) -> Iterator[RunnerConnection]:
        """Yields connections to try: those that are idle, then a new one to each runner."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise SandboxUnavailable("the runner is closed", report={}, how_to_fix="Make a new RemoteRunner.")
                idle = self._idle.popleft() if self._idle else None
            if idle is None:
                break
            yield idle
        yield from self._new_connections(reasons)

    def _new_connections(self, reasons: dict[str, str]) -> Iterator[RunnerConnection]:
        with self._lock:
            self._turn += 1
            addresses = [*self._addresses[self._turn % len(self._addresses) :], *self._addresses]
        now = time.monotonic()
        in_turn = list(dict.fromkeys(address.text for address in addresses))
        for text in sorted(in_turn, key=lambda text: self._avoid_until.get(text, 0.0) > now):
            try:
                connection = self._connect(next(one for one in addresses if one.text == text))
            except RelayLost as lost:
                reasons[text] = str(lost)
                self._avoid_until[text] = time.monotonic() + AVOID_S
                continue
            self._avoid_until.pop(text, None)
            self._isolation = self._isolation or connection.isolation
            yield connection

    def _connect(self, address: RunnerAddress) -> RunnerConnection:
        stream = MessageStream(connect(address, self._context))
        try:
            kind, data = stream.wait(CONNECT_LIMIT_S)
            if kind != relay.ISOLATION:
                raise RelayLost(f"it is no runner: its first message is {kind!r}")
            isolation = believed_isolation(data, address.text, self._trust)
        except RelayLost:
            stream.close(at_once=True)
            raise
        return RunnerConnection(stream=stream, runner=address.text, isolation=isolation)

    def _give_back(self, connection: RunnerConnection, isolation: Isolation, reason: str) -> None:
        """Keeps the connection of a program that is over, or notes why it was lost."""
        if reason:
            isolation.report[LOST] = f"the connection to the runner {connection.runner} broke: {reason}"
            _LOG.warning("%s", isolation.report[LOST])
            connection.stream.close(at_once=True)
        else:
            self._keep(connection)

    def _keep(self, connection: RunnerConnection) -> None:
        with self._lock:
            is_kept = not self._is_closed and len(self._idle) < IDLE_LIMIT
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.stream.close()


def host_context(
    addresses: Iterable[RunnerAddress],
    cert: CertificateFile | None,
    key: CertificateFile | None,
    ca: CertificateFile | None,
    *,
    insecure: bool,
) -> ssl.SSLContext | None:
    """Returns the TLS of a host; None if no address needs it.

    Raises:
        ConfigurationError: As `RemoteRunner`.
    """
    by_network = [one for one in addresses if not one.path]
    if insecure:
        if (cert, key, ca) != (None, None, None):
            raise ConfigurationError("insecure=True: leave cert, key and ca out, or leave insecure out")
        if far := [one.text for one in by_network if not one.is_loopback]:
            raise ConfigurationError(f"insecure=True: {far[0]} is not on this machine: give cert, key and ca")
        return None
    if not by_network and (cert, key, ca) == (None, None, None):
        return None
    if cert is None or key is None or ca is None:
        raise ConfigurationError(f"RemoteRunner: give cert, key and ca, the files of mutual TLS{_for(by_network)}")
    return tls_context(ssl.Purpose.SERVER_AUTH, cert=cert, key=key, ca=ca)


def believed_isolation(data: bytes, runner: str, trust: Trust | None) -> Isolation:
    """Returns what a runner's word about itself counts for. `report["claimed"]` names the runner.

    Raises:
        RelayLost: It is no such word, or programs behave otherwise there, so that no record would fit.
    """
    try:
        told: Any = json.loads(data[: relay.READ_BYTES])
        engine, level, observed = str(told["engine"]), told["level"], dict(told["report"])
        rank = LEVELS.index(level)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RelayLost("it does not say what it is, so it is no runner of this version") from None
    if engine != replay_engine:
        there = one_line(engine.encode("utf-8", "replace"))
        raise RelayLost(f"it has {there}, and this process {replay_engine}: use one Python, toolwire and time zone")
    report = {_text(name): _text(text) for name, text in list(observed.items())[:_REPORT_LINES]}
    report.pop(LOST, None)
    believed = LEVELS[min(rank, LEVELS.index(trust or "process"))]
    trusted = "" if believed == level else f"not trusted above {believed!r}: "
    report["claimed"] = f"{trusted}{level!r} by the runner {runner}"
    return Isolation(level=believed, report=report)


def program_to_repeat(program: Program, result: ProgramResult) -> Program | None:
    """Returns the program to run again after its connection broke; None if it must not run again.

    A call that is open may still run, and its answer would come to nobody. So a program with one is not run again.
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
    return SandboxUnavailable(f"no runner takes this program ({told})", report=reasons, how_to_fix=_HOW_TO_FIX)


def _ask(stream: MessageStream, request: bytes) -> tuple[str, bool] | None:
    """Asks for a process. Returns None when it is there, else the reason, and True if the connection is still good."""
    try:
        stream.send(relay.START, request)
        kind, data = stream.wait(SPAWN_TIMEOUT_S)
    except RelayLost as lost:
        return str(lost), False
    if kind == relay.THERE:
        return None
    if kind == relay.REFUSED:
        return one_line(data), True
    return f"an unexpected message came: {kind!r}", False


def _tries() -> Iterator[bool]:
    """Yields once for each try; True for the last."""
    return (number == TRIES for number in range(1, TRIES + 1))


def _for(addresses: list[RunnerAddress]) -> str:
    return f" to {addresses[0].text}" if addresses else ""


def _text(told: object) -> str:
    return one_line(str(told).encode("utf-8", "replace"))


def _after_fork_in_child() -> None:
    for runner in list(_RUNNERS):
        runner.after_fork()


_SETTLED = ("answered", "failed")
_RUNNERS: WeakSet[RemoteRunner] = WeakSet()
call_at_fork(after_in_child=_after_fork_in_child)
