"""READ THIS FIRST: the path of every call, top to bottom.

    recall -> resolve -> validate -> authorize -> begin -> [middleware( attempt )] -> postprocess -> settle -> tell

`invoke` starts it, `_take_steps` goes from `resolve` to `postprocess`, and `_leave_trail` is around the steps of a call
that has a ledger, a tracer or an observer: `recall`, `begin`, `settle` and `tell` are methods of its `Trail`. `prepare`
resolves, validates and judges at once. Each other step is a function in the file of its name.

The path awaits only ports. `blocking` runs it without an event loop, and `asynchronous` awaits it. A failure is a
value; only a cancellation, or a mistake of the host, leaves the path as an exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any

from toolwire.invocation.aside import needs_thread
from toolwire.invocation.authorize import authorize
from toolwire.invocation.execute import attempt
from toolwire.invocation.judge import judged
from toolwire.invocation.middleware.onion import through
from toolwire.invocation.postprocess import first_page, has_read, postprocess
from toolwire.invocation.record import in_doubt
from toolwire.invocation.resolve import resolve
from toolwire.invocation.scope import Scope
from toolwire.invocation.trail import Trail
from toolwire.invocation.validate import Prepared, validate
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep


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
    return await trail.tell(outcome)


async def _take_steps(call: ToolCall, scope: Scope, trail: Trail | None) -> Outcome:
    """Takes the call from `resolve` to `postprocess`. A step that fails ends it."""
    doubt = None if trail is None else trail.doubt
    is_large = needs_thread(call.arguments, scope.ports) if trail is None else trail.is_large
    if is_large:
        prepared = await scope.ports.aside(partial(prepare, call, scope, doubt))
    else:
        prepared = prepare(call, scope, doubt)
    if isinstance(prepared, ToolResult):
        return prepared
    # Most calls need no approval, so they pay for no coroutine that could wait for one.
    allowed = prepared if prepared.is_allowed else await authorize(prepared, scope, doubt)
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


def prepare(call: ToolCall, scope: Scope, doubt: InDoubtStep | None) -> Prepared | ToolResult:
    """Resolves, validates and judges the call. Returns the result of one that does not run.

    With a `doubt`, the call began before. It is judged when its owner has said whether it was done (`authorize`).
    """
    refusal = _refusal(call, scope, doubt)
    if refusal is not None:
        return refusal
    entry = resolve(call, scope)
    if isinstance(entry, ToolResult):
        return entry if doubt is None else in_doubt(call, "there is no such tool now", doubt)
    prepared = validate(call, entry, scope.states)
    if isinstance(prepared, ToolResult):
        return prepared if doubt is None else in_doubt(call, "its tool does not take these arguments now", doubt)
    if scope.end is not None and scope.end.name == entry.name:
        # It has no effect but the end, so no rule, person or middleware is asked.
        return scope.end.take(prepared)
    prepared.is_allowed = doubt is None and judged(prepared, scope).effect == "auto"
    return prepared


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


def _attempt_in_middleware(prepared: Prepared, scope: Scope) -> Awaitable[Outcome]:
    if scope.run is not None and not prepared.call.parent:
        scope.run.under_way.begun[prepared.call.id] = prepared.entry.tool
    layers = (*scope.middleware, *prepared.entry.middleware)
    return through(layers, prepared, scope, invoke) if layers else attempt(prepared, scope, invoke)
