"""The context that a running tool receives: its calls, its output and its questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from toolwire.invocation.asking.question import Questions
from toolwire.invocation.fold import CallOutput
from toolwire.invocation.inner.own_tools import below
from toolwire.invocation.record import arguments_for_record
from toolwire.invocation.scope import Path, Run, Scope
from toolwire.invocation.validate import Prepared
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import DONE, CallContext, Interrupted
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import idempotency_key
from toolwire.vocabulary.values import digest


def context_of(
    prepared: Prepared,
    scope: Scope,
    invoke: Path,
    deadline: float | None,
    produced: CallOutput,
    questions: Questions,
) -> CallContext:
    """Returns the context of one pass of the tool."""
    call, numbers = prepared.call, prepared.numbers
    run = scope.run or Run()

    def inside() -> Scope:
        # Made for each use, because most tools make no call. The calls belong to the tool's run, and end with its
        # deadline. They are on record: when a person has decided, the tool is called again, and they are not.
        return replace(
            scope,
            run_id=scope.run_id or call.id,
            run=run,
            deadline=None if deadline is None else questions.clock.extend_limit(deadline),
            end=None,
            variables=None,
            # The tool reads the whole result. Its own is bounded for the model.
            result_limit_bytes=None,
            clocks=questions.clocks,
            sink=None,
        )

    async def emit_later(part: Any) -> None:
        if not await produced.put_later(part, scope.ports):
            raise Interrupted

    def emit(part: Any) -> Awaitable[None]:
        if not produced.put(part):
            raise Interrupted
        return DONE

    def context_in(inner: Callable[[], Scope]) -> CallContext:
        async def call_back(name: str, arguments: dict[str, Any]) -> ToolResult:
            prepared.is_composite = True
            child = ToolCall(name, arguments, id=f"{call.id}/{next(numbers)}", parent=call.id)
            return await questions.await_call(invoke(child, inner()))

        return CallContext(
            call_id=call.id,
            caller=scope.caller,
            deadline=deadline,
            call=call_back,
            emit=emit_later if prepared.entry.tool.is_async else emit,
            ask=questions.put,
            note=questions.notes.add,
            notes=lambda: questions.notes.values,
            answers=questions.answers,
            state=questions.state,
            idempotency_key=_key_for_call(prepared, scope),
            scope=inner,
            using=lambda tools, agent: context_in(below(inner, tools, agent)),
        )

    return context_in(inside)


def _key_for_call(prepared: Prepared, scope: Scope) -> str:
    if prepared.idempotency_key or not prepared.entry.tool.effects.has_key:
        return prepared.idempotency_key
    run_id = scope.run_id or prepared.call.id if scope.ledger is None else scope.ledger.run_id
    return idempotency_key(run_id, prepared.call.id, digest(arguments_for_record(prepared, scope)))
