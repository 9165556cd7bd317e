"""The ledger's part of the path: the lookup before a call starts, and the records around it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, cast

from toolwire.invocation.aside import beside, is_large
from toolwire.invocation.ports import Ledger
from toolwire.invocation.scope import Prepared, Scope, read_again
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import Doubt, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest


def recall(call: ToolCall, scope: Scope, ledger: Ledger) -> ToolResult | tuple[Step, ToolResult | Doubt | None]:
    """Returns the call as a step with its recorded result or its doubt; or the failure of a call that cannot run.

    This comes before everything else. The record does not depend on the tools and rules of today.
    """
    try:
        step = step_of(call)
    except Unrepresentable as error:
        return _unrecordable(call, error)
    known = ledger.recall(step)
    if isinstance(known, ToolResult):
        read_again(call.name, known, scope)
        return step, known
    if scope.run is not None and scope.run.stopped is not None:
        return ToolResult.failed(
            "interrupted",
            f"{call.name!r} was not run: {scope.run.stopped}.",
            hint="Make no more calls; tell the user.",
            call=call,
        )
    return step, known


def begin(prepared: Prepared, step: Step, scope: Scope, ledger: Ledger) -> Future[float | ToolResult]:
    """Records the start of the call before it runs. The future gives the start time, or a result if it must not run."""
    tool, composite = prepared.entry.tool, prepared.entry.composite
    if tool.effects.idempotent == "natural" and composite is None and not prepared.request_id:
        return _at_once(0.0)
    if prepared.request_id:
        # The ledger compares the start with the request that a person saw, so an outdated canonical form must not be
        # used.
        prepared.look_again()
    try:
        arguments = recorded(prepared, scope)
    except Unrepresentable as error:
        return _at_once(_unrecordable(prepared.call, error))
    arguments_digest = digest(arguments)
    if tool.effects.has_key:
        prepared.idempotency_key = idempotency_key(ledger.run_id, step.key, arguments_digest)
    return ledger.begin(
        Start(
            step=step,
            arguments=arguments,
            arguments_digest=arguments_digest,
            tool_digest=tool.digest,
            idempotent=tool.effects.idempotent,
            is_composite=composite is not None,
            request_id=prepared.request_id,
            attempt=prepared.attempt,
            has_key=tool.effects.has_key,
        )
    )


def _at_once(answer: float | ToolResult) -> Future[float | ToolResult]:
    future = Future[float | ToolResult]()
    future.set_result(answer)
    return future


def recorded(prepared: Prepared, scope: Scope) -> Mapping[str, Any]:
    """Returns the arguments for the record: their canonical form.

    Without a canonical form, and if no decision was made about the call, the model's own arguments are recorded.

    Raises:
        Unrepresentable: A decision was made about the arguments, but they no longer have a canonical form.
    """
    try:
        return prepared.canonical(scope)
    except Unrepresentable:
        if prepared.request_id:
            raise
        return cast("dict[str, Any]", step_of(prepared.asked).given)


async def settle(step: Step, outcome: Outcome, scope: Scope, ledger: Ledger) -> Outcome:
    """Records the outcome, and returns it when it is durable."""
    # A run that diverged keeps its record unchanged: nothing after the divergence counts.
    if isinstance(outcome, ToolResult) and not is_divergence(outcome):
        is_big = is_large(step.given) or is_large((outcome.data, outcome.blocks, outcome.error))
        return await scope.ports.arrived(await beside(scope.ports, is_big, lambda: ledger.settle(step, outcome)))
    return outcome


def is_divergence(outcome: Outcome) -> bool:
    """True if the call differs from the recorded one."""
    return isinstance(outcome, ToolResult) and outcome.failure is not None and outcome.failure.kind == "divergence"


def _unrecordable(call: ToolCall, error: Unrepresentable) -> ToolResult:
    return ToolResult.failed(
        "invalid_arguments", f"The arguments of {call.name!r} cannot be recorded: {error}.", call=call
    )
