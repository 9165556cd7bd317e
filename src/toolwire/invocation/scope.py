"""What surrounds a call: who may be called, who judges, who listens, for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry, Middleware, is_colourless
from toolwire.catalogue.selection import Selection
from toolwire.definition.binding import States
from toolwire.definition.canonical import PROCESS_KEY
from toolwire.definition.tool import Tool, Validated, canonical
from toolwire.invocation.ports import Ledger, Ports, Tracer
from toolwire.invocation.sink import Sink
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import CODE_EXECUTION, NOBODY, Caller, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.pending import Outcome
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.steps import Step
from toolwire.vocabulary.values import digest

RESULT_LIMIT_BYTES = 32_768
"""Bytes of one result's text that a model is shown: about 8,000 tokens, a page it can still read."""


class CallRecord:
    """One call from start to end, as observers are told of it."""

    __slots__ = ("call", "duration_s", "entry", "result", "run_id", "started_at")

    def __init__(
        self, call: ToolCall, entry: Entry | None, result: ToolResult, run_id: str, started_at: float, duration_s: float
    ) -> None:
        self.call = call
        self.entry = entry
        self.result = result
        self.run_id = run_id
        self.started_at = started_at
        self.duration_s = duration_s


class Run:
    """What all calls of one run share and change, from any thread."""

    __slots__ = ("asked", "stopped", "taints")

    def __init__(self, taints: Iterable[Label] = ()) -> None:
        self.taints = frozenset(taints)
        """What the run has read so far."""
        self.asked: frozenset[str] = frozenset()
        """Ids of the calls that a person was asked about when the run was gone through before."""
        self.stopped: str | None = None
        """Why nothing more of it may start; None while it goes on."""

    def read(self, labels: frozenset[Label]) -> None:
        """Remembers what a result that came back is. Nothing is ever forgotten."""
        if not labels <= self.taints:
            self.taints |= labels


class Observer(Protocol):
    """Listens and cannot answer. Its failures are logged and swallowed.

    One that has a method `asked(request)` is also told when a person is about to be asked (`PERMISSION_REQUEST`).
    """

    def ended(self, record: CallRecord, /) -> None:
        """A call ended (`TOOL_COMPLETE`): called once for each, after everything else."""
        ...


@dataclass(slots=True, kw_only=True)
class Scope:
    """Shared by all calls of a run; a child call of a program gets a copy of its own."""

    catalogue: Catalogue | Selection
    """What may be called."""
    policy: Policy
    """What may run, unasked or asked."""
    ports: Ports
    """The driver's."""
    approver: Approver | None = None
    """Who is asked; None: nobody, and what needs asking does not run."""
    middleware: tuple[Middleware, ...] = ()
    """What stands around the execution of every call, the first outermost."""
    observers: tuple[Observer, ...] = ()
    """Who is told of each call's end."""
    tracer: Tracer | None = None
    """Who follows calls while they run; None: nobody."""
    caller: Caller = NOBODY
    """On whose behalf."""
    states: States = field(default=(), repr=False)
    """Where bound parameters are looked up before the tool's own state. They hold secrets: no text shows them."""
    run_id: str = ""
    """The run that the call belongs to."""
    run: Run | None = None
    """What the calls of this run share; None where each call is a run of its own."""
    ledger: Ledger | None = None
    """The run's write-ahead record; None: nothing outlives this process."""
    secret_key: bytes = PROCESS_KEY
    """Hashes the secrets among arguments; with a store its key, so that a hash is the same in every process."""
    can_suspend: bool = False
    """Whether a call that waits for a person may end this pass over the run as `Pending`."""
    deadline: float | None = None
    """`time.monotonic()` seconds after which nothing more is started."""
    result_limit_bytes: int | None = RESULT_LIMIT_BYTES
    """Bytes of text that go back to a model; None inside programs, which receive the data whole."""
    clock: Callable[[], float] = lambda: time.time()
    """Seconds since the epoch, by which requests expire."""
    sink: Sink | None = None
    """Who reads the call's output while it runs; None: nobody. Inner calls have none: who makes them gets the whole."""


class Prepared:
    """A call after validation: exactly what will run."""

    __slots__ = (
        *("_canonical", "_digest", "approval", "asked", "attempt", "call", "entry"),
        *("idempotency_key", "request_id", "validated"),
    )

    def __init__(self, call: ToolCall, entry: Entry, validated: Validated) -> None:
        self.call = call
        self.entry = entry
        self.validated = validated
        self.request_id = ""
        """The approved request that allows it; empty when nobody had to be asked."""
        self.asked = call
        """The call as the model made it: another one when a person has edited the arguments."""
        self.approval: Mapping[str, Any] | None = None
        """What observers are told of the decision; None when nobody had to be asked."""
        self.attempt = 1
        """Above 1: an earlier attempt was begun, and how it ended is not known."""
        self.idempotency_key = ""
        """The key on record, of the arguments before any middleware rewrote them; empty where nothing is on record."""
        self._canonical: Mapping[str, Any] | None = None
        self._digest = ""

    def canonical(self, scope: Scope) -> Mapping[str, Any]:
        """The arguments that rules, people, memory and the cache go by. Made once: code of the host gets a copy.

        Raises:
            Unrepresentable: a value that JSON cannot hold, or that JSON would make another one of.
        """
        if self._canonical is None:
            self._canonical = canonical(self.validated, scope.secret_key)
        return self._canonical

    def canonical_digest(self, scope: Scope) -> str:
        """The digest of the canonical form.

        Raises:
            Unrepresentable: as `canonical`.
        """
        if not self._digest:
            self._digest = digest(self.canonical(scope))
        return self._digest

    def look_again(self) -> None:
        """Forgets the canonical form: the values may have been changed since it was made."""
        self._canonical, self._digest = None, ""


Path = Callable[[ToolCall, Scope], Coroutine[Any, Any, Outcome]]
"""`invoker.invoke`, handed down to what makes calls of its own."""


class Inside:
    """What a composite tool is lent: its own call, what it may call, and the way back into the path."""

    __slots__ = ("_invoke", "_scope", "call", "started_at")

    def __init__(self, call: ToolCall, scope: Scope, invoke: Path, *, started_at: float = 0.0) -> None:
        self.call = call
        self.started_at = started_at
        """Seconds since the epoch when a call of a recorded run was first entered; 0.0 for any other."""
        self._scope = scope
        self._invoke = invoke

    @property
    def ledger_id(self) -> str:
        """The recorded run that it belongs to; empty when nothing outlives this process."""
        return "" if self._scope.ledger is None else self._scope.ledger.run_id

    @property
    def can_suspend(self) -> bool:
        """Whether its calls may wait for a person beyond this process: then they come back as `Pending`."""
        return self._scope.can_suspend

    @property
    def recorded(self) -> Sequence[tuple[Step, ToolResult]]:
        """Its calls that ended when it was entered before, in the order in which they did.

        It is given their results again: its run has read them.
        """
        found = () if self._scope.ledger is None else self._scope.ledger.recorded(self.call.id)
        for one, result in found:
            read_again(one.tool, result, self._scope)
        return found

    @property
    def notes(self) -> Sequence[Mapping[str, Any]]:
        """What it noted of them (`note`)."""
        return () if self._scope.ledger is None else self._scope.ledger.notes(self.call.id)

    def note(self, entry: Mapping[str, Any]) -> None:
        """Takes something down for the next time it is entered; forgotten where nothing outlives this process."""
        if self._scope.ledger is not None:
            self._scope.ledger.note(self.call.id, entry)

    @property
    def tools(self) -> list[tuple[str, Tool]]:
        """The tools it may call, by name. Not itself nor others like it: a program runs no program."""
        return [(entry.name, entry.tool) for entry in self._scope.catalogue if entry.composite is None]

    @property
    def is_blocking(self) -> bool:
        """Whether the path runs without an event loop: then it must not wait for one."""
        return self._scope.ports.is_blocking

    @property
    def has_async_tools(self) -> bool:
        """Whether calls of some of these tools need an event loop."""
        return self._scope.catalogue.is_async or not all(map(is_colourless, self._scope.middleware))

    @property
    def deadline(self) -> float | None:
        """`time.monotonic()` seconds after which nothing more is started."""
        return self._scope.deadline

    @property
    def result_limit_bytes(self) -> int | None:
        """Bytes of text that go back to a model; None: all of it."""
        return self._scope.result_limit_bytes

    def awaited_calls(self, run_id: str) -> Callable[[ToolCall], Coroutine[Any, Any, Outcome]]:
        """What makes calls of one run, each down the whole path."""
        invoke, scope = self._invoke, self._child_scope(run_id, self._scope.ports)
        return lambda call: invoke(call, scope)

    def blocking_calls(self, run_id: str) -> Callable[[ToolCall], Outcome]:
        """The same for a thread of its own, where nothing may wait for an event loop."""
        invoke, scope = self._invoke, self._child_scope(run_id, self._scope.ports.blocking)
        return lambda call: step(invoke(call, scope))

    def _child_scope(self, run_id: str, ports: Ports) -> Scope:
        scope = self._scope
        run = scope.run or Run()
        return replace(scope, ports=ports, run_id=run_id, run=run, result_limit_bytes=None, sink=None)


def read_again(tool: str, result: ToolResult, scope: Scope) -> None:
    """Adds the labels of a result on record to those that its run has read."""
    if scope.run is None or not result.success or tool == CODE_EXECUTION:
        # A program's calls count, each for itself.
        return
    entry = scope.catalogue.find(tool)
    # A tool that was removed can no longer say what its results are: the worst is assumed.
    scope.run.read(_ALL_LABELS if entry is None else entry.tool.effects.labels)


_ALL_LABELS: frozenset[Label] = frozenset(get_args(Label))


def run_of(call: ToolCall, scope: Scope) -> str:
    """The run that requests and rules know the call by: of a recorded run its own, inside of its programs too."""
    return scope.run_id or call.id if scope.ledger is None else scope.ledger.run_id


def ended(outcome: Outcome) -> ToolResult:
    """The result of a call that was made where none can wait beyond this process (`can_suspend` is False)."""
    if isinstance(outcome, ToolResult):
        return outcome
    raise AssertionError(f"call {outcome.call.id} waits for a person where no call can")
