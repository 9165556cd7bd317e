"""Runs the tool's function. The path's only broad `except` is here, around code that is not toolwire's."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from contextlib import aclosing, closing
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import count
from types import AsyncGeneratorType, GeneratorType
from typing import Any, cast

from toolwire.catalogue.entry import Amend, Composite
from toolwire.definition.shape import StructuredValues
from toolwire.definition.tool import Tool, Validated
from toolwire.invocation.amend import amended_result
from toolwire.invocation.fold import ALL_GIVEN, STOPPED, Produced, interrupted, raised, result_of
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.ports import Ports, Raised, TimedOut
from toolwire.invocation.record import recorded
from toolwire.invocation.scope import Inside, Path, Run, Scope, ended
from toolwire.invocation.tell import told_sink
from toolwire.invocation.validate import Prepared
from toolwire.runtime.workers import WorkersExhausted
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import DONE, CallContext, Interrupted
from toolwire.vocabulary.errors import BoundValueError, ForOperator, Unrepresentable
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import idempotency_key
from toolwire.vocabulary.values import digest


def attempt(prepared: Prepared, scope: Scope, invoke: Path) -> Awaitable[ToolResult]:
    """Runs the tool and returns its result, or the failure."""
    entry = prepared.entry
    # This function is not a coroutine itself, which saves one coroutine per call.
    running = _run(prepared, scope, invoke) if entry.gate is None else _run_alone(prepared, scope, invoke, entry.gate)
    return running if entry.amend is None else _amended(running, prepared.call, entry.amend, scope.ports)


async def _amended(running: Awaitable[ToolResult], call: ToolCall, amend: Amend, ports: Ports) -> ToolResult:
    return await amended_result(await running, call, amend, ports)


async def attempt_composite(composite: Composite, prepared: Prepared, inside: Inside) -> Outcome:
    """Runs a tool that consists of calls, and returns its outcome. `inside` leads its calls back to the path."""
    call, left_s = prepared.call, _time_left(None, inside.deadline)
    if left_s is not None and left_s <= 0:
        return _too_late(call)
    try:
        return await composite(prepared.validated, inside)
    except ForOperator as error:
        return ToolResult.failed("unavailable", f"{call.name!r} cannot run here: {error}", exception=error, call=call)
    except BoundValueError:
        raise
    except Exception as error:  # noqa: BLE001 - as for any other tool
        return raised(call, error)


async def _run_alone(prepared: Prepared, scope: Scope, invoke: Path, gate: Gate) -> ToolResult:
    outer = _HOLDERS.get()
    if gate.holder in outer:
        return _waits_for_itself(prepared)
    try:
        await scope.ports.pass_gate(gate, _time_left(None, scope.deadline))
    except TimedOut:
        return _too_late(prepared.call)
    gate.holder = prepared
    _HOLDERS.set((*outer, prepared))
    try:
        return await _run(prepared, scope, invoke)
    finally:
        gate.leave()
        _HOLDERS.set(outer)


_HOLDERS: ContextVar[tuple[Prepared, ...]] = ContextVar("holders", default=())
"""The enclosing calls that hold a gate, in this thread or in the threads that led to it."""


async def _run(prepared: Prepared, scope: Scope, invoke: Path) -> ToolResult:
    call, entry, ports = prepared.call, prepared.entry, scope.ports
    tool = entry.tool
    if tool.function is None:
        return _not_callable(call)
    limit_s = entry.timeout_s if scope.deadline is None else _time_left(entry.timeout_s, scope.deadline)
    if limit_s is not None and limit_s <= 0:
        return _too_late(call)
    deadline = None if limit_s is None else time.monotonic() + limit_s
    produced = context = None
    sink = told_sink(prepared, scope) if scope.listeners else scope.sink
    if tool.context_parameter is not None or sink is not None:
        produced = Produced(sink)
        context = _context(prepared, scope, invoke, deadline, produced)
    try:
        if limit_s is None and ports.is_blocking and not tool.is_async:
            # The port would do the same, at the cost of a coroutine.
            value = _called(tool, prepared.validated, context, ports)
        else:
            value = await ports.execute(
                partial(_called_later if tool.is_async else _called, tool, prepared.validated, context, ports),
                is_async=tool.is_async,
                limit_s=limit_s,
            )
        if not tool.is_async and hasattr(cast("object", type(value)), "__await__"):
            value = await ports.finish(_held(value), _time_left(None, deadline))
        if isinstance(value, GENERATORS):
            produced = produced or Produced(sink)
            value = await iterate(call, value, produced, ports, _time_left(None, deadline))
    except TimedOut as late:
        is_stopped = produced is not None and produced.stop()
        failed = _late(call, limit_s or late.limit_s, is_stopped or late.stopped)
        return failed if produced is None else produced.kept(failed)
    except WorkersExhausted as exhausted:
        message = f"{call.name!r} was not started: {exhausted}."
        return ToolResult.failed("overloaded", message, data={"is_started": False}, call=call)
    except BaseException:
        if produced is not None:
            produced.stop()
        raise
    if type(value) is Raised:
        failed = interrupted(call) if isinstance(value.error, Interrupted) else raised(call, value.error)
        return failed if produced is None else produced.kept(failed)
    return result_of(call, value) if produced is None else produced.result(call, value)


def _called(tool: Tool, validated: Validated, context: CallContext | None, _: Ports) -> Any:
    """Returns the tool's value, or `Raised`."""
    try:
        return tool.invoke(validated, context)
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Raised(error)


async def _called_later(tool: Tool, validated: Validated, context: CallContext | None, ports: Ports) -> Any:
    """Returns the awaited value, or `Raised`. An async generator is returned as it is, because it is not awaitable."""
    try:
        value = tool.invoke(validated, context)
        return value if isinstance(value, GENERATORS) else await value
    except PASSING:
        raise
    except BaseException as error:
        if ports.is_cancellation(error):
            raise
        return Raised(error)


async def _held(value: Awaitable[Any]) -> Any:
    """Awaits a value that a sync function returned, such as a lambda around a coroutine function."""
    try:
        return await value
    except BoundValueError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Raised(error)


def _not_callable(call: ToolCall) -> ToolResult:
    return owners_fault(
        "unavailable",
        f"{call.name!r} cannot be run: it is known by its schema alone.",
        for_owner="give function= when defining it.",
        call=call,
    )


def _too_late(call: ToolCall) -> ToolResult:
    return ToolResult.failed(
        "timeout",
        f"{call.name!r} was not started: the run's time is over.",
        hint="It did not run. Ask for less in one run.",
        call=call,
    )


def _waits_for_itself(prepared: Prepared) -> ToolResult:
    call, alone = prepared.call, prepared.entry.alone
    reason = "it runs one call at a time, and this call comes from inside such a call"
    mend = "register it with parallel=True, or call its function instead"
    if alone is not None:
        reason = f"it needs {alone!r} for itself, and this call comes from inside a call that holds it"
        mend = f"register one of them without alone={alone!r}, or call its function instead"
    message = f"{call.name!r} was not started: {reason}."
    return owners_fault("unavailable", message, for_owner=f"{mend}.", data={"is_started": False}, call=call)


def _late(call: ToolCall, limit_s: float, is_stopped: bool) -> ToolResult:
    limit = round(limit_s, 3)
    if is_stopped:
        return ToolResult.failed("timeout", f"{call.name!r} took longer than {limit:g} s and was stopped.", call=call)
    return ToolResult.failed(
        "unknown_outcome",
        f"{call.name!r} took longer than {limit:g} s and cannot be stopped; its result will be ignored.",
        call=call,
    )


def _time_left(timeout_s: float | None, deadline: float | None) -> float | None:
    if deadline is None:
        return timeout_s
    left = deadline - time.monotonic()
    return left if timeout_s is None else min(left, timeout_s)


def _context(
    prepared: Prepared, scope: Scope, invoke: Path, deadline: float | None, produced: Produced
) -> CallContext | None:
    if prepared.entry.tool.context_parameter is None:
        return None
    call, ordinals = prepared.call, count(1)
    # The calls that the tool makes belong to its run, and end with its deadline.
    # The tool's own frames are between them and the path, so none of them can wait longer than this process lives.
    inside = replace(
        scope,
        run_id=scope.run_id or call.id,
        run=scope.run or Run(),
        deadline=deadline,
        ledger=None,
        can_suspend=False,
        sink=None,
    )

    async def call_back(name: str, arguments: dict[str, Any]) -> ToolResult:
        child = ToolCall(name, arguments, id=f"{call.id}/{next(ordinals)}", parent=call.id)
        return ended(await invoke(child, inside))

    async def emit_later(part: Any) -> None:
        if not await produced.put_later(part, scope.ports):
            raise Interrupted

    def emit(part: Any) -> Awaitable[None]:
        if not produced.put(part):
            raise Interrupted
        return DONE

    return CallContext(
        call_id=call.id,
        caller=scope.caller,
        deadline=deadline,
        call=call_back,
        emit=emit_later if prepared.entry.tool.is_async else emit,
        idempotency_key=_key(prepared, scope),
        scope=inside,
    )


def _key(prepared: Prepared, scope: Scope) -> str:
    if prepared.idempotency_key or not prepared.entry.tool.effects.has_key:
        return prepared.idempotency_key
    run_id = scope.run_id or prepared.call.id if scope.ledger is None else scope.ledger.run_id
    return idempotency_key(run_id, prepared.call.id, digest(recorded(prepared, scope)))


async def attempt_finish(prepared: Prepared, scope: Scope, invoke: Path) -> Outcome:
    """Runs an extended tool. A success gets `response_msg` and `structured` in its metadata.

    A text that the function itself put into `response_msg` is kept.
    """
    result = await attempt(prepared, scope, invoke)
    if result.failure is not None:
        return result
    text = _text(result)
    # The next step turns a result without text into a failure.
    structured = cast("StructuredValues", prepared.validated.values).structured
    return result if text is None else result.with_metadata(response_msg=text, structured=structured)


def _text(result: ToolResult) -> str | None:
    own: Any = result.metadata.get("response_msg")
    if isinstance(own, str):
        return own
    try:
        return result.text
    except Unrepresentable:
        return None


GENERATORS: tuple[type[Any], ...] = (GeneratorType, AsyncGeneratorType)
"""The types that are iterated. A value of any other type is the tool's result."""

PASSING = (KeyboardInterrupt, GeneratorExit, BoundValueError)
"""Exceptions that never count as a tool's error: they end the program or the call's coroutine, or are for the host."""


async def iterate(call: ToolCall, generator: object, produced: Produced, ports: Ports, limit_s: float | None) -> Any:
    """Returns `ALL_GIVEN` or `STOPPED` once the parts are in `produced`, or `Raised`. The generator is then closed.

    The body of a generator is the tool's code, so all of it runs in the tool's thread.

    Raises:
        TimedOut: The generator did not end in time. In a thread, it ends when it next yields a part.
        WorkersExhausted: No worker was free.
    """
    if isinstance(generator, GeneratorType):
        pulled = partial(_pulled, cast("GeneratorType[Any, Any, Any]", generator), produced)
        return await ports.execute(pulled, is_async=False, limit_s=limit_s)
    if ports.is_blocking:
        return owners_fault(
            "invalid_result",
            f"{call.name!r} returned an async generator instead of a value.",
            for_owner="write it with `async def` and `yield`, or call it from an event loop.",
            call=call,
        )
    later = partial(_pulled_later, cast("AsyncGeneratorType[Any, Any]", generator), produced, ports)
    return await ports.execute(later, is_async=True, limit_s=limit_s)


def _pulled(generator: GeneratorType[Any, Any, Any], produced: Produced) -> Any:
    try:
        with closing(generator):
            for value in generator:
                if not produced.put(value, is_yielded=True):
                    return STOPPED
        return ALL_GIVEN
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - any exception of a tool is its result
        return Raised(error)


async def _pulled_later(generator: AsyncGeneratorType[Any, Any], produced: Produced, ports: Ports) -> Any:
    try:
        async with aclosing(generator):
            async for value in generator:
                if not await produced.put_later(value, ports, is_yielded=True):
                    return STOPPED
        return ALL_GIVEN
    except PASSING:
        raise
    except BaseException as error:
        if ports.is_cancellation(error):
            raise
        return Raised(error)
