"""Runs the tool's function. The one broad `except` of the path is here, around what is not ours."""

from __future__ import annotations

import time
from types import CoroutineType, GeneratorType
from typing import Any, cast

from toolwire.invocation.ports import TimedOut
from toolwire.invocation.scope import Path, Prepared, Scope
from toolwire.runtime.workers import WorkersExhausted
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import ToolResult

ERROR_LIMIT = 16_384
"""Characters of an exception's message that are kept: a traceback or a page of HTML, not a whole dump."""


async def attempt(prepared: Prepared, scope: Scope, invoke: Path) -> ToolResult:
    """What the tool made of it, or how it failed."""
    call, entry = prepared.call, prepared.entry
    tool, validated = entry.tool, prepared.validated
    if tool.function is None:
        return ToolResult.failed(
            "unavailable",
            f"{call.name!r} cannot be run: it is known by its schema alone.",
            hint="(For the owner: give function= when defining it.)",
            call=call,
        )
    limit_s = _time_left(entry.timeout_s, scope.deadline)
    if limit_s is not None and limit_s <= 0:
        return ToolResult.failed("timeout", f"{call.name!r} was not started: the run's time is over.", call=call)
    context = _context(prepared, scope, invoke) if tool.context_parameter else None
    if entry.gate is not None:
        await scope.ports.pass_gate(entry.gate)
    try:
        value = await scope.ports.execute(
            lambda: _collected(tool.invoke(validated, context)), is_async=tool.is_async, limit_s=limit_s
        )
    except TimedOut as late:
        return _late(call, late)
    except WorkersExhausted as exhausted:
        return ToolResult.failed("overloaded", f"{call.name!r} was not started: {exhausted}.", call=call)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is its result
        return raised(call, error)
    finally:
        if entry.gate is not None:
            entry.gate.leave()
    return fold(call, value)


def fold(call: ToolCall, value: Any) -> ToolResult:
    """The result that a returned value stands for."""
    if type(value) is ToolResult:
        return ToolResult(
            value.success,
            value.data,
            value.error,
            value.metadata,
            content=value.blocks,
            failure=value.failure,
            call=call,
        )
    if isinstance(value, CoroutineType):
        cast("CoroutineType[Any, Any, Any]", value).close()
        return ToolResult.failed(
            "invalid_result",
            f"{call.name!r} gave back a coroutine instead of a value.",
            hint="(For the owner: define it with `async def`, so that it is awaited.)",
            call=call,
        )
    return ToolResult(True, value, call=call)


def raised(call: ToolCall, error: BaseException) -> ToolResult:
    """The result of a call whose tool raised."""
    name = type(error).__name__
    # An exception's __str__ is the tool's code as well.
    try:
        message = str(error)
    except Exception:  # noqa: BLE001
        message = "(its message cannot be shown)"
    if len(message) > ERROR_LIMIT:
        half = ERROR_LIMIT // 2
        message = f"{message[:half]}\n[{len(message) - ERROR_LIMIT} characters left out]\n{message[-half:]}"
    return ToolResult.failed(
        "tool_error",
        f"{name}: {message}" if message else name,
        data={"exception": name, "message": message},
        exception=error,
        call=call,
    )


def _collected(value: Any) -> Any:
    """What a generator gives, as a list: its body is the tool's code and runs where the tool does."""
    return list(cast("GeneratorType[Any, Any, Any]", value)) if isinstance(value, GeneratorType) else value


def _late(call: ToolCall, late: TimedOut) -> ToolResult:
    if late.stopped:
        return ToolResult.failed(
            "timeout", f"{call.name!r} took longer than {late.limit_s:g} s and was stopped.", call=call
        )
    return ToolResult.failed(
        "unknown_outcome",
        f"{call.name!r} took longer than {late.limit_s:g} s and cannot be stopped; nobody waits for it any more.",
        call=call,
    )


def _time_left(timeout_s: float | None, deadline: float | None) -> float | None:
    if deadline is None:
        return timeout_s
    left = deadline - time.monotonic()
    return left if timeout_s is None else min(left, timeout_s)


def _context(prepared: Prepared, scope: Scope, invoke: Path) -> CallContext:
    ordinals = iter(range(1, 1 << 30))

    async def call_back(name: str, arguments: dict[str, Any]) -> ToolResult:
        child = ToolCall(name, arguments, id=f"{prepared.call.id}/{next(ordinals)}", parent=prepared.call.id)
        return await invoke(child, scope)

    return CallContext(call_id=prepared.call.id, caller=scope.caller, deadline=scope.deadline, call=call_back)
