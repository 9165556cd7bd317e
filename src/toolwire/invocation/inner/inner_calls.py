"""The access of a composite tool to its own call, to the tools it may call, and to the path."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.entry import Entry, is_colourless
from toolwire.definition.tool import Tool
from toolwire.invocation.ports.ports import Ports
from toolwire.invocation.resolve import may_name
from toolwire.invocation.scope import Path, Scope, read_again
from toolwire.invocation.shared_run import Run
from toolwire.invocation.tell import record_of, tell
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import Step
from toolwire.vocabulary.variables import SharedVariables

if TYPE_CHECKING:
    from toolwire.runtime.loop_calls import LoopCalls

_LOG = logging.getLogger("toolwire.calls")


class InnerCalls:
    """The access of a composite tool to its own call, to the tools it may call, and to the path."""

    __slots__ = ("_invoke", "_run", "_scope", "call", "started_at")

    def __init__(self, call: ToolCall, scope: Scope, invoke: Path, *, started_at: float = 0.0) -> None:
        self.call = call
        self.started_at = started_at
        """Start time of the first pass over a recorded call in seconds since the epoch; 0.0 for any other call."""
        self._scope = scope
        self._run = scope.run or Run()
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
    def earlier_steps(self) -> Sequence[tuple[Step, ToolResult]]:
        """The calls that ended in an earlier pass, in the order in which they ended.

        Reading them adds the labels of their results to the run, because the tool receives the results again.
        """
        found = () if self._scope.ledger is None else self._scope.ledger.steps_below(self.call.id)
        for one, result in found:
            read_again(one.tool, result, self._scope, one.given)
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
    def variables(self) -> SharedVariables | None:
        """The variables that the programs of the conversation share; None: each program starts empty."""
        return self._scope.variables

    @property
    def tools(self) -> list[tuple[str, Tool]]:
        """The tools that may be called, by name."""
        return [(entry.name, entry.tool) for entry in self._entries()]

    @property
    def is_blocking(self) -> bool:
        """True if the path runs without an event loop. It must not wait for one then."""
        return self._scope.ports.is_blocking

    @property
    def has_deferred_tools(self) -> bool:
        """True if calls of some of these tools need an event loop or give a future."""
        return self._scope.tools.has_deferred_tools or self._is_loop_needed

    def is_call_deferred(self, name: str) -> bool:
        """True if a call of this tool needs an event loop, gives a future, or may make calls that do."""
        entry = self._scope.tools.find(name)
        is_own = entry is not None and (entry.is_deferred or entry.tool.context_parameter is not None)
        return is_own or self._is_loop_needed

    @property
    def _is_loop_needed(self) -> bool:
        """True if a middleware needs an event loop for every call."""
        return not all(map(is_colourless, self._scope.middleware))

    def is_nameable(self, name: str) -> bool:
        """True if a text for the model may name this tool."""
        entry = self._scope.tools.find(name)
        return entry is not None and may_name(entry, self._scope)

    def _entries(self) -> list[Entry]:
        """Returns the tools that may be called. A composite tool is left out: a program cannot run a program."""
        return [entry for entry in self._scope.tools if entry.composite is None]

    def loop_calls(self) -> LoopCalls:
        """Returns a block in which other threads start calls on the running loop."""
        # Import asyncio here: only callers with a loop need it.
        from toolwire.runtime.loop_calls import LoopCalls

        return LoopCalls()

    @property
    def deadline(self) -> float | None:
        """Time of `time.monotonic()` after which no new work starts."""
        return self._scope.deadline

    @property
    def result_limit_bytes(self) -> int | None:
        """Maximum number of bytes of text for a model. None: no limit."""
        return self._scope.result_limit_bytes

    @property
    def ending_call_id(self) -> str:
        """The id of the call by which the model ended the turn; empty until then."""
        return "" if self._scope.end is None else self._scope.end.call_id

    def async_calls(self, run_id: str) -> Callable[[ToolCall], Coroutine[Any, Any, Outcome | None]]:
        """Returns a coroutine function that makes calls of one run. Each call takes the whole path.

        None in place of an outcome: `end_calls` was called before, and nothing ran.
        """
        invoke, scope, under_way = self._invoke, self._child_scope(run_id, self._scope.ports), self._run.under_way
        return lambda call: under_way.run(call, invoke(call, scope), scope.ports.is_still_running)

    def blocking_calls(self, run_id: str) -> Callable[[ToolCall], Outcome | None]:
        """Returns the same as a blocking function, for a thread in which no call may wait for an event loop."""
        ports = self._scope.ports.blocking
        invoke, scope, under_way = self._invoke, self._child_scope(run_id, ports), self._run.under_way
        return lambda call: step(under_way.run(call, invoke(call, scope), ports.is_still_running))

    async def end_calls(self, limit_s: float) -> list[ToolCall]:
        """Lets no more of these calls begin, and waits until those that run have ended. Returns those that have not."""
        ended = self._run.under_way.close(self.call.id)
        if not ended.done() and not await self._scope.ports.has_ended(ended, limit_s):
            names = ", ".join(sorted({call.name for call in self._run.under_way.below(self.call.id)}))
            _LOG.warning("%s still runs %g s after its program has ended", names, limit_s)
        return self._run.under_way.below(self.call.id)

    def tell_not_started(self, call: ToolCall, run_id: str) -> None:
        """Tells the observers of a call that its program gave up before it began."""
        scope = self._child_scope(run_id, self._scope.ports)
        message = f"{call.name!r} was not started: its program gave the call up, or ended first."
        result = ToolResult.failed("interrupted", message, data={"is_started": False}, call=call)
        tell(record_of(call, scope, result, time.time(), 0.0), scope)

    def _child_scope(self, run_id: str, ports: Ports) -> Scope:
        return replace(self._scope, ports=ports, run_id=run_id, run=self._run, result_limit_bytes=None, sink=None)
