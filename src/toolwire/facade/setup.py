"""The settings that a registry and its toolkits share: rules, approver, observers, and the driver for each call."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry, Middleware, check_middleware
from toolwire.catalogue.groups import Groups
from toolwire.catalogue.selection import Selection, Visible
from toolwire.definition.binding import States
from toolwire.facade.observing.observation import Watchers
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.blocking import BlockingPorts, needs_loop
from toolwire.invocation.invoker import invoke
from toolwire.invocation.judge import is_denied
from toolwire.invocation.ports import Ports, Tracer
from toolwire.invocation.scope import RESULT_LIMIT_BYTES, Observer, Scope, ended
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy
from toolwire.runtime.runtime import Runtime, default_runtime
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import NOBODY, Caller, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How calls are run, for any set of tools.

    Attributes:
        policy: The rules in force.
        approver: Decides calls that the rules confirm; None: such calls do not run.
        middleware: Layers around every call, the first outermost.
        observers: Listeners that are told of each call.
        watchers: Observers that come and go: of the registry, the toolkit and the session, each live.
        tracer: Follows calls while they run; None: no tracing.
        runtime: The threads and the sandbox to use.
        caller: The caller on whose behalf calls are made.
        states: Mappings in which bound parameters are looked up before the tool's own state. They hold secrets and are
            never shown.
        result_limit_bytes: Bytes of a result's text that go back to a model.
        visible: Predicates that hide tools from callers; a tool is visible when all of them return True.
        groups: Groups: a tool can be called only while its group is active. None: all tools can be called.
    """

    policy: Policy = field(default_factory=Policy)
    approver: Approver | None = None
    middleware: tuple[Middleware, ...] = ()
    observers: tuple[Observer, ...] = ()
    watchers: tuple[Watchers, ...] = ()
    tracer: Tracer | None = None
    runtime: Runtime = field(default_factory=default_runtime)
    caller: Caller = NOBODY
    states: States = field(default=(), repr=False)
    result_limit_bytes: int = RESULT_LIMIT_BYTES
    visible: tuple[Visible, ...] = ()
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.caller), Caller):
            raise ConfigurationError(f"caller={self.caller!r:.80}: write caller=Caller(principal='...')")
        for visible in self.visible:
            _check_predicate(visible)
        for layer in self.middleware:
            check_middleware(layer)

    def select(self, catalogue: Catalogue) -> Catalogue | Selection:
        """Returns the part of these tools that the caller sees, now and later."""
        if self.groups is None and not self.visible:
            return catalogue
        return Selection(catalogue, self.caller, groups=self.groups, visible=self.visible)

    def scope(self, catalogue: Catalogue, *, run_id: str = "") -> Scope:
        """Returns the scope of blocking calls of these tools; without `run_id` each call is a run of its own."""
        return self._scope(catalogue, BlockingPorts(self.runtime), run_id)

    def loop_scope(self, catalogue: Catalogue, *, run_id: str = "") -> Scope:
        """Returns the scope of awaited calls."""
        # Import asyncio here: only callers with a loop need it.
        from toolwire.invocation.asynchronous import AsynchronousPorts

        return self._scope(catalogue, AsynchronousPorts(self.runtime), run_id)

    def _scope(self, catalogue: Catalogue, ports: Ports, run_id: str) -> Scope:
        return Scope(
            catalogue=self.select(catalogue),
            policy=self.policy,
            ports=ports,
            approver=self.approver,
            middleware=self.middleware,
            observers=(*self.observers, *(observer for some in self.watchers for observer in some.now)),
            tracer=self.tracer,
            caller=self.caller,
            states=self.states,
            run_id=run_id,
            result_limit_bytes=self.result_limit_bytes,
        )

    def denies(self, entry: Entry) -> bool:
        """Returns True if every call of it is denied, so that no model is told of it."""
        return is_denied(entry, self.policy)

    def with_observer(self, observer: Observer) -> Setup:
        """Returns a copy with one more observer."""
        return replace(self, observers=(*self.observers, observer))

    def with_watchers(self, watchers: Watchers) -> Setup:
        """The same, with the observers of one more holder."""
        return replace(self, watchers=(*self.watchers, watchers))

    def with_middleware(self, layers: Iterable[Middleware]) -> Setup:
        """Returns a copy with more layers inside of the present ones."""
        return replace(self, middleware=(*self.middleware, *layers))

    def with_state(self, state: Mapping[str, Any] | None) -> Setup:
        """Returns a copy that looks bound parameters up in `state` before all others; None adds nothing.

        Raises:
            ConfigurationError: it is not a mapping.
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

    def narrowed(
        self, *, visible: Visible | None = None, caller: Caller | None = None, groups: Groups | None = None
    ) -> Setup:
        """Returns a copy for fewer tools: with one more predicate, another caller, or groups."""
        return replace(
            self,
            visible=self.visible if visible is None else (*self.visible, visible),
            caller=self.caller if caller is None else caller,
            groups=self.groups if groups is None else groups,
        )


def _check_predicate(visible: object) -> None:
    if not callable(visible):
        raise ConfigurationError(f"visible={visible!r}: give a function (tool_name, caller) -> bool")
    if inspect.iscoroutinefunction(visible):
        raise ConfigurationError(
            f"visible={visible.__name__} is a coroutine function: it must answer at once, write `def`"
        )


def call_blocking(call: ToolCall, scope: Scope, setup: Setup) -> ToolResult:
    """Runs the call and returns its result; a call that needs an event loop runs on the portal's, and this thread
    waits.
    """
    if needs_loop((call,), scope):
        awaited = _awaited(scope, setup)
        return ended(setup.runtime.portal.run(lambda: invoke(call, awaited)))
    return ended(step(invoke(call, scope)))


def _awaited(scope: Scope, setup: Setup) -> Scope:
    from toolwire.invocation.asynchronous import AsynchronousPorts

    return replace(scope, ports=AsynchronousPorts(setup.runtime))


def batch_blocking(calls: Sequence[ToolCall], scope: Scope, setup: Setup) -> list[ToolResult]:
    """Runs the calls and returns their results in order, in this thread and workers; see `call_blocking`."""
    if needs_loop(calls, scope):
        awaited = _awaited(scope, setup)
        return [ended(outcome) for outcome in setup.runtime.portal.run(lambda: invoke_all(calls, awaited))]
    return [ended(outcome) for outcome in step(invoke_all(calls, scope))]
