"""The context that a running tool receives: its calls, its output and its questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
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
    one_pass = _Pass(prepared, scope, invoke, deadline, produced, questions, scope.run or Run())
    return one_pass.context_in(one_pass.inside)


@dataclass(slots=True, eq=False)
class _Pass:
    """One pass of the tool. Its contexts hold it, and it holds none of them: all go when the pass has ended."""

    prepared: Prepared
    scope: Scope
    invoke: Path
    deadline: float | None
    produced: CallOutput
    questions: Questions
    run: Run

    def context_in(self, inner: Callable[[], Scope]) -> CallContext:
        """Returns a context whose calls have the scope `inner`."""
        call, scope, questions = self.prepared.call, self.scope, self.questions
        return CallContext(
            call_id=call.id,
            caller=scope.caller,
            deadline=self.deadline,
            call=partial(self.call_back, inner),
            emit=self.emit_later if self.prepared.entry.tool.is_async else self.emit,
            ask=questions.put,
            note=questions.notes.add,
            notes=lambda: questions.notes.values,
            answers=questions.answers,
            state=questions.state,
            idempotency_key=_key_for_call(self.prepared, scope),
            scope=inner,
            using=lambda tools, agent: self.context_in(below(inner, tools, agent)),
        )

    def inside(self) -> Scope:
        """Returns the scope of the tool's calls.

        They belong to the tool's run, and end with its deadline. They are on record: when a person has decided, the
        tool is called again, and they are not.
        """
        # Made for each use, because most tools make no call.
        scope, deadline = self.scope, self.deadline
        return replace(
            scope,
            run_id=scope.run_id or self.prepared.call.id,
            run=self.run,
            deadline=None if deadline is None else self.questions.clock.extend_limit(deadline),
            end=None,
            variables=None,
            # The tool reads the whole result. Its own is bounded for the model.
            result_limit_bytes=None,
            clocks=self.questions.clocks,
            sink=None,
        )

    async def call_back(self, inner: Callable[[], Scope], name: str, arguments: dict[str, Any]) -> ToolResult:
        """Makes a call of the tool, in the scope `inner`."""
        prepared, call = self.prepared, self.prepared.call
        prepared.is_composite = True
        child = ToolCall(name, arguments, id=f"{call.id}/{next(prepared.numbers)}", parent=call.id)
        return await self.questions.await_call(self.invoke(child, inner()))

    async def emit_later(self, part: Any) -> None:
        """Emits a part of an async tool."""
        if not await self.produced.put_later(part, self.scope.ports):
            raise Interrupted

    def emit(self, part: Any) -> Awaitable[None]:
        """Emits a part."""
        if not self.produced.put(part):
            raise Interrupted
        return DONE


def _key_for_call(prepared: Prepared, scope: Scope) -> str:
    if prepared.idempotency_key or not prepared.entry.tool.effects.has_key:
        return prepared.idempotency_key
    run_id = scope.run_id or prepared.call.id if scope.ledger is None else scope.ledger.run_id
    return idempotency_key(run_id, prepared.call.id, digest(arguments_for_record(prepared, scope)))
