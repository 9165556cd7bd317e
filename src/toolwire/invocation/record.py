"""The ledger's part of the path: what is known of a call before it starts, and what is written around it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, cast

from toolwire.invocation.aside import beside, is_large
from toolwire.invocation.ports import Ledger
from toolwire.invocation.scope import Prepared, Scope, read_again
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.pending import Outcome
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.steps import Doubt, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest


def recall(call: ToolCall, scope: Scope, ledger: Ledger) -> ToolResult | tuple[Step, Doubt | None]:
    """The result that is known already, or the call as a step, with the doubt whether it ran before.

    It comes before everything else: what is on record does not depend on what is registered or allowed today.
    """
    try:
        step = step_of(call)
    except Unrepresentable as error:
        return _unrecordable(call, error)
    known = ledger.recall(step)
    if isinstance(known, ToolResult):
        read_again(call.name, known, scope)
        return known
    if scope.run is not None and scope.run.stopped is not None:
        return ToolResult.failed(
            "interrupted",
            f"{call.name!r} was not run: {scope.run.stopped}.",
            hint="Make no more calls; tell the user.",
            call=call,
        )
    return step, known


def begin(prepared: Prepared, step: Step, scope: Scope, ledger: Ledger) -> Future[float | ToolResult]:
    """When it began, written down before it does; or why it must not run."""
    tool, composite = prepared.entry.tool, prepared.entry.composite
    if tool.effects.idempotent == "natural" and composite is None and not prepared.request_id:
        return _at_once(0.0)
    if prepared.request_id:
        # The ledger compares what begins with what was shown to a person: it must not be told of an earlier look.
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
    """The arguments as they are written down: the canonical form; without one, and with no decision made about the
    call, the model's own arguments.

    Raises:
        Unrepresentable: the arguments that a decision was made about have no canonical form any more.
    """
    try:
        return prepared.canonical(scope)
    except Unrepresentable:
        if prepared.request_id:
            raise
        return cast("dict[str, Any]", step_of(prepared.asked).given)


async def settle(step: Step, outcome: Outcome, scope: Scope, ledger: Ledger) -> Outcome:
    """The same outcome, once it is on record."""
    # A run that went another way keeps its record as it is: nothing more of it counts.
    if isinstance(outcome, ToolResult) and not is_divergence(outcome):
        is_big = is_large(step.given) or is_large((outcome.data, outcome.blocks, outcome.error))
        return await scope.ports.arrived(await beside(scope.ports, is_big, lambda: ledger.settle(step, outcome)))
    return outcome


def is_divergence(outcome: Outcome) -> bool:
    """Whether the call is not the one that is on record."""
    return isinstance(outcome, ToolResult) and outcome.failure is not None and outcome.failure.kind == "divergence"


def _unrecordable(call: ToolCall, error: Unrepresentable) -> ToolResult:
    return ToolResult.failed(
        "invalid_arguments", f"The arguments of {call.name!r} cannot be recorded: {error}.", call=call
    )
