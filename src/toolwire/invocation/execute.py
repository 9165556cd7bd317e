"""Runs the tool's function, inside a broad `except`: it is not toolwire's code."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from concurrent.futures import Future
from contextlib import aclosing, closing
from contextvars import ContextVar
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any, cast

from toolwire.catalogue.entry import Composite
from toolwire.definition.shape import StructuredValues
from toolwire.definition.tool import Tool, Validated
from toolwire.definition.unreadable_returns import READABLE
from toolwire.invocation.asking.ends import failure_of_declined, without_context
from toolwire.invocation.asking.question import Questions
from toolwire.invocation.asking.tool_context import context_of
from toolwire.invocation.finalise import finalise_result
from toolwire.invocation.fold import (
    ALL_GIVEN,
    READY,
    STOPPED,
    CallOutput,
    failure_of_exception,
    interruption_result,
    is_interruption,
    result_of,
    stop_producing,
    with_earlier_content,
    with_repeatable_stop,
)
from toolwire.invocation.inner.inner_calls import InnerCalls
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.ports import Ports, Raised, TimedOut
from toolwire.invocation.postprocess import check_promise
from toolwire.invocation.scope import Path, Scope
from toolwire.invocation.tell import sink_for_call
from toolwire.invocation.validate import Prepared
from toolwire.runtime.own_cancellation import is_cancelled_error, is_from_caller
from toolwire.runtime.workers import WorkersExhausted
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import BoundValueError, ForOperator, Unrepresentable
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.foreign.plain_forms import read_iterator
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE
from toolwire.vocabulary.questions import InputRequired, QuestionDeclined
from toolwire.vocabulary.results import Outcome, Pending, ToolResult


def attempt(prepared: Prepared, scope: Scope, invoke: Path) -> Awaitable[Outcome]:
    """Runs the tool and returns its result, or the failure. The call is pending while a question of the tool waits.

    `invoke` leads the calls of the tool back to the path.
    """
    entry, tool = prepared.entry, prepared.entry.tool
    # This function is not a coroutine itself, which saves one coroutine per call.
    if entry.composite is not None:
        inner = InnerCalls(prepared.call, scope, invoke, started_at=prepared.started_at)
        return _run_composite(entry.composite, prepared, inner)
    if tool.context_parameter is None and not tool.asker:
        running = _once(prepared, scope, invoke, None)
    else:
        running = _with_questions(prepared, scope, invoke)
    is_extended = type(prepared.validated.values) is StructuredValues
    return _complete(running, prepared, scope) if tool.is_outside or entry.finalise or is_extended else running


async def _complete(running: Awaitable[Outcome], prepared: Prepared, scope: Scope) -> Outcome:
    """Checks the result of an outside tool, lets the owner finalise it, and adds the values of an extended tool."""
    result, entry, values = await running, prepared.entry, prepared.validated.values
    if isinstance(result, Pending):
        return result
    if entry.tool.is_outside:
        result = await check_promise(result, prepared, scope)
    if entry.finalise is not None:
        result = await finalise_result(result, prepared.call, entry.finalise, scope.ports)
    return _with_response(result, values) if type(values) is StructuredValues else result


def _once(prepared: Prepared, scope: Scope, invoke: Path, questions: Questions | None) -> Awaitable[Outcome]:
    gate = prepared.entry.gate
    if gate is None:
        return _run_tool(prepared, scope, invoke, questions)
    return _run_alone(prepared, scope, invoke, gate, questions)


async def _with_questions(prepared: Prepared, scope: Scope, invoke: Path) -> Outcome:
    """Runs a tool that can ask. It is called again as often as it returns questions."""
    questions = Questions(prepared, scope)
    await questions.resume()
    while questions.outcome is None:
        try:
            result = await _once(prepared, scope, invoke, questions)
        finally:
            questions.stop()
        await questions.end_calls()
        if questions.error is not None:
            raise questions.error
        if questions.outcome is None:
            wanted = questions.wanted
            if wanted is None:
                return result
            questions.wanted = None
            await questions.require(wanted)
    return questions.outcome


async def _run_composite(composite: Composite, prepared: Prepared, inner: InnerCalls) -> Outcome:
    """Runs a tool that consists of calls, and returns its outcome."""
    call, left_s = prepared.call, _time_left(None, inner.deadline)
    if left_s is not None and left_s <= 0:
        return _too_late(call, None)
    try:
        return await composite(prepared.validated, inner)
    except ForOperator as error:
        return ToolResult.failed("unavailable", f"{call.name!r} cannot run here: {error}", exception=error, call=call)
    except BoundValueError:
        raise
    except Exception as error:  # noqa: BLE001 - as for any other tool
        return failure_of_exception(call, error)


async def _run_alone(
    prepared: Prepared, scope: Scope, invoke: Path, gate: Gate, questions: Questions | None
) -> ToolResult:
    outer = _HOLDERS.get()
    if gate.holder in outer:
        return _waits_for_itself(prepared)
    try:
        await scope.ports.pass_gate(gate, _time_left(None, scope.deadline))
    except TimedOut:
        return _too_late(prepared.call, scope)
    gate.holder = prepared
    _HOLDERS.set((*outer, prepared))
    try:
        return await _run_tool(prepared, scope, invoke, questions)
    finally:
        gate.leave()
        _HOLDERS.set(outer)


_HOLDERS: ContextVar[tuple[Prepared, ...]] = ContextVar("holders", default=())
"""The enclosing calls that hold a gate, in this thread or in the threads that led to it."""


async def _run_tool(prepared: Prepared, scope: Scope, invoke: Path, questions: Questions | None) -> ToolResult:
    call, entry, ports = prepared.call, prepared.entry, scope.ports
    tool = entry.tool
    refusal = _owners_refusal(prepared, scope)
    if refusal is not None:
        return refusal
    limit_s = entry.timeout_s if scope.deadline is None else _time_left(entry.timeout_s, scope.deadline)
    if limit_s is not None and limit_s <= 0:
        return _too_late(call, scope)
    deadline = None if limit_s is None else time.monotonic() + limit_s
    sink = sink_for_call(prepared, scope) if scope.listeners else scope.sink
    produced = None if questions is None and sink is None else CallOutput(sink, is_read=scope.sink is not None)
    context = clock = None
    if questions is not None and produced is not None:
        clock = questions.clock
        context = context_of(prepared, scope, invoke, deadline, produced, questions)
    try:
        is_quick = tool.gives_future and (context is None or bool(tool.asker))
        if (limit_s is None and ports.is_blocking and not tool.is_async) or is_quick:
            # The port would cost a coroutine. A tool that gives a future blocks only where it emits to its own context.
            value = _call_tool(tool, prepared.validated, context, deadline)
        elif tool.is_async:
            work = _call_async_tool(tool, prepared.validated, context, deadline, ports)
            value = await ports.finish(work, limit_s, clock)
        else:
            work = partial(_call_tool, tool, prepared.validated, context, deadline)
            value = await ports.execute(work, limit_s, clock)
        if type(value) not in READY:
            if isinstance(value, Future) or (not tool.is_async and hasattr(cast("object", type(value)), "__await__")):
                value = await _await_within_limit(value, ports, _time_left(None, deadline), questions)
            if isinstance(value, GENERATORS):
                produced = produced or CallOutput(sink, is_read=scope.sink is not None)
                value = await iterate(call, value, produced, ports, _time_left(None, deadline), clock)
    except TimedOut as late:
        is_stopped = stop_producing(produced) or late.stopped
        return with_repeatable_stop(
            with_earlier_content(_late(call, limit_s or late.limit_s, is_stopped), produced), tool
        )
    except WorkersExhausted as exhausted:
        message = f"{call.name!r} was not started: {exhausted}."
        return ToolResult.failed("overloaded", message, data={"is_started": False}, call=call)
    except BaseException:
        stop_producing(produced)
        raise
    return with_repeatable_stop(_result_of_value(call, value, produced, questions), tool)


def _result_of_value(
    call: ToolCall, value: Any, produced: CallOutput | None, questions: Questions | None
) -> ToolResult:
    if type(value) is Raised:
        return with_earlier_content(_failure_for_error(call, value.error), produced)
    if type(value) is InputRequired:
        return without_context(call) if questions is None else questions.wants(value)
    return result_of(call, value) if produced is None else produced.result(call, value)


def _failure_for_error(call: ToolCall, error: BaseException) -> ToolResult:
    if is_interruption(error):
        return interruption_result(call)
    return (
        failure_of_declined(call, error) if isinstance(error, QuestionDeclined) else failure_of_exception(call, error)
    )


def _await_within_limit(value: Any, ports: Ports, left_s: float | None, questions: Questions | None) -> Awaitable[Any]:
    if isinstance(value, Future):
        return ports.await_tool_future(cast("Future[Any]", value), left_s, questions and questions.clock)
    return ports.finish(_await_value(value, questions), left_s)


def _call_tool(tool: Tool, validated: Validated, context: CallContext | None, deadline: float | None) -> Any:
    """Returns the tool's value, or `Raised`."""
    outer = CALL_DEADLINE.get()
    CALL_DEADLINE.set(deadline)
    try:
        value = tool.invoke(validated, context)
        # An iterator runs the tool's code, so it is read here.
        return value if type(value) in READY else read_iterator(value)
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Raised(error)
    finally:
        CALL_DEADLINE.set(outer)


async def _call_async_tool(
    tool: Tool, validated: Validated, context: CallContext | None, deadline: float | None, ports: Ports
) -> Any:
    """Returns the awaited value, or `Raised`. An async generator is returned as it is, because it is not awaitable."""
    outer = CALL_DEADLINE.get()
    CALL_DEADLINE.set(deadline)
    try:
        value = tool.invoke(validated, context)
        return value if isinstance(value, GENERATORS) else read_iterator(await value)
    except PASSING:
        raise
    except BaseException as error:
        if ports.is_cancellation(error):
            raise
        return Raised(error)
    finally:
        # Not by a token: a coroutine may be closed in another context.
        CALL_DEADLINE.set(outer)


async def _await_value(value: Awaitable[Any], questions: Questions | None) -> Any:
    """Awaits a value that a sync function returned, such as a lambda around a coroutine function."""
    if questions is not None:
        questions.is_async = True
    try:
        return await value
    except BoundValueError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
        return Raised(error)
    except BaseException as error:
        # The value is awaited in an event loop with both drivers.
        if not is_cancelled_error(error) or is_from_caller(error):
            raise
        return Raised(error)


def _owners_refusal(prepared: Prepared, scope: Scope) -> ToolResult | None:
    """Returns the failure of a call whose tool cannot run, or has a result that no model could read."""
    call, entry, returns = prepared.call, prepared.entry, prepared.entry.tool.unreadable
    if entry.tool.function is None:
        message = f"{call.name!r} cannot be run: it is known by its schema alone."
        return owners_fault("unavailable", message, for_owner="give function= when defining it.", call=call)
    # Between the tool and the model, its owner's code could make another value of its result.
    if returns is None or not returns.is_whole or entry.finalise is not None or entry.middleware or scope.middleware:
        return None
    return owners_fault(
        "unavailable",
        f"{call.name!r} was not run: it returns {returns.name}, which cannot be shown.",
        for_owner=f"{READABLE}; or give postprocess_func or a middleware.",
        data={"is_started": False},
        call=call,
    )


def _too_late(call: ToolCall, scope: Scope | None) -> ToolResult:
    if scope is not None and scope.ledger is not None and scope.ledger.steps_below(call.id):
        message = f"{call.name!r} began before, and did not go on: the run's time is over."
        return ToolResult.failed(
            "unknown_outcome", message, data=stop_facts(is_started=True, may_repeat=False), call=call
        )
    return ToolResult.failed(
        "timeout",
        f"{call.name!r} was not started: the run's time is over.",
        hint="It did not run. Ask for less in one run.",
        data=stop_facts(is_started=False, may_repeat=True),
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
    limit, data = round(limit_s, 3), stop_facts(is_started=True, may_repeat=False)
    if is_stopped:
        message = f"{call.name!r} took longer than {limit:g} s and was stopped."
        return ToolResult.failed("timeout", message, data=data, call=call)
    message = f"{call.name!r} took longer than {limit:g} s and cannot be stopped; its result will be ignored."
    return ToolResult.failed("unknown_outcome", message, data=data, call=call)


def _time_left(timeout_s: float | None, deadline: float | None) -> float | None:
    if deadline is None:
        return timeout_s
    left = deadline - time.monotonic()
    return left if timeout_s is None else min(left, timeout_s)


def _with_response(result: ToolResult, values: StructuredValues) -> ToolResult:
    """Adds `response_msg` and `structured` to the metadata of a success of an extended tool.

    A text that the function itself put into `response_msg` is kept.
    """
    text = None if result.failure is not None else _shown_text(result)
    # The next step turns a result without text into a failure.
    return result if text is None else result.with_metadata(response_msg=text, structured=values.structured)


def _shown_text(result: ToolResult) -> str | None:
    own: Any = result.metadata.get("response_msg")
    try:
        return own if isinstance(own, str) else result.text
    except Unrepresentable:
        return None


GENERATORS: tuple[type[Any], ...] = (GeneratorType, AsyncGeneratorType)
"""The types that are iterated. A value of any other type is the tool's result."""

PASSING = (KeyboardInterrupt, GeneratorExit, BoundValueError)
"""Exceptions that never count as a tool's error: they end the program or the call's coroutine, or are for the host."""


async def iterate(
    call: ToolCall,
    generator: object,
    produced: CallOutput,
    ports: Ports,
    limit_s: float | None,
    pauses: PauseClock | None = None,
) -> Any:
    """Returns `ALL_GIVEN` or `STOPPED` once the parts are in `produced`, or `Raised`. The generator is then closed.

    The body of a generator is the tool's code, so all of it runs in the tool's thread.

    Raises:
        TimedOut: The generator did not end in time. In a thread, it ends when it next yields a part.
        WorkersExhausted: No worker was free.
    """
    if isinstance(generator, GeneratorType):
        pulled = partial(_pull_parts, cast("GeneratorType[Any, Any, Any]", generator), produced)
        return await ports.execute(pulled, limit_s, pauses)
    if ports.is_blocking:
        return owners_fault(
            "invalid_result",
            f"{call.name!r} returned an async generator instead of a value.",
            for_owner="write it with `async def` and `yield`, or call it from an event loop.",
            call=call,
        )
    later = _pull_async_parts(cast("AsyncGeneratorType[Any, Any]", generator), produced, ports)
    return await ports.finish(later, limit_s, pauses)


def _pull_parts(generator: GeneratorType[Any, Any, Any], produced: CallOutput) -> Any:
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


async def _pull_async_parts(generator: AsyncGeneratorType[Any, Any], produced: CallOutput, ports: Ports) -> Any:
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
