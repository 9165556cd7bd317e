"""Asks a person about one call. The request is recorded before anyone sees it, and the first decision counts."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from toolwire.definition.tool import Validated
from toolwire.invocation.judge import effects_of
from toolwire.invocation.ports.ports import Ledger, TimedOut
from toolwire.invocation.record import in_doubt
from toolwire.invocation.scope import Scope, run_of
from toolwire.invocation.tell import tell_asked, tell_decided
from toolwire.invocation.validate import Prepared
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, Approver, Decision, DecisionRefused
from toolwire.permission.deciding import POLICY, check_fits, narrow_rule
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep
from toolwire.vocabulary.values import digest, plain_value

_LOG = logging.getLogger("toolwire.approval")

NO_ANSWER = "no answer came"
"""Why a call does not run whose approver decided nothing."""

LATE = "no answer came in time"
"""Why a call does not run whose time ended before its approver decided."""


async def ask(
    prepared: Prepared, reasons: tuple[str, ...], scope: Scope, doubt: InDoubtStep | None = None
) -> Decision | Pending | ToolResult:
    """Returns the decision that counts, `Pending` if the call waits for one, or a result if none is possible.

    `reasons` are those why a person must decide.
    """
    decision = None
    try:
        request = _approval_request(prepared, reasons, scope)
    except Unrepresentable:
        _LOG.exception("call %s cannot be shown to an approver; it was not run", prepared.call.id)
        return _needs_a_person(prepared.call, reasons, "", "its arguments cannot be shown", doubt)
    if scope.ledger is not None:
        wanted = request
        request, decision = await scope.ports.wait_for(scope.ledger.ask(wanted))
        if _has_changed(request, wanted):
            return mismatch(prepared.call, request.id)
    prepared.request_id = request.id
    if decision is not None:
        counted = accept_or_deny(decision, request, scope)
        tell_decided(request, counted, prepared.call, scope)
        return _remember_rule(counted, request, scope)
    if is_late(request, scope):
        return _expiry_failure(prepared.call, request, doubt)
    function = prepared.entry.tool.function
    tell_asked(request, prepared.call, scope)
    found, what_happened = await ask_for_decision(request, scope, scope.ledger)
    if found is not None:
        tell_decided(request, found, prepared.call, scope)
        if found.verdict in ("approve", "edit") and _is_not_as_shown(prepared, request, function, scope):
            return mismatch(prepared.call, request.id)
        return _remember_rule(found, request, scope)
    if is_late(request, scope):
        return _expiry_failure(prepared.call, request, doubt)
    if scope.can_suspend:
        return Pending(call=prepared.call, request_ids=(request.id,))
    if scope.approver is None or what_happened == NO_ANSWER:
        scope.nobody_asked.warn(request.tool, has_approver=scope.approver is not None)
    return _needs_a_person(prepared.call, reasons, request.id, what_happened, doubt)


async def ask_for_decision(
    request: ApprovalRequest, scope: Scope, ledger: Ledger | None
) -> tuple[Decision | None, str]:
    """Returns the approver's decision, or None and the reason. No error in here lets the call run."""
    if scope.approver is None:
        return None, NO_ANSWER
    try:
        answer = await _ask_traced(request, scope.approver, scope)
        if answer is None:
            return None, NO_ANSWER
        if ledger is not None:
            answer = await scope.ports.wait_for(ledger.decide(request, answer))
        return accept_or_deny(answer, request, scope), ""
    except TimedOut:
        return None, LATE
    except DecisionRefused as refused:
        first = refused.decided
        return None if first is None else accept_or_deny(first, request, scope), str(refused)
    except _NotADecision as error:
        _LOG.error("call %s was not run: %s", request.call_id, error)
        return None, "asking failed"
    except Exception:  # noqa: BLE001 - an approver is its owner's code: if it breaks, nothing runs
        _LOG.exception("asking for approval of call %s failed; it was not run", request.call_id)
        return None, "asking failed"


class _NotADecision(Exception):
    """An approver returned something else."""


async def _ask_traced(request: ApprovalRequest, approver: Approver, scope: Scope) -> Decision | None:
    """Returns the approver's answer. A tracer measures the wait."""
    if scope.tracer is None:
        return await _ask_approver(request, approver, scope)
    span, verdict = scope.tracer.approval(request.tool, request.id), ""
    try:
        answer = await _ask_approver(request, approver, scope)
        verdict = "" if answer is None else answer.verdict
        return answer
    finally:
        span.end(verdict)


async def _ask_approver(request: ApprovalRequest, approver: Approver, scope: Scope) -> Decision | None:
    answer = await _in_time(request, approver, scope)
    if answer is None:
        return None
    # An answer that is not clearly a decision, such as True, lets nothing run.
    if not isinstance(cast("object", answer), Decision):
        raise _NotADecision(
            f"its approver returned {answer!r:.80}: return Decision(verdict='approve'), Decision(verdict='deny'), or "
            "None"
        )
    if answer.request_id not in ("", request.id):
        raise DecisionRefused("unknown_request", f"the decision is for another request, {answer.request_id!r}")
    seen = answer.seen_arguments_digest or request.arguments_digest
    if seen != request.arguments_digest:
        raise DecisionRefused("approval_mismatch", "the decision is for other arguments than these")
    if is_late(request, scope):
        raise DecisionRefused("expired", "the decision came after the request had expired")
    by = answer.by if answer.by.channel else replace(answer.by, channel="callback")
    refusal = scope.policy.refuses(replace(answer, by=by), request)
    if refusal is not None:
        raise DecisionRefused("not_permitted", refusal)
    check_fits(request, answer)
    return replace(answer, request_id=request.id, by=by, at=answer.at or scope.clock(), seen_arguments_digest=seen)


async def _in_time(request: ApprovalRequest, approver: Approver, scope: Scope) -> Decision | None:
    """Returns the approver's answer.

    Raises:
        TimedOut: The run's time ended first.
    """
    ports = scope.ports
    # A blocking wait belongs to a program, which ends by its own deadline.
    if scope.deadline is None or ports.is_blocking:
        return await ports.ask(approver, request)
    left_s = max(scope.deadline - time.monotonic(), 0.0)
    return await ports.finish(ports.ask(approver, request), left_s)


def accept_or_deny(decision: Decision, request: ApprovalRequest, scope: Scope) -> Decision:
    """Returns the decision if this policy accepts it, else a denial.

    Another process with another policy may have recorded the decision.
    """
    refusal = scope.policy.refuses(decision, request)
    if refusal is None:
        return decision
    _LOG.warning("the decision on call %s does not count: %s", request.call_id, refusal)
    by, reason = replace(decision.by, channel=POLICY), f"the decision does not count: {refusal}"
    return replace(decision, verdict="deny", reason=reason, by=by, remember=None)


def _remember_rule(decision: Decision, request: ApprovalRequest, scope: Scope) -> Decision:
    """Returns the decision, after its rule has been remembered."""
    if decision.remember is not None:
        scope.policy.remember(narrow_rule(decision.remember, request))
    return decision


def is_late(request: ApprovalRequest, scope: Scope) -> bool:
    """True if no decision on the request can count any more."""
    return bool(request.expires_at) and scope.clock() > request.expires_at


def _approval_request(prepared: Prepared, reasons: tuple[str, ...], scope: Scope) -> ApprovalRequest:
    # An approver is the host's code and may change its arguments, so it gets a copy.
    arguments = plain_value(prepared.canonical(scope))
    given = _plain_arguments(prepared.call.arguments)
    return new_request(
        prepared,
        scope,
        call_id=prepared.call.id,
        arguments=arguments,
        reasons=reasons,
        parent=prepared.call.parent,
        attempt=prepared.attempt,
        arguments_digest=prepared.canonical_digest(scope),
        bound_digest=bound_digest(prepared.validated),
        given={} if given == arguments else given,
        effects=tuple(sorted(effects_of(prepared, scope))),
        arguments_schema=prepared.entry.tool.input_schema,
    )


def new_request(prepared: Prepared, scope: Scope, **fields: Any) -> ApprovalRequest:
    """Returns a new request about this call, or about a question of its tool. Its id has 128 random bits."""
    tool, now = prepared.entry.tool, scope.clock()
    return ApprovalRequest(
        id=f"a_{os.urandom(16).hex()}",
        tool=prepared.entry.name,
        caller=scope.caller,
        run_id=run_of(prepared.call, scope),
        tool_digest=tool.digest,
        taints=() if scope.run is None else tuple(sorted(scope.run.taints)),
        created_at=now,
        expires_at=now + REQUEST_LIFE_S,
        depth=scope.depth,
        # The process that takes the decision may lack the policy.
        approvers={effect: tuple(sorted(names)) for effect, names in scope.policy.approvers.items()},
        **fields,
    )


def _plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", plain_value(dict(arguments)))
    except Unrepresentable:
        return {}


def bound_digest(validated: Validated) -> str:
    """Returns a digest of the bound values, which count as well.

    Values without a JSON form, such as clients, are left out.
    """
    found: dict[str, Any] = {}
    for name, value in validated.bound.items():
        try:
            found[name] = plain_value(value)
        except Unrepresentable:
            continue
    return digest(found) if found else ""


def _has_changed(kept: ApprovalRequest, wanted: ApprovalRequest) -> bool:
    """True if the call would now run with another tool or other values than the recorded request shows."""
    shown = (kept.tool, kept.arguments_digest, kept.tool_digest, kept.bound_digest)
    return shown != (wanted.tool, wanted.arguments_digest, wanted.tool_digest, wanted.bound_digest)


def _is_not_as_shown(prepared: Prepared, request: ApprovalRequest, function: object, scope: Scope) -> bool:
    """True if the call would not run as shown. The host's state or the tool may change while a person decides."""
    tool = prepared.entry.tool
    prepared.look_again()
    try:
        found = (prepared.canonical_digest(scope), tool.digest, bound_digest(prepared.validated))
    except Unrepresentable:
        return True
    shown = (request.arguments_digest, request.tool_digest, request.bound_digest)
    return found != shown or tool.function is not function


def mismatch(call: ToolCall, request_id: str) -> ToolResult:
    """Returns the failure of a call that would not run as the approver saw it."""
    return ToolResult.failed(
        "approval_mismatch",
        f"{call.name!r} was not run: the tool or its arguments have changed since approval was requested.",
        data={"request_id": request_id},
        call=call,
    )


def _expiry_failure(call: ToolCall, request: ApprovalRequest, doubt: InDoubtStep | None) -> ToolResult:
    if doubt is not None:
        return in_doubt(call, "no decision came in time", doubt, {"request_id": request.id})
    return ToolResult.failed(
        "approval_expired",
        f"{call.name!r} was not run: no decision came in time.",
        data={"request_id": request.id},
        call=call,
    )


def _needs_a_person(
    call: ToolCall, reasons: tuple[str, ...], request_id: str, what_happened: str, doubt: InDoubtStep | None
) -> ToolResult:
    data = {"reasons": list(reasons), "request_id": request_id}
    if doubt is not None:
        return in_doubt(call, what_happened, doubt, data)
    return ToolResult.failed(
        "approval_required",
        f"{call.name!r} was not run: a person has to allow it, and {what_happened}.",
        data=data,
        call=call,
    )
