"""A small world in which calls are made: tools, rules, and one of the two drivers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Composite, Entry, Middleware
from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Permission, Tool
from toolwire.invocation.batch import invoke_all, needs_loop
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports.asynchronous import AsynchronousPorts
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.invocation.ports.ports import CallRecord, Ledger, Ports
from toolwire.invocation.scope import RESULT_LIMIT_BYTES, Observer, Run, Scope, require_result
from toolwire.permission.approval import Approver
from toolwire.permission.policy import Policy, Rule
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import CLEANUP_S, NOBODY, Caller, ToolCall
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.results import Outcome, ToolResult

Driver = Literal["blocking", "asyncio"]


class Recording:
    """An observer that remembers its notifications."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def ended(self, record: CallRecord, /) -> None:
        self.records.append(record)

    @property
    def story(self) -> list[tuple[str, str, str]]:
        """Id, parent and outcome of each call, in the order they were told."""
        return [(each.call.id, each.call.parent, outcome(each.result)) for each in self.records]


def outcome(result: ToolResult) -> str:
    return "success" if result.failure is None else result.failure.kind


@dataclass(kw_only=True)
class World:
    """Everything a call needs, and the driver that makes it."""

    driver: Driver
    catalogue: Catalogue = field(default_factory=Catalogue)
    runtime: Runtime = field(default_factory=Runtime)
    recording: Recording = field(default_factory=Recording)
    observers: tuple[Observer, ...] = ()
    rules: Iterable[Rule] = ()
    approver: Approver | None = None
    policy: Policy | None = None
    clock: Callable[[], float] = time.time
    caller: Caller = NOBODY
    deadline: float | None = None
    run_id: str = ""
    result_limit_bytes: int | None = RESULT_LIMIT_BYTES
    ledger: Ledger | None = None
    can_suspend: bool = False
    run: Run | None = None
    middleware: tuple[Middleware, ...] = ()
    cleanup_s: float = CLEANUP_S
    on_sleep: Callable[[float], object] | None = None
    """Called in place of sleeping; None: calls really sleep."""

    def add(
        self,
        function: Callable[..., Any] | Tool,
        *,
        name: str | None = None,
        permission: Permission | None = None,
        timeout_s: float | None = None,
        composite: Composite | None = None,
        parallel: bool = True,
        middleware: tuple[Middleware, ...] = (),
    ) -> Entry:
        """Registers a tool."""
        tool = function if isinstance(function, Tool) else from_function(function, name=name)
        entry = Entry(
            name=name or tool.name,
            tool=tool,
            handle=function,
            permission=permission,
            timeout_s=timeout_s,
            composite=composite,
            gate=None if parallel else Gate(),
            middleware=middleware,
        )
        self.catalogue.add(entry)
        return entry

    def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """The outcome of a call with these arguments, of id `r_1`."""
        return self.make(ToolCall(name, arguments, id="r_1"))

    def make(self, call: ToolCall) -> ToolResult:
        """The outcome of this call."""
        return require_result(self.come_to(call))

    def come_to(self, call: ToolCall) -> Outcome:
        """The outcome of this call: its end, or that it waits."""
        return self._drive((call,), lambda scope: invoke(call, scope))

    def batch(self, *calls: tuple[str, Mapping[str, Any]]) -> list[ToolResult]:
        """The outcomes of calls made together; their ids are `r_1`, `r_2` and so on."""
        made = [ToolCall(name, arguments, id=f"r_{place}") for place, (name, arguments) in enumerate(calls, 1)]
        return self._drive(made, lambda scope: invoke_all(made, scope))

    def scope(self, ports: Ports) -> Scope:
        """The surroundings of the calls, for tests that drive them by hand."""
        return Scope(
            catalogue=self.catalogue,
            policy=Policy(self.rules) if self.policy is None else self.policy,
            ports=ports,
            approver=self.approver,
            clock=self.clock,
            caller=self.caller,
            observers=(self.recording, *self.observers),
            run_id=self.run_id,
            deadline=self.deadline,
            result_limit_bytes=self.result_limit_bytes,
            ledger=self.ledger,
            can_suspend=self.can_suspend,
            run=self.run,
            middleware=self.middleware,
        )

    def loop_scope(self) -> Scope:
        """The scope of calls that are awaited."""
        return self.scope(self._sleepless(AsynchronousPorts(self.runtime, self.cleanup_s)))

    def _drive(self, calls: Iterable[ToolCall], core: Callable[[Scope], Coroutine[Any, Any, Any]]) -> Any:
        if self.driver == "asyncio":
            return asyncio.run(core(self.loop_scope()))
        scope = self.scope(self._sleepless(BlockingPorts(self.runtime)))
        if needs_loop(tuple(calls), scope):
            return self.runtime.portal.run(lambda: core(self.loop_scope()))
        return step(core(scope))

    def _sleepless(self, ports: Any) -> Ports:
        if self.on_sleep is not None:
            on_sleep = self.on_sleep

            async def sleep(seconds: float) -> None:
                on_sleep(seconds)

            ports.sleep = sleep
        return ports
