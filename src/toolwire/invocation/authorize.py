"""The only caller of the policy: a call runs unasked, after a person said so, or not at all."""

from __future__ import annotations

import logging
from typing import cast

from toolwire.definition.tool import canonical
from toolwire.invocation.scope import Prepared, Scope
from toolwire.invocation.validate import validate
from toolwire.permission.approval import ApprovalRequest, Approver, Decision
from toolwire.permission.policy import Verdict
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.approval")


async def authorize(prepared: Prepared, scope: Scope) -> Prepared | ToolResult:
    """The call as it may run (a person may have edited it), or the result that says why it may not."""
    verdict = _judge(prepared, scope)
    if verdict.effect == "auto":
        return prepared
    if verdict.effect == "deny":
        return _denied(prepared.call, "; ".join(verdict.reasons))
    if scope.approver is None:
        return _needs_a_person(prepared.call, verdict, "nobody answered")
    try:
        decision = await _ask(prepared, verdict, scope, scope.approver)
    except Exception:  # noqa: BLE001 - an approver is its owner's code: if it breaks, nothing runs
        _LOG.exception("asking for approval of call %s failed; it was not run", prepared.call.id)
        return _needs_a_person(prepared.call, verdict, "asking failed")
    if decision is None:
        return _needs_a_person(prepared.call, verdict, "nobody answered")
    match decision.verdict:
        case "approve":
            return prepared
        case "edit":
            return _edited(prepared, decision, scope)
        case "deny":
            return _denied(prepared.call, decision.reason or "a person refused it")


def _judge(prepared: Prepared, scope: Scope) -> Verdict:
    entry = prepared.entry
    return scope.policy.judge(entry.name, entry.permission or entry.tool.permission)


async def _ask(prepared: Prepared, verdict: Verdict, scope: Scope, approver: Approver) -> Decision | None:
    request = ApprovalRequest(
        id=new_id("a"),
        call_id=prepared.call.id,
        tool=prepared.entry.name,
        arguments=canonical(prepared.validated),
        reasons=verdict.reasons,
        caller=scope.caller,
    )
    answer = await scope.ports.ask(approver, request)
    # Whatever is not clearly a decision, a plain True say, lets nothing run.
    if answer is not None and not isinstance(cast("object", answer), Decision):
        raise TypeError(f"an approver gives a Decision or None, not {answer!r}")
    return answer


def _edited(prepared: Prepared, decision: Decision, scope: Scope) -> Prepared | ToolResult:
    """What a person wrote instead: they allow it, but it is validated and judged like what the model wrote."""
    call = prepared.call
    arguments = call.arguments if decision.arguments is None else decision.arguments
    edited = validate(
        ToolCall(call.name, arguments, id=call.id, parent=call.parent, raw_text=call.raw_text), prepared.entry
    )
    if isinstance(edited, ToolResult):
        return _wrong_edit(call, edited)
    verdict = _judge(edited, scope)
    return _denied(call, "; ".join(verdict.reasons)) if verdict.effect == "deny" else edited


def _wrong_edit(call: ToolCall, edited: ToolResult) -> ToolResult:
    failure = edited.failure
    assert failure is not None
    return ToolResult.failed(
        failure.kind,
        f"{call.name!r} was not run: a person changed the call, and it cannot be made like that.\n{edited.error}",
        hint="The arguments of your own call were not the reason. Tell the user what is wrong with the change.",
        path=failure.path,
        data=failure.data,
        call=call,
    )


def _denied(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult.failed("denied", f"{call.name!r} may not be run: {reason}.", data={"reason": reason}, call=call)


def _needs_a_person(call: ToolCall, verdict: Verdict, what_happened: str) -> ToolResult:
    return ToolResult.failed(
        "approval_required",
        f"{call.name!r} was not run: a person has to allow it, and {what_happened}.",
        data={"reasons": list(verdict.reasons)},
        call=call,
    )
