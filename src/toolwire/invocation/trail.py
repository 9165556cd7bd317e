"""The trail of one call: its step in the ledger, its span, and what observers hear of it."""

from __future__ import annotations

import time
from concurrent.futures import Future
from functools import partial

from toolwire.invocation.aside import beside, needs_thread
from toolwire.invocation.fold import interrupted, with_repeatable_stop
from toolwire.invocation.record import begin, is_divergence, recall, record_begun
from toolwire.invocation.scope import Scope, run_of
from toolwire.invocation.tell import taken, tell, tell_started
from toolwire.invocation.validate import Prepared
from toolwire.runtime.tracer import CallSpan, Tracer
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Step


class Trail:
    """The step of one call in the ledger, its span, and what observers hear of it.

    A call has a trail if there is a ledger, a tracer or an observer.
    """

    __slots__ = (
        *("_begun", "_call", "_is_from_record", "_scope", "_span", "_started", "_started_at", "_step"),
        *("doubt", "is_large"),
    )

    def __init__(self, call: ToolCall, scope: Scope) -> None:
        self._call = call
        self._scope = scope
        self._step: Step | None = None
        """The call in the ledger, until its end is recorded; None without a ledger."""
        self._begun: Prepared | None = None
        """The call, once its tool may run."""
        self._is_from_record = False
        self.doubt: InDoubtStep | None = None
        """The earlier attempt at the call whose end is not on record."""
        self.is_large = needs_thread(call.arguments, scope.ports)
        """True if work on the arguments, and later on the result, must leave the event loop."""
        self._span = None if scope.tracer is None else _open_span(call, scope, scope.tracer)
        self._started_at, self._started = time.time(), time.perf_counter()

    async def recall(self) -> ToolResult | None:
        """Returns the recorded result of the call, or the failure of one that cannot run. None: the call has to run.

        Observers hear that a call arrived, unless its result is on record.
        """
        call, scope, refusal = self._call, self._scope, None
        if scope.ledger is not None:
            found = await beside(scope.ports, self.is_large, partial(recall, call, scope, scope.ledger))
            if isinstance(found, ToolResult):
                refusal = found
            else:
                step, known = found
                if isinstance(known, ToolResult):
                    return self._take_from_record(known)
                self._step, self.doubt = step, known
        if scope.listeners:
            await beside(scope.ports, self.is_large, partial(tell_started, call, scope))
            await taken(scope)
        return refusal

    def _take_from_record(self, known: ToolResult) -> ToolResult:
        self._is_from_record = True
        if self._span is not None:
            self._span.from_record()
        self._measure(known)
        return known

    async def begin(self, prepared: Prepared) -> ToolResult | None:
        """Records that the call is about to run. Returns a result if it must not."""
        scope, step = self._scope, self._step
        if scope.ledger is not None and step is not None:
            begun = await beside(scope.ports, self.is_large, partial(begin, prepared, step, scope, scope.ledger))
            answer = await scope.ports.arrived(begun) if isinstance(begun, Future) else begun
            if isinstance(answer, ToolResult):
                return answer
            prepared.started_at = answer or 0.0
        self._begun = prepared
        return None

    async def settle(self, outcome: Outcome) -> Outcome:
        """Records the outcome, and returns the one that counts when it is durable."""
        if not isinstance(outcome, ToolResult):
            return outcome
        self._measure(outcome)
        scope, step = self._scope, self._step
        # A run that diverged keeps its record unchanged: nothing after the divergence counts.
        if scope.ledger is None or step is None or is_divergence(outcome):
            return outcome
        self._step = None
        settled = await beside(scope.ports, self.is_large, partial(scope.ledger.settle, step, outcome))
        return await scope.ports.arrived(settled)

    def break_off(self) -> None:
        """Records and tells that an exception ended the call: a cancellation, or a mistake of the host."""
        call, scope, begun, step = self._call, self._scope, self._begun, self._step
        if scope.ledger is not None and step is not None:
            if begun is not None:
                record_begun(begun, step, scope, scope.ledger)
            scope.ledger.interrupted(step)
        if begun is not None:
            result = with_repeatable_stop(interrupted(call), begun.entry.tool)
        else:
            data = stop_facts(is_started=False, may_repeat=True)
            message = f"{call.name!r} was interrupted before it began."
            result = ToolResult.failed("interrupted", message, hint="It did not run.", data=data, call=call)
        self._tell(result, time.perf_counter() - self._started)
        if self._span is not None:
            self._span.ended(result)

    async def tell(self, outcome: Outcome) -> Outcome:
        """Tells observers the end of the call and ends its span. Returns the outcome when a reader has taken it.

        A call that waits for a person has not ended for observers.
        """
        scope = self._scope
        if isinstance(outcome, ToolResult):
            duration_s = time.perf_counter() - self._started
            await beside(scope.ports, self.is_large, partial(self._tell, outcome, duration_s))
        if self._span is not None:
            self._span.ended(outcome)
        if scope.events is not None:
            if scope.run is not None and isinstance(outcome, ToolResult):
                scope.run.under_way.ended[self._call.id] = outcome
            await taken(scope)
        return outcome

    def _measure(self, result: ToolResult) -> None:
        if not self.is_large:
            self.is_large = needs_thread((result.data, result.blocks, result.error), self._scope.ports)

    def _tell(self, result: ToolResult, duration_s: float) -> None:
        call = _without_nulls_left_out(self._call, result)
        tell(call, self._scope, result, self._started_at, duration_s, is_from_record=self._is_from_record)


def _without_nulls_left_out(call: ToolCall, result: ToolResult) -> ToolCall:
    """Returns the call without the nulls that validation left out. A person's edits are told as the approval."""
    ran = result.call
    if ran is None or ran is call or len(ran.arguments) >= len(call.arguments):
        return call
    left = {name: value for name, value in call.arguments.items() if value is not None or name in ran.arguments}
    return ran if left == ran.arguments else call


def _open_span(call: ToolCall, scope: Scope, tracer: Tracer) -> CallSpan:
    entry = scope.tools.find(call.name)
    # The description of `code_execution` is a list of all other tools.
    description = "" if entry is None or entry.composite is not None else entry.tool.description
    name = None if entry is None else entry.name
    return tracer.call(call, tool=name, description=description, caller=scope.caller, run_id=run_of(call, scope))
