"""The context that travels with every call: the tools, rules, observers, limits and state that apply to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, get_args

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Middleware, check_middleware
from toolwire.catalogue.groups import Groups
from toolwire.catalogue.selection import Selection, Visible, check_predicate
from toolwire.definition.arguments.canonical import PROCESS_KEY
from toolwire.definition.binding import States
from toolwire.definition.tool import Tool
from toolwire.invocation.nobody import NobodyAsked
from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.ports import Ledger, Observer, Ports, Sink
from toolwire.invocation.shared_run import Run, TurnEnd
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy
from toolwire.permission.seen_urls import urls_in
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.tracer import Tracer
from toolwire.vocabulary.calls import CLEANUP_S, CODE_EXECUTION, NOBODY, Caller, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.kept_text import Spill
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.variables import SharedVariables

RESULT_LIMIT_BYTES = 32_768
"""Maximum number of bytes of a result's text that a model sees, about 8,000 tokens."""


class Events(Observer, Protocol):
    """The reader of a turn's events (`session.turn_events`)."""

    def flush(self) -> Future[bool] | None: ...


class LiveObservers(Protocol):
    """Observers that a host adds and removes while calls run."""

    @property
    def now(self) -> tuple[Observer, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The settings that all calls of a holder of tools, or of one run, share. A change makes a copy.

    A registry, toolkit or session holds one. Each turn and program adds its run to a copy of it.
    """

    catalogue: Catalogue
    """All tools of the registry, toolkit or session."""
    ports: Ports
    """The driver's ports."""
    policy: Policy = field(default_factory=Policy)
    """The policy that decides which calls run, need approval, or are denied."""
    approver: Approver | None = None
    """The callback that asks a person. None: calls that need approval do not run."""
    nobody_asked: NobodyAsked = field(default_factory=NobodyAsked, repr=False, compare=False)
    """The warning about calls that need approval when there is no approver."""
    middleware: tuple[Middleware, ...] = ()
    """The middleware around the execution of every call, outermost first."""
    observers: tuple[Observer, ...] = ()
    """The observers of each call's end."""
    watchers: tuple[LiveObservers, ...] = ()
    """The observers that come and go: of the registry, the toolkit and the session."""
    events: Events | None = None
    """The reader of the turn's events, or None. A call goes on when the reader has taken its events."""
    runner: Any = None
    """The `ProgramRunner` of the holder's programs; None: the sandbox of this machine."""
    tracer: Tracer | None = None
    """Follows calls while they run, or None."""
    caller: Caller = NOBODY
    """The caller on whose behalf the calls run."""
    states: States = field(default=(), repr=False)
    """States that give bound values before the tool's own state. They hold secrets, so no text shows them."""
    visible: tuple[Visible, ...] = ()
    """Predicates that hide tools from callers. A tool is visible if all of them return True."""
    groups: Groups | None = None
    """Groups: a tool can be called only while its group is active. None: all tools can be called."""
    conversation: str = ""
    """The conversation of the session; empty outside of a session."""
    run_id: str = ""
    """The run that the call belongs to."""
    run: Run | None = None
    """The state that the calls of this run share; None if each call is its own run."""
    ledger: Ledger | None = None
    """The run's write-ahead log. None: nothing outlives this process."""
    pages: Spill | None = None
    """Keeps long results in the store. None: the tool that reads them keeps them."""
    secret_key: bytes = PROCESS_KEY
    """Key that hashes the secrets among arguments. With a store it is the store's, the same in all processes."""
    can_suspend: bool = False
    """True if a call that waits for a person may end this pass over the run as `Pending`."""
    clocks: tuple[PauseClock, ...] = ()
    """For the calls that a running tool makes: the clocks of the calls that wait with them, outermost first."""
    cleanup_s: float = CLEANUP_S
    """Seconds that cancelled calls get for their clean-up, in programs and outside (`Limits.cleanup_s`)."""
    deadline: float | None = None
    """Time of `time.monotonic()` after which no new work starts."""
    result_limit_bytes: int | None = RESULT_LIMIT_BYTES
    """Maximum number of bytes of text for a model. None inside programs, which receive the whole data."""
    clock: Callable[[], float] = lambda: time.time()
    """Returns the seconds since the epoch by which requests expire."""
    end: TurnEnd | None = None
    """The end of the turn: by a call of the model, or of a sequence whose last call failed.

    Calls that a running tool makes itself have none.
    """
    variables: SharedVariables | None = None
    """The variables that the turn's programs share; None: each program starts empty. As `end`, not for inner calls."""
    agent_run: object | None = None
    """The run of an agent that the calls belong to (`agent/agent_run.py`); None: no agent's."""
    depth: int = 0
    """Number of catalogues above this one in the run (`CallContext.using`)."""
    sink: Sink | None = None
    """Sink for streamed output, or None. Inner calls have none: their caller receives the whole result."""
    tools: Catalogue | Selection = field(init=False, repr=False)
    """The part of the catalogue that the caller sees, now and later."""
    listeners: tuple[Observer, ...] = field(init=False, repr=False)
    """The observers, with those of the watchers when this copy was made."""

    def __post_init__(self) -> None:
        tools, listeners = self.catalogue, self.observers
        if self.groups is not None or self.visible:
            tools = Selection(self.catalogue, self.caller, groups=self.groups, visible=self.visible)
        for watching in self.watchers:
            listeners += watching.now
        if self.events is not None:
            listeners += (self.events,)
        object.__setattr__(self, "tools", tools)
        object.__setattr__(self, "listeners", listeners)

    @property
    def runtime(self) -> Runtime:
        """The threads and the sandbox to use."""
        return self.ports.runtime

    def with_state(self, state: Mapping[str, Any] | None) -> Scope:
        """Returns a copy that looks bound parameters up in `state` before all others; None adds nothing.

        Raises:
            ConfigurationError: It is not a mapping.
        """
        if state is None:
            return self
        # The message names only the type: the value may be a secret.
        if not isinstance(cast("object", state), Mapping):
            raise ConfigurationError(
                f"state must be a mapping of state keys to values, not {type(state).__name__}: "
                "write state={'token': token}"
            )
        return replace(self, states=(state, *self.states))

    def with_middleware(self, layers: Iterable[Middleware]) -> Scope:
        """Returns a copy with more layers inside of the present ones.

        Raises:
            ConfigurationError: A layer cannot be called.
        """
        more = tuple(layers)
        for layer in more:
            check_middleware(layer)
        return replace(self, middleware=(*self.middleware, *more))

    def narrow(
        self, *, visible: Visible | None = None, caller: Caller | None = None, groups: Groups | None = None
    ) -> Scope:
        """Returns a copy for fewer tools: with one more predicate, another caller, or groups.

        Raises:
            ConfigurationError: The predicate cannot be called at once, or the caller is not a `Caller`.
        """
        if visible is not None:
            check_predicate(visible)
        if caller is not None and not isinstance(cast("object", caller), Caller):
            raise ConfigurationError(f"caller={caller!r:.80}: write caller=Caller(principal='...')")
        return replace(
            self,
            visible=self.visible if visible is None else (*self.visible, visible),
            caller=self.caller if caller is None else caller,
            groups=self.groups if groups is None else groups,
        )


Path = Callable[[ToolCall, Scope], Coroutine[Any, Any, Outcome]]
"""`invoker.invoke`, passed down to code that makes calls of its own."""


def read_again(tool: str, result: ToolResult, scope: Scope, given: Any) -> None:
    """Adds the labels and URLs of a recorded result to those that the run has read. `given` are its arguments."""
    entry = scope.tools.find(tool)
    read_result(None if entry is None else entry.tool, tool, result, scope, given)


def read_result(tool: Tool | None, name: str, result: ToolResult, scope: Scope, given: Any) -> None:
    """Works as `read_again`. `tool` is the tool of that name; None if it was removed."""
    if scope.run is None or not result.success or name == CODE_EXECUTION:
        # The inner calls of a program count, each on its own.
        return
    # A removed tool no longer declares its labels, so the worst is assumed.
    scope.run.read(_ALL_LABELS if tool is None else tool.effects.labels)
    # The record does not say which tools made calls of their own, so none that could do so counts.
    if tool is not None and tool.context_parameter is None:
        scope.run.saw(urls_in(result, given))


_ALL_LABELS: frozenset[Label] = frozenset(get_args(Label))


def run_of(call: ToolCall, scope: Scope) -> str:
    """Returns the run by which requests and rules know the call. For a recorded run it is the same in its programs."""
    return scope.run_id or call.id if scope.ledger is None else scope.ledger.run_id


def require_result(outcome: Outcome) -> ToolResult:
    """Returns the result of a call that cannot wait beyond this process (`can_suspend` is False)."""
    if isinstance(outcome, ToolResult):
        return outcome
    raise AssertionError(f"call {outcome.call.id} waits for a person, which is not possible here")
