"""READ THIS FIRST: the path of every call, top to bottom.

    resolve -> validate -> authorize -> attempt -> postprocess -> tell

It is one coroutine that awaits ports only, so that `blocking` runs it without an event loop and `asynchronous`
awaits it. A failure is a value; only a cancellation leaves it as an exception.
"""

from __future__ import annotations

import time

from toolwire.invocation.authorize import authorize
from toolwire.invocation.execute import attempt, attempt_composite
from toolwire.invocation.postprocess import postprocess
from toolwire.invocation.resolve import resolve
from toolwire.invocation.scope import Inside, Prepared, Scope
from toolwire.invocation.tell import tell
from toolwire.invocation.validate import validate
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


async def invoke(call: ToolCall, scope: Scope) -> ToolResult:
    """How the call ended. Never raises for a call that fails; a cancellation passes, and is told of."""
    if not scope.observers:
        return await _walk(call, scope)
    started_at, started = time.time(), time.perf_counter()
    try:
        result = await _walk(call, scope)
    except BaseException:
        interrupted = ToolResult.failed("interrupted", f"{call.name!r} was interrupted.", call=call)
        tell(call, scope, interrupted, started_at, time.perf_counter() - started)
        raise
    tell(call, scope, result, started_at, time.perf_counter() - started)
    return result


async def _walk(call: ToolCall, scope: Scope) -> ToolResult:
    entry = resolve(call, scope)
    if isinstance(entry, ToolResult):
        return entry
    prepared = validate(call, entry)
    if isinstance(prepared, ToolResult):
        return prepared
    allowed = await authorize(prepared, scope)
    if isinstance(allowed, ToolResult):
        return allowed
    result = await _run(allowed, scope)
    # A composite tool bounds its own text: only it knows which part must stay whole.
    limit_bytes = scope.result_limit_bytes if entry.composite is None else None
    return postprocess(call, entry, result, limit_bytes)


async def _run(prepared: Prepared, scope: Scope) -> ToolResult:
    composite = prepared.entry.composite
    if composite is None:
        return await attempt(prepared, scope, invoke)
    return await attempt_composite(composite, prepared, Inside(prepared.call, scope, invoke))
