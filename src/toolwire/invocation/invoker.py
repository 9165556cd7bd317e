"""READ THIS FIRST: the path of every call, top to bottom.

    recall -> resolve -> validate -> authorize -> begin -> [middleware( attempt )] -> postprocess -> settle -> tell

`invoke` starts it, `_take_steps` goes from `resolve` to `postprocess`, and `_leave_trail` is around the steps of a call
that has a ledger, a tracer or an observer: `recall`, `begin`, `settle` and `tell` are methods of its `Trail`. `prepare`
resolves, validates and judges at once; `take_up` does it for a call that began before and has no end on record. Each
other step is a function in the file of its name.

The path awaits only ports. `blocking` runs it without an event loop, and `asynchronous` awaits it. A failure is a
value; only a cancellation, or a mistake of the host, leaves the path as an exception.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from toolwire.invocation.authorize import authorize, take_up
from toolwire.invocation.execute import attempt
from toolwire.invocation.fold import interruption_result, with_repeatable_stop
from toolwire.invocation.judge import judge_call
from toolwire.invocation.middleware.onion import through
from toolwire.invocation.ports.offload import needs_thread, offload_if
from toolwire.invocation.ports.ports import CallRecord, Ledger
from toolwire.invocation.postprocess import first_page, has_read, postprocess
from toolwire.invocation.record import begin, is_divergence, recall, record_begun
from toolwire.invocation.resolve import resolve
from toolwire.invocation.scope import Scope, run_of
from toolwire.invocation.tell import flush_events, record_of, tell, tell_started
from toolwire.invocation.validate import Prepared, validate
from toolwire.runtime.tracer import CallSpan, Tracer
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Step


def invoke(call: ToolCall, scope: Scope) -> Coroutine[Any, Any, Outcome]:
    """Runs one call and returns its outcome. A failing call never raises; a cancellation propagates and is reported."""
    # This function is not a coroutine itself, so that a call that leaves no trail pays for no extra coroutine.
    if scope.ledger is None and scope.tracer is None and not scope.listeners:
        return _take_steps(call, scope, None)
    return _leave_trail(call, scope)


async def _leave_trail(call: ToolCall, scope: Scope) -> Outcome:
    """Adds `recall` before the steps, and `settle` and `tell` behind them."""
    trail = Trail(call, scope)
    try:
        outcome = await trail.recall()
        if outcome is None:
            outcome = await trail.settle(await _take_steps(call, scope, trail))
    except BaseException:
        trail.break_off()
        raise
    if trail.is_last and scope.run is not None and isinstance(outcome, ToolResult):
        scope.run.hold_last(trail, outcome)
        return outcome
    return await trail.tell(outcome)


async def _take_steps(call: ToolCall, scope: Scope, trail: Trail | None) -> Outcome:
    """Takes the call from `resolve` to `postprocess`. A step that fails ends it."""
    is_large = needs_thread(call.arguments, scope.ports) if trail is None else trail.is_large
    if trail is not None and trail.doubt is not None:
        allowed = await take_up(call, scope, trail.doubt, is_large=is_large)
    else:
        allowed = await scope.ports.offload(partial(prepare, call, scope)) if is_large else prepare(call, scope)
        # Most calls need no approval, so they pay for no coroutine that could wait for one.
        if isinstance(allowed, Prepared) and not allowed.is_allowed:
            allowed = await authorize(allowed, scope)
    if not isinstance(allowed, Prepared):
        return allowed
    refusal = None if trail is None else await trail.begin(allowed)
    if refusal is not None:
        return refusal
    outcome = await _attempt_in_middleware(allowed, scope)
    if not isinstance(outcome, ToolResult):
        return outcome
    if scope.run is not None:
        has_read(allowed, outcome, scope.run)
    # A composite tool limits its own text, because only it knows which part must stay whole.
    limit_bytes = scope.result_limit_bytes if allowed.entry.composite is None else None
    result = postprocess(call, allowed.entry, outcome, limit_bytes)
    if result is not outcome and "is_cut" in result.metadata:
        result = await first_page(result, outcome, allowed.entry, scope)
    return result if allowed.approval is None else result.with_metadata(approval=allowed.approval)


def prepare(call: ToolCall, scope: Scope) -> Prepared | ToolResult:
    """Resolves, validates and judges the call. Returns the result of one that does not run."""
    end = scope.end
    if end is not None and (refusal := end.refusal(call, scope)) is not None:
        return refusal
    entry = resolve(call, scope)
    if isinstance(entry, ToolResult):
        return entry
    prepared = validate(call, entry, scope.states)
    if isinstance(prepared, ToolResult):
        return prepared
    # A call that ends the turn has no other effect, so no rule, person or middleware is asked.
    if end is not None and (ended := end.take(prepared)) is not None:
        return ended
    prepared.is_allowed = judge_call(prepared, scope).effect == "auto"
    return prepared


def _attempt_in_middleware(prepared: Prepared, scope: Scope) -> Awaitable[Outcome]:
    if scope.run is not None and not prepared.call.parent:
        scope.run.under_way.begun[prepared.call.id] = prepared.entry.tool
    layers = (*scope.middleware, *prepared.entry.middleware)
    return through(layers, prepared, scope, invoke) if layers else attempt(prepared, scope, invoke)


class Trail:
    """The step of one call in the ledger, its span, and what observers hear of it.

    A call has a trail if there is a ledger, a tracer or an observer.
    """

    __slots__ = (
        *("_begun", "_call", "_is_from_record", "_scope", "_span", "_started", "_started_at", "_step"),
        *("_record", "_settled", "doubt", "is_large", "is_last"),
    )

    def __init__(self, call: ToolCall, scope: Scope) -> None:
        self._call = call
        self._scope = scope
        self._step: Step | None = None
        """The call in the ledger, until its end is recorded; None without a ledger."""
        self._begun: Prepared | None = None
        """The call, once its tool may run."""
        self._is_from_record = False
        self._settled: Future[ToolResult] | None = None
        """The record of its end, once it is on its way."""
        self._record: CallRecord | None = None
        """The call as observers receive it, once its end was recorded."""
        self.is_last = False
        """True if its end is recorded with the end of its turn, and told after that."""
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
            found = await offload_if(scope.ports, self.is_large, partial(recall, call, scope, scope.ledger))
            if isinstance(found, ToolResult):
                refusal = found
            else:
                step, known = found
                if isinstance(known, ToolResult):
                    return self._take_from_record(known)
                self._step, self.doubt = step, known
        if scope.listeners:
            await offload_if(scope.ports, self.is_large, partial(tell_started, call, scope))
            await flush_events(scope)
        return refusal

    def _take_from_record(self, known: ToolResult) -> ToolResult:
        self._is_from_record = True
        self._count_end()
        if self._span is not None:
            self._span.from_record()
        self._measure(known)
        return known

    async def begin(self, prepared: Prepared) -> ToolResult | None:
        """Records that the call is about to run. Returns a result if it must not."""
        scope, step = self._scope, self._step
        if scope.ledger is not None and step is not None:
            begun = await offload_if(scope.ports, self.is_large, partial(begin, prepared, step, scope, scope.ledger))
            answer = await scope.ports.wait_for(begun) if isinstance(begun, Future) else begun
            if isinstance(answer, ToolResult):
                return answer
            prepared.started_at = answer or 0.0
        self._begun = prepared
        return None

    async def settle(self, outcome: Outcome) -> Outcome:
        """Records the outcome, and returns the one that counts when it is durable."""
        is_last = self._count_end()
        if not isinstance(outcome, ToolResult):
            return outcome
        self._measure(outcome)
        scope, step = self._scope, self._step
        # A run that diverged keeps its record unchanged: nothing after the divergence counts.
        if scope.ledger is None or step is None or is_divergence(outcome):
            return outcome
        self._step, self.is_last = None, is_last
        settled = await offload_if(scope.ports, self.is_large, partial(self._settle, scope.ledger, step, outcome))
        if isinstance(settled, ToolResult):
            return settled
        self._settled = settled
        return await scope.ports.wait_for(settled)

    def _settle(self, ledger: Ledger, step: Step, result: ToolResult) -> Future[ToolResult] | ToolResult:
        self._record = self._record_of(result)
        settle = ledger.settle_with_end if self.is_last else ledger.settle
        return settle(step, result, self._record)

    def _count_end(self) -> bool:
        """Counts one of the turn's own calls as ended. True if it was the last one."""
        run = self._scope.run
        if run is None or self._call.parent:
            return False
        run.open_calls -= 1
        return run.open_calls == 0

    def break_off(self) -> None:
        """Records and tells that an exception ended the call: a cancellation, or a mistake of the host."""
        call, scope, begun, step = self._call, self._scope, self._begun, self._step
        if scope.ledger is not None and step is not None:
            if begun is not None:
                record_begun(begun, step, scope, scope.ledger)
            scope.ledger.abandon(step)
        if (ended := self._find_recorded_end()) is not None:
            result = ended
            if scope.run is not None:
                scope.run.under_way.ended[call.id] = ended
        elif begun is not None:
            result = with_repeatable_stop(interruption_result(call), begun.entry.tool)
        else:
            data = stop_facts(is_started=False, may_repeat=True)
            message = f"{call.name!r} was interrupted before it began."
            result = ToolResult.failed("interrupted", message, hint="It did not run.", data=data, call=call)
        self._tell(result)
        if self._span is not None:
            self._span.end(result)

    def _find_recorded_end(self) -> ToolResult | None:
        """Returns the result of a call that had ended, and only waited until that was on record; None of any other."""
        settled, record = self._settled, self._record
        if settled is None or record is None or (settled.done() and (settled.cancelled() or settled.exception())):
            self._record = None
            return None
        return record.result

    async def tell(self, outcome: Outcome) -> Outcome:
        """Tells observers the end of the call and ends its span. Returns the outcome when a reader has taken it.

        A call that waits for a person has not ended for observers.
        """
        scope = self._scope
        if isinstance(outcome, ToolResult):
            await offload_if(scope.ports, self.is_large, partial(self._tell, outcome))
        if self._span is not None:
            self._span.end(outcome)
        if scope.events is not None:
            if scope.run is not None and isinstance(outcome, ToolResult):
                scope.run.under_way.ended[self._call.id] = outcome
            await flush_events(scope)
        return outcome

    def _measure(self, result: ToolResult) -> None:
        if not self.is_large:
            self.is_large = needs_thread((result.data, result.blocks, result.error), self._scope.ports)

    def _tell(self, result: ToolResult) -> None:
        record = self._record or self._record_of(result)
        # The ledger may have replaced the result, such as one that is too long for the run.
        record.result = result
        tell(record, self._scope)

    def _record_of(self, result: ToolResult) -> CallRecord:
        call, duration_s = _without_nulls_left_out(self._call, result), time.perf_counter() - self._started
        is_from_record = self._is_from_record
        return record_of(call, self._scope, result, self._started_at, duration_s, is_from_record=is_from_record)


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
