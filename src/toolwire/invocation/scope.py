"""The surroundings of a call: the tools, policy, approver, observers and limits that apply to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry, Middleware, is_colourless
from toolwire.catalogue.selection import Selection
from toolwire.definition.arguments.canonical import PROCESS_KEY
from toolwire.definition.binding import States
from toolwire.definition.tool import Tool, Validated, canonical
from toolwire.invocation.ports import Ledger, Ports, Sink, Tracer
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import CODE_EXECUTION, NOBODY, Caller, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import Step
from toolwire.vocabulary.values import digest

RESULT_LIMIT_BYTES = 32_768
"""Maximum number of bytes of a result's text that a model sees, about 8,000 tokens."""


class CallRecord:
    """One call from start to end, for observers.

    Attributes:
        call: The call as the model or program made it.
        entry: The registered tool; None if no tool has the call's name.
        result: The result of the call.
        run_id: The run that the call belongs to, or the call's id outside of a run.
        started_at: Start time in seconds since the epoch.
        duration_s: Duration in seconds.
        is_from_record: True if nothing ran: the result is that of an earlier pass over the run.
    """

    __slots__ = ("call", "duration_s", "entry", "is_from_record", "result", "run_id", "started_at")

    def __init__(
        self,
        call: ToolCall,
        entry: Entry | None,
        result: ToolResult,
        run_id: str,
        started_at: float,
        duration_s: float,
        *,
        is_from_record: bool = False,
    ) -> None:
        self.call = call
        self.entry = entry
        self.result = result
        self.run_id = run_id
        self.started_at = started_at
        self.duration_s = duration_s
        self.is_from_record = is_from_record


class Run:
    """The state that all calls of one run share. Any thread may change it."""

    __slots__ = ("asked", "stopped", "taints")

    def __init__(self, taints: Iterable[Label] = ()) -> None:
        self.taints = frozenset(taints)
        """Labels of the data that the run has read so far."""
        self.asked: frozenset[str] = frozenset()
        """Ids of the calls that a person was asked about in an earlier pass."""
        self.stopped: str | None = None
        """The reason why nothing more may start; None while the run continues."""

    def read(self, labels: frozenset[Label]) -> None:
        """Adds the labels of a result. Labels are never removed."""
        if not labels <= self.taints:
            self.taints |= labels


class Observer(Protocol):
    """Receives events and cannot affect calls. Its errors are logged and suppressed.

    An observer may have more methods; `invocation_id` is the run of the call, as in the log:

    - `started(call, invocation_id)`: a call arrived.
    - `parts(call, invocation_id)`: the tool is about to run. Returns a function that receives each `Part` it gives.
    - `asked(request, invocation_id)`: a person is about to be asked.
    - `decided(request, decision, invocation_id)`: a decision counts.
    """

    def ended(self, record: CallRecord, /) -> None:
        """Called once when a call has ended, after everything else."""
        ...


@dataclass(slots=True, kw_only=True)
class Scope:
    """The settings that all calls of a run share. A call made by a program gets its own copy."""

    catalogue: Catalogue | Selection
    """The tools that may be called."""
    policy: Policy
    """The policy that decides which calls run, need approval, or are denied."""
    ports: Ports
    """The driver's ports."""
    approver: Approver | None = None
    """The callback that asks a person. None: calls that need approval do not run."""
    middleware: tuple[Middleware, ...] = ()
    """The middleware around the execution of every call, outermost first."""
    observers: tuple[Observer, ...] = ()
    """The observers of each call's end."""
    tracer: Tracer | None = None
    """Follows calls while they run, or None."""
    caller: Caller = NOBODY
    """The caller on whose behalf the calls run."""
    states: States = field(default=(), repr=False)
    """States that give bound values before the tool's own state. They hold secrets, so no text shows them."""
    run_id: str = ""
    """The run that the call belongs to."""
    run: Run | None = None
    """The state that the calls of this run share; None if each call is its own run."""
    ledger: Ledger | None = None
    """The run's write-ahead log. None: nothing outlives this process."""
    secret_key: bytes = PROCESS_KEY
    """Key that hashes the secrets among arguments.

    With a store it is the store's key, so hashes match across processes.
    """
    can_suspend: bool = False
    """True if a call that waits for a person may end this pass over the run as `Pending`."""
    deadline: float | None = None
    """Time of `time.monotonic()` after which no new work starts."""
    result_limit_bytes: int | None = RESULT_LIMIT_BYTES
    """Maximum number of bytes of text for a model. None inside programs, which receive the whole data."""
    clock: Callable[[], float] = lambda: time.time()
    """Returns the seconds since the epoch by which requests expire."""
    sink: Sink | None = None
    """Sink for streamed output, or None. Inner calls have none: their caller receives the whole result."""


class Prepared:
    """A call after validation, exactly as it will run."""

    __slots__ = (
        *("_canonical", "_digest", "approval", "asked", "attempt", "call", "entry"),
        *("idempotency_key", "request_id", "validated"),
    )

    def __init__(self, call: ToolCall, entry: Entry, validated: Validated) -> None:
        self.call = call
        self.entry = entry
        self.validated = validated
        self.request_id = ""
        """The approved request that allows the call; empty if no approval was needed."""
        self.asked = call
        """The call as the model made it. It differs from `call` if a person edited the arguments."""
        self.approval: Mapping[str, Any] | None = None
        """The facts about the decision for observers; None if no approval was needed."""
        self.attempt = 1
        """The number of this attempt. Above 1, an earlier attempt began and its outcome is unknown."""
        self.idempotency_key = ""
        """The recorded key of the arguments, before any middleware changed them. Empty without a record."""
        self._canonical: Mapping[str, Any] | None = None
        self._digest = ""

    def canonical(self, scope: Scope) -> Mapping[str, Any]:
        """Returns the arguments in the form that rules, people, remembered rules and the cache compare.

        The form is made once, so host code must get a copy of it.

        Raises:
            Unrepresentable: JSON cannot hold a value, or would change it.
        """
        if self._canonical is None:
            self._canonical = canonical(self.validated, scope.secret_key)
        return self._canonical

    def canonical_digest(self, scope: Scope) -> str:
        """Returns the digest of the canonical form.

        Raises:
            Unrepresentable: JSON cannot hold a value, or would change it.
        """
        if not self._digest:
            self._digest = digest(self.canonical(scope))
        return self._digest

    def look_again(self) -> None:
        """Discards the canonical form, because the values may have changed since it was made."""
        self._canonical, self._digest = None, ""


Path = Callable[[ToolCall, Scope], Coroutine[Any, Any, Outcome]]
"""`invoker.invoke`, passed down to code that makes calls of its own."""


class Inside:
    """The access of a composite tool to its own call, to the tools it may call, and to the path."""

    __slots__ = ("_invoke", "_scope", "call", "started_at")

    def __init__(self, call: ToolCall, scope: Scope, invoke: Path, *, started_at: float = 0.0) -> None:
        self.call = call
        self.started_at = started_at
        """Start time of the first pass over a recorded call in seconds since the epoch; 0.0 for any other call."""
        self._scope = scope
        self._invoke = invoke

    @property
    def ledger_id(self) -> str:
        """The recorded run that the call belongs to; empty if nothing outlives this process."""
        return "" if self._scope.ledger is None else self._scope.ledger.run_id

    @property
    def can_suspend(self) -> bool:
        """True if the calls may wait for a person beyond this process. They then return `Pending`."""
        return self._scope.can_suspend

    @property
    def recorded(self) -> Sequence[tuple[Step, ToolResult]]:
        """The calls that ended in an earlier pass, in the order in which they ended.

        Reading them adds the labels of their results to the run, because the tool receives the results again.
        """
        found = () if self._scope.ledger is None else self._scope.ledger.recorded(self.call.id)
        for one, result in found:
            read_again(one.tool, result, self._scope)
        return found

    @property
    def notes(self) -> Sequence[Mapping[str, Any]]:
        """The entries that `note` recorded about these calls."""
        return () if self._scope.ledger is None else self._scope.ledger.notes(self.call.id)

    def note(self, entry: Mapping[str, Any]) -> None:
        """Records an entry for the next pass. It is dropped if nothing outlives this process."""
        if self._scope.ledger is not None:
            self._scope.ledger.note(self.call.id, entry)

    @property
    def tools(self) -> list[tuple[str, Tool]]:
        """The tools that may be called, by name.

        Composite tools are left out, because a program cannot run a program.
        """
        return [(entry.name, entry.tool) for entry in self._scope.catalogue if entry.composite is None]

    @property
    def is_blocking(self) -> bool:
        """True if the path runs without an event loop. It must not wait for one then."""
        return self._scope.ports.is_blocking

    @property
    def has_async_tools(self) -> bool:
        """True if calls of some of these tools need an event loop."""
        return self._scope.catalogue.is_async or not all(map(is_colourless, self._scope.middleware))

    @property
    def deadline(self) -> float | None:
        """Time of `time.monotonic()` after which no new work starts."""
        return self._scope.deadline

    @property
    def result_limit_bytes(self) -> int | None:
        """Maximum number of bytes of text for a model. None: no limit."""
        return self._scope.result_limit_bytes

    def awaited_calls(self, run_id: str) -> Callable[[ToolCall], Coroutine[Any, Any, Outcome]]:
        """Returns a coroutine function that makes calls of one run. Each call takes the whole path."""
        invoke, scope = self._invoke, self._child_scope(run_id, self._scope.ports)
        return lambda call: invoke(call, scope)

    def blocking_calls(self, run_id: str) -> Callable[[ToolCall], Outcome]:
        """Returns the same as a blocking function, for a thread in which no call may wait for an event loop."""
        invoke, scope = self._invoke, self._child_scope(run_id, self._scope.ports.blocking)
        return lambda call: step(invoke(call, scope))

    def _child_scope(self, run_id: str, ports: Ports) -> Scope:
        scope = self._scope
        run = scope.run or Run()
        return replace(scope, ports=ports, run_id=run_id, run=run, result_limit_bytes=None, sink=None)


def read_again(tool: str, result: ToolResult, scope: Scope) -> None:
    """Adds the labels of a recorded result to those that the run has read."""
    if scope.run is None or not result.success or tool == CODE_EXECUTION:
        # The inner calls of a program count, each on its own.
        return
    entry = scope.catalogue.find(tool)
    # A removed tool no longer declares its labels, so the worst is assumed.
    scope.run.read(_ALL_LABELS if entry is None else entry.tool.effects.labels)


_ALL_LABELS: frozenset[Label] = frozenset(get_args(Label))


def run_of(call: ToolCall, scope: Scope) -> str:
    """Returns the run by which requests and rules know the call. For a recorded run it is the same in its programs."""
    return scope.run_id or call.id if scope.ledger is None else scope.ledger.run_id


def ended(outcome: Outcome) -> ToolResult:
    """Returns the result of a call that cannot wait beyond this process (`can_suspend` is False)."""
    if isinstance(outcome, ToolResult):
        return outcome
    raise AssertionError(f"call {outcome.call.id} waits for a person where no call can")
