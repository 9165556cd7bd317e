"""What a registry and its toolkits share: rules, who is asked, who listens, and the driver for each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Middleware
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.blocking import BlockingPorts, needs_loop
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports import Ports
from toolwire.invocation.scope import RESULT_LIMIT_BYTES, Observer, Scope, ended
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy
from toolwire.runtime.runtime import Runtime, default_runtime
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import NOBODY, Caller, ToolCall
from toolwire.vocabulary.results import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How calls are run, whatever is called."""

    policy: Policy = field(default_factory=Policy)
    """The rules in force."""
    approver: Approver | None = None
    """Who is asked; None: nobody."""
    middleware: tuple[Middleware, ...] = ()
    """What stands around every call, the first outermost."""
    observers: tuple[Observer, ...] = ()
    """Who is told of each call."""
    runtime: Runtime = field(default_factory=default_runtime)
    """Whose threads and sandbox are used."""
    caller: Caller = NOBODY
    """On whose behalf."""
    result_limit_bytes: int = RESULT_LIMIT_BYTES
    """Bytes of a result's text that go back to a model."""

    def scope(self, catalogue: Catalogue, *, run_id: str = "") -> Scope:
        """The scope of blocking calls of these tools; without `run_id` each call is a run of its own."""
        return self._scope(catalogue, BlockingPorts(self.runtime), run_id)

    def loop_scope(self, catalogue: Catalogue, *, run_id: str = "") -> Scope:
        """The scope of calls that are awaited."""
        # asyncio is imported only by who runs a loop already.
        from toolwire.invocation.asynchronous import AsynchronousPorts

        return self._scope(catalogue, AsynchronousPorts(self.runtime), run_id)

    def _scope(self, catalogue: Catalogue, ports: Ports, run_id: str) -> Scope:
        return Scope(
            catalogue=catalogue,
            policy=self.policy,
            ports=ports,
            approver=self.approver,
            middleware=self.middleware,
            observers=self.observers,
            caller=self.caller,
            run_id=run_id,
            result_limit_bytes=self.result_limit_bytes,
        )

    def with_observer(self, observer: Observer) -> Setup:
        """The same, with one more listener."""
        return replace(self, observers=(*self.observers, observer))


def call_blocking(call: ToolCall, scope: Scope, setup: Setup) -> ToolResult:
    """The result, in this thread; what needs an event loop runs on the portal's while this thread waits."""
    if needs_loop((call,), scope):
        awaited = setup.loop_scope(scope.catalogue, run_id=scope.run_id)
        return ended(setup.runtime.portal.run(lambda: invoke(call, awaited)))
    return ended(step(invoke(call, scope)))


def batch_blocking(calls: Sequence[ToolCall], scope: Scope, setup: Setup) -> list[ToolResult]:
    """The results in order, in this thread and workers; see `call_blocking`."""
    if needs_loop(calls, scope):
        awaited = setup.loop_scope(scope.catalogue, run_id=scope.run_id)
        return [ended(outcome) for outcome in setup.runtime.portal.run(lambda: invoke_all(calls, awaited))]
    return [ended(outcome) for outcome in step(invoke_all(calls, scope))]
