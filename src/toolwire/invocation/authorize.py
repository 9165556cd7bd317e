"""A call runs without a question, after a person approved it, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from toolwire.definition.arguments.canonical import unmask
from toolwire.invocation.ask import ask, bound_digest, mismatch
from toolwire.invocation.judge import effects_of, judge_call
from toolwire.invocation.ports.offload import offload_if
from toolwire.invocation.record import evidence, in_doubt, refuse_rerun, resolve_doubt
from toolwire.invocation.resolve import resolve
from toolwire.invocation.scope import Scope
from toolwire.invocation.validate import Prepared, validate
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.permission.deciding import author_text
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep
from toolwire.vocabulary.values import digest


async def authorize(prepared: Prepared, scope: Scope) -> Prepared | Outcome:
    """Returns the call as it may run, or the outcome that replaces it. A person may have edited the call."""
    verdict = judge_call(prepared, scope)
    if verdict.effect == "deny":
        return _denial(prepared.call, "; ".join(verdict.reasons))
    if verdict.effect == "auto":
        return prepared
    return await _ask_person(prepared, verdict.reasons, scope, None)


async def take_up(call: ToolCall, scope: Scope, doubt: InDoubtStep, *, is_large: bool) -> Prepared | Outcome:
    """Returns a call that began before as it may run again, or the outcome that replaces it.

    It is judged when its owner has said whether it was done. With `is_large`, its arguments are read off the loop.
    """
    prepared = await offload_if(scope.ports, is_large, partial(_prepare_again, call, scope, doubt))
    if isinstance(prepared, ToolResult):
        return prepared
    uncertain = await resolve_doubt(prepared, scope, doubt)
    if isinstance(uncertain, ToolResult):
        return uncertain
    if doubt.is_asking and doubt.waiting and scope.approver is None and scope.can_suspend:
        # The tool would ask for the same again. It is called when all that it asked for is decided.
        return Pending(call=call, request_ids=doubt.waiting)
    verdict = judge_call(prepared, scope)
    if verdict.effect == "deny":
        return _denial(call, "; ".join(verdict.reasons))
    if uncertain is not None:
        prepared.attempt = doubt.attempt + 1
    elif verdict.effect == "auto":
        return prepared
    # The person who is asked is told that the call began, also if it may run again. A program's calls have their own
    # records, and a tool that waits for an answer has not gone on.
    began = uncertain if doubt.is_asking or doubt.is_composite else doubt
    reasons = verdict.reasons if began is None else (evidence(began), *verdict.reasons)
    return await _ask_person(prepared, reasons, scope, began)


def _prepare_again(call: ToolCall, scope: Scope, doubt: InDoubtStep) -> Prepared | ToolResult:
    entry = resolve(call, scope)
    if isinstance(entry, ToolResult):
        return in_doubt(call, "there is no such tool now", doubt)
    prepared = validate(call, entry, scope.states)
    if isinstance(prepared, ToolResult):
        return in_doubt(call, "its tool does not take these arguments now", doubt)
    return prepared


async def _ask_person(
    prepared: Prepared, reasons: tuple[str, ...], scope: Scope, began: InDoubtStep | None
) -> Prepared | Outcome:
    """Returns the call as the person decided. `began` is the earlier attempt of which the person is told."""
    decision = await ask(prepared, reasons, scope, began)
    if not isinstance(decision, Decision):
        return decision
    decided = _as_decided(prepared, decision, scope, began)
    if not isinstance(decided, Prepared):
        return decided
    # The tool may have been removed, disabled or replaced while a person decided.
    there = resolve(prepared.call, scope)
    if not isinstance(there, ToolResult) and there.tool is not prepared.entry.tool:
        there = mismatch(prepared.call, decision.request_id)
    return there.with_metadata(approval=prepared.approval) if isinstance(there, ToolResult) else decided


def _as_decided(
    prepared: Prepared, decision: Decision, scope: Scope, began: InDoubtStep | None
) -> Prepared | ToolResult:
    call, author = prepared.call, author_text(decision.by, person="a person")
    prepared.approval = _decision_facts(decision)
    match decision.verdict:
        case "approve":
            return _still_allowed(prepared, decision, scope)
        case "edit":
            edited = with_edits(prepared, decision, scope)
            return edited if isinstance(edited, Prepared) else edited.with_metadata(approval=prepared.approval)
        case "deny":
            reason = decision.reason or f"{author} refused it"
        case "answer":
            reason = "an answer approves nothing"
        case "stop_run":
            reason = decision.reason or f"{author} stopped the run"
            if scope.run is not None:
                scope.run.stopped = reason
    refused = _denial(call, reason) if began is None else refuse_rerun(call, reason)
    return refused.with_metadata(approval=prepared.approval)


def _still_allowed(prepared: Prepared, decision: Decision, scope: Scope) -> Prepared | ToolResult:
    """Returns the approved call. The tool's owner or a new rule may have denied it while a person decided."""
    verdict = judge_call(prepared, scope)
    refusal = "; ".join(verdict.reasons) if verdict.effect == "deny" else _may_not_cause(prepared, decision, scope)
    if refusal is None:
        return prepared
    return _denial(prepared.call, refusal).with_metadata(approval=prepared.approval)


def _may_not_cause(prepared: Prepared, decision: Decision, scope: Scope) -> str | None:
    """Returns why the decider may not allow the call with its effects of now; None if allowed.

    An edit may have changed them, and so may the conversation since the request.
    """
    call, tool = prepared.call, prepared.entry.tool
    if tool.effects.of_call is None:
        return None
    as_now = ApprovalRequest(
        id=decision.request_id,
        call_id=call.id,
        tool=prepared.entry.name,
        arguments={},
        reasons=(),
        caller=scope.caller,
        effects=tuple(sorted(effects_of(prepared, scope))),
    )
    return scope.policy.may_decide(decision.by, as_now)


def _decision_facts(decision: Decision) -> dict[str, Any]:
    """Returns the facts about a decision for observers."""
    by = decision.by
    return {
        "request_id": decision.request_id,
        "verdict": decision.verdict,
        "principal": by.principal,
        "channel": by.channel,
        "authn": by.authn,
        "decided_at": decision.at,
    }


def _changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes of an edit by argument, as `before` and `after`. An absent value has no entry."""
    found: dict[str, Any] = {}
    for name in {**before, **after}:
        if name in before and name in after and digest(before[name]) == digest(after[name]):
            continue
        there = {"before": before, "after": after}.items()
        found[name] = {when: arguments[name] for when, arguments in there if name in arguments}
    return found


def with_edits(prepared: Prepared, decision: Decision, scope: Scope) -> Prepared | ToolResult:
    """Returns the call with a person's edits, or the failure of a call that cannot be made like that.

    It counts as approved, but is validated and judged like a model's call.
    """
    call = prepared.call
    assert decision.arguments is not None  # `Decision` requires them of an edit.
    try:
        arguments = unmask(decision.arguments, prepared.validated, scope.secret_key)
    except Unrepresentable as error:
        return _denial(call, f"the edited arguments cannot be read: {error}")
    written = ToolCall(call.name, arguments, id=call.id, parent=call.parent, raw_text=call.raw_text)
    edited = validate(written, prepared.entry, scope.states)
    if isinstance(edited, ToolResult):
        return _wrong_edit(call, edited)
    # Validation read the bound values again: the host's state may have changed since the approver saw the call.
    if bound_digest(edited.validated) != bound_digest(prepared.validated):
        return mismatch(call, prepared.request_id)
    verdict = judge_call(edited, scope)
    if verdict.effect == "deny":
        return _denial(call, "; ".join(verdict.reasons))
    try:
        refusal = _may_not_cause(edited, decision, scope)
        changed = _changes_of(prepared.canonical(scope), edited.canonical(scope))
    except Unrepresentable as error:
        return _denial(call, f"the edited arguments cannot be recorded: {error}")
    if refusal is not None:
        return _denial(call, refusal)
    edited.approval = {**_decision_facts(decision), "changed": changed}
    edited.request_id, edited.attempt = prepared.request_id, prepared.attempt
    edited.asked, edited.idempotency_key = call, prepared.idempotency_key
    return edited


def _wrong_edit(call: ToolCall, edited: ToolResult) -> ToolResult:
    failure = edited.failure
    assert failure is not None
    return ToolResult.failed(
        failure.kind,
        f"{call.name!r} was not run: a person edited the call, and the edited call is not valid.\n{edited.error}",
        hint="The arguments of your own call were not the cause. Tell the user what is wrong with the edit.",
        path=failure.path,
        data=failure.data,
        call=call,
    )


def _denial(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult.failed("denied", f"{call.name!r} may not be run: {reason}.", data={"reason": reason}, call=call)
