"""READ THIS FIRST: the path of every call, top to bottom.

    recall -> resolve -> validate -> authorize -> begin -> [middleware( attempt )] -> postprocess -> settle -> tell

It is one coroutine that awaits only ports. `blocking` runs it without an event loop, and `asynchronous` awaits it. A
failure is a value; only a cancellation leaves the path as an exception. `recall`, `begin` and `settle` belong to the
ledger and cost nothing without one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any

from toolwire.definition.shape import StructuredValues
from toolwire.definition.tool import Tool
from toolwire.invocation.aside import beside, is_large
from toolwire.invocation.authorize import authorize
from toolwire.invocation.execute import attempt, attempt_composite, attempt_finish
from toolwire.invocation.fold import interrupted, with_repeatable_stop
from toolwire.invocation.inner.inside import Inside
from toolwire.invocation.judge import judged
from toolwire.invocation.middleware.onion import through
from toolwire.invocation.ports import Ledger
from toolwire.invocation.postprocess import first_page, postprocess, whole_text
from toolwire.invocation.record import begin, in_doubt, needs_start, recall, record_begun, settle
from toolwire.invocation.resolve import resolve
from toolwire.invocation.scope import Run, Scope, run_of
from toolwire.invocation.tell import taken, tell, tell_started, wants_starts
from toolwire.invocation.validate import Prepared, validate
from toolwire.permission.policy import Verdict
from toolwire.permission.seen_urls import urls_in
from toolwire.runtime.tracer import CallSpan, Tracer
from toolwire.vocabulary.calls import POLL_CALL, READ_RESULT, ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Step


def invoke(call: ToolCall, scope: Scope) -> Coroutine[Any, Any, Outcome]:
    """Runs one call and returns its outcome. A failing call never raises; a cancellation propagates and is reported."""
    # This function is not a coroutine itself, so that a call without observers pays for no extra coroutine.
    if scope.tracer is None and not scope.listeners:
        return _with_ledger(call, scope, None)
    return _with_observers(call, scope)


def _with_ledger(call: ToolCall, scope: Scope, watch: _Watch | None) -> Coroutine[Any, Any, Outcome]:
    """Adds the ledger, if the run has one."""
    if scope.ledger is None:
        return _through_steps(call, scope, None, watch=watch)
    return _on_record(call, scope, scope.ledger, watch)


class _Watch:
    """One call that a tracer follows or observers are told of."""

    __slots__ = ("begun", "is_from_record", "span")

    def __init__(self, span: CallSpan | None) -> None:
        self.span = span
        self.is_from_record = False
        self.begun: Tool | None = None
        """The tool, once it has begun."""

    def interrupted(self, call: ToolCall) -> ToolResult:
        """Returns the result that observers are told of a cancelled call."""
        if self.begun is not None:
            return with_repeatable_stop(interrupted(call), self.begun)
        data = stop_facts(is_started=False, may_repeat=True)
        message = f"{call.name!r} was interrupted before it began."
        return ToolResult.failed("interrupted", message, hint="It did not run.", data=data, call=call)

    def from_record(self) -> None:
        """Notes that nothing runs for the call: its result is on record."""
        self.is_from_record = True
        if self.span is not None:
            self.span.from_record()


async def _with_observers(call: ToolCall, scope: Scope) -> Outcome:
    """Adds the tracer and the observers, who hear of each call's start and end."""
    span = None if scope.tracer is None else _span(call, scope, scope.tracer)
    watch = _Watch(span)
    started_at, started = time.time(), time.perf_counter()
    try:
        if scope.ledger is None and wants_starts(scope):
            await _tell_started(call, scope)
        outcome = await _with_ledger(call, scope, watch)
    except BaseException:
        stopped = watch.interrupted(call)
        tell(call, scope, stopped, started_at, time.perf_counter() - started)
        if span is not None:
            span.ended(stopped)
        raise
    if isinstance(outcome, ToolResult):
        result, duration_s = outcome, time.perf_counter() - started
        ran = _as_run(call, result)
        if not scope.ports.is_blocking and is_large((call.arguments, outcome.data)):
            is_old = watch.is_from_record
            await scope.ports.aside(partial(tell, ran, scope, result, started_at, duration_s, is_from_record=is_old))
        else:
            tell(ran, scope, result, started_at, duration_s, is_from_record=watch.is_from_record)
    if span is not None:
        span.ended(outcome)
    if scope.events is not None:
        if scope.run is not None and isinstance(outcome, ToolResult):
            scope.run.stopping.ended[call.id] = outcome
        await taken(scope)
    return outcome


def _as_run(call: ToolCall, result: ToolResult) -> ToolCall:
    """Returns the call without the nulls that validation left out. A person's edits are told as the approval."""
    ran = result.call
    if ran is None or ran is call or len(ran.arguments) >= len(call.arguments):
        return call
    left = {name: value for name, value in call.arguments.items() if value is not None or name in ran.arguments}
    return ran if left == ran.arguments else call


async def _tell_started(call: ToolCall, scope: Scope) -> None:
    await beside(scope.ports, is_large(call.arguments), partial(tell_started, call, scope))
    if scope.events is not None:
        await taken(scope)


def _span(call: ToolCall, scope: Scope, tracer: Tracer) -> CallSpan:
    entry = scope.tools.find(call.name)
    # The description of `code_execution` is a list of all other tools.
    description = "" if entry is None or entry.composite is not None else entry.tool.description
    name = None if entry is None else entry.name
    return tracer.call(call, tool=name, description=description, caller=scope.caller, run_id=run_of(call, scope))


async def _on_record(call: ToolCall, scope: Scope, ledger: Ledger, watch: _Watch | None) -> Outcome:
    """Adds `recall` before the steps and `settle` behind them."""
    found = await beside(scope.ports, is_large(call.arguments), lambda: recall(call, scope, ledger))
    known = None if isinstance(found, ToolResult) else found[1]
    if isinstance(known, ToolResult):
        if watch is not None:
            watch.from_record()
        return known
    if watch is not None and wants_starts(scope):
        await _tell_started(call, scope)
    if isinstance(found, ToolResult):
        return found
    step, doubt = found[0], known
    try:
        outcome = await _through_steps(call, scope, doubt, step, watch)
    except BaseException:
        ledger.interrupted(step)
        raise
    return await settle(step, outcome, scope, ledger)


async def _through_steps(
    call: ToolCall,
    scope: Scope,
    doubt: InDoubtStep | None,
    step: Step | None = None,
    watch: _Watch | None = None,
) -> Outcome:
    """Takes the call from `resolve` to `postprocess`. A step that fails ends it."""
    end = scope.end
    refusal = _refusal(call, scope, doubt)
    if refusal is not None:
        return refusal
    entry = resolve(call, scope)
    if isinstance(entry, ToolResult):
        return entry if doubt is None else in_doubt(call, "there is no such tool now", doubt)
    ports = scope.ports
    is_big = not ports.is_blocking and is_large(call.arguments)
    if is_big:
        prepared = await ports.aside(partial(validate, call, entry, scope.states))
    else:
        prepared = validate(call, entry, scope.states)
    if isinstance(prepared, ToolResult):
        return prepared if doubt is None else in_doubt(call, "its tool does not take these arguments now", doubt)
    if end is not None and end.name == entry.name:
        # It has no effect but the end, so no rule, person or middleware is asked.
        return end.take(prepared)
    verdict = None if doubt is not None else await _judged_aside(prepared, scope) if is_big else judged(prepared, scope)
    # Most calls need no approval, so they pay for no coroutine that could wait for one.
    is_unasked = verdict is not None and verdict.effect == "auto"
    allowed = prepared if is_unasked else await authorize(prepared, scope, doubt)
    if not isinstance(allowed, Prepared):
        return allowed
    started_at = 0.0 if step is None else await _begun(allowed, step, scope, is_big)
    if isinstance(started_at, ToolResult):
        return started_at
    if watch is not None:
        watch.begun = entry.tool
    attempted = _attempted(allowed, scope, started_at)
    outcome = await (
        attempted if step is None or needs_start(entry.tool) else _with_record(attempted, allowed, scope, step)
    )
    if not isinstance(outcome, ToolResult):
        return outcome
    if scope.run is not None:
        has_read(allowed, outcome, scope.run)
    # A composite tool limits its own text, because only it knows which part must stay whole.
    limit_bytes = scope.result_limit_bytes if entry.composite is None else None
    result = postprocess(call, entry, outcome, limit_bytes)
    if result is not outcome and "is_cut" in result.metadata:
        result = await first_page(result, whole_text(outcome), entry, scope)
    return result if allowed.approval is None else result.with_metadata(approval=allowed.approval)


def _refusal(call: ToolCall, scope: Scope, doubt: InDoubtStep | None) -> ToolResult | None:
    """Returns the result of a call that does not run, because of a call before it: one that ended the turn or failed.

    A call that began before goes on, and so does one that a person was asked about.
    """
    end = scope.end
    if end is not None and end.call_id and doubt is None and scope.run is not None and call.id not in scope.run.asked:
        return end.refusal(call)
    if not scope.is_blocked:
        return None
    message = f"{call.name!r} was not run: the one before it in your reply had failed."
    data = stop_facts(is_started=False, may_repeat=True)
    return ToolResult.failed("interrupted", message, hint="Mend that one first.", data=data, call=call)


def has_read(prepared: Prepared, result: ToolResult, run: Run) -> None:
    """Adds the labels and URLs of a result to those that the run has read.

    The URLs of a tool that makes calls do not count: a model may have written them, and its calls' own results count.
    A background call's URLs count once.
    """
    tool = prepared.entry.tool
    run.read(tool.effects.labels)
    data = result.data
    if not result.success or prepared.is_composite or prepared.entry.name in _SAID_BEFORE:
        return
    # Most results hold no URL and must cost nothing.
    if (type(data) in _WITHOUT_URLS and not result.blocks) or (type(data) is str and "://" not in data):
        return
    run.saw(urls_in(result, prepared.call.arguments))


_WITHOUT_URLS = frozenset({int, float, bool, type(None)})
_SAID_BEFORE = frozenset({READ_RESULT, POLL_CALL})
"""Tools whose results were results of other calls."""


async def _judged_aside(prepared: Prepared, scope: Scope) -> Verdict:
    return await scope.ports.aside(lambda: judged(prepared, scope))


async def _begun(prepared: Prepared, step: Step, scope: Scope, is_big: bool) -> float | ToolResult:
    ports, ledger = scope.ports, scope.ledger
    assert ledger is not None
    return await ports.arrived(await beside(ports, is_big, lambda: begin(prepared, step, scope, ledger)))


def _attempted(prepared: Prepared, scope: Scope, started_at: float) -> Awaitable[Outcome]:
    """Runs the tool inside its middleware."""
    if scope.run is not None and not prepared.call.parent:
        scope.run.stopping.begun[prepared.call.id] = prepared.entry.tool
    middleware = (*scope.middleware, *prepared.entry.middleware)
    if not middleware:
        return _execute(prepared, scope, started_at)
    return through(middleware, prepared, scope, lambda inner, around: _execute(inner, around, started_at))


async def _with_record(attempted: Awaitable[Outcome], prepared: Prepared, scope: Scope, step: Step) -> Outcome:
    """Records that a stopped call had begun, if its start was not recorded."""
    try:
        return await attempted
    except BaseException:
        assert scope.ledger is not None
        record_begun(prepared, step, scope, scope.ledger)
        raise


def _execute(prepared: Prepared, scope: Scope, started_at: float) -> Awaitable[Outcome]:
    composite = prepared.entry.composite
    if composite is None:
        if type(prepared.validated.values) is StructuredValues:
            return attempt_finish(prepared, scope, invoke)
        return attempt(prepared, scope, invoke)
    return attempt_composite(composite, prepared, Inside(prepared.call, scope, invoke, started_at=started_at))
