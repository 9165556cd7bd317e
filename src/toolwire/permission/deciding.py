"""Checks decisions: whether their author may decide, and whether their rule may be remembered."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from toolwire.permission.approval import VERDICTS, Answer, ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.condition import Condition
from toolwire.permission.rule import Rule, RuleScope
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import digest, plain_value

ALLOWING = frozenset({"approve", "edit"})
"""Verdicts after which the call runs."""

MODEL = "model"
"""The channel of a decider that is itself a model."""

POLICY = "policy"
"""The channel of a denial that the policy makes of a decision which does not count."""

UNASKED = "unasked"
"""The channel of a denial that toolwire makes where no person can be asked, or none answered in time."""

_AUTHORS: Mapping[str, str] = {
    MODEL: "a model",
    POLICY: "the policy",
    UNASKED: "toolwire, without a person,",
    "callback": "the approver",
}


def author_text(by: Decider, *, person: str) -> str:
    """Returns by what a call or an answer was refused, for the model. `person` is the text for a person."""
    return _AUTHORS.get(by.channel, person)


def undecidable(
    by: Decider, request: ApprovalRequest, verdict: Answer, approvers: Mapping[str, Set[str]]
) -> str | None:
    """Returns why the author may not give this verdict; None if allowed. `approvers` maps effects to principals."""
    if by.principal and by.principal in (request.caller.agent, f"agent:{request.caller.agent}"):
        return f"{by.principal!r} is the agent that asked, and cannot approve its own request"
    if verdict in ("deny", "stop_run"):
        return None
    # An undeclared effect may still occur. A question has no effect.
    is_any = not request.effects and request.kind == "approval"
    named = [effect for effect in approvers if effect == "*" or is_any or effect in request.effects]
    for effect in named:
        if by.principal not in approvers[effect]:
            what = "any call" if effect == "*" else f"calls that {effect}"
            return f"{by.principal or 'an approver without a name'!r} is not among those who may approve {what}"
    if by.channel == MODEL and not named:
        return "a model may deny, but may approve only if the policy names it among the approvers"
    return None


def check_fits(request: ApprovalRequest, decision: Decision) -> None:
    """Checks that the verdict fits the kind of request, and that an answer fits the schema of the question.

    An approval may repeat the arguments that were shown, or those that the model wrote.

    Raises:
        DecisionRefused: `invalid_answer`, or `invalid_edit` for an approval with other arguments. The request goes on
            waiting.
    """
    fitting = VERDICTS[request.kind]
    if decision.verdict not in fitting:
        what = "a question" if request.kind == "question" else "a request for approval"
        raise DecisionRefused(
            "invalid_answer",
            f"request {request.id} is {what}, and the verdict is {decision.verdict!r}: write {_one_of(fitting)}",
            request_id=request.id,
        )
    if request.kind == "question" and decision.remember is not None:
        raise DecisionRefused(
            "invalid_answer", f"request {request.id} is a question: write no remember=", request_id=request.id
        )
    if decision.verdict == "approve" and decision.arguments is not None and not _are_shown(decision, request):
        raise DecisionRefused(
            "invalid_edit",
            f"request {request.id} was approved with other arguments than it shows: write verdict='edit' to run these "
            "arguments, or leave them out",
            request_id=request.id,
        )
    if decision.verdict == "answer":
        # Imported here, as in `check_authority`.
        from toolwire.permission.edits import check_answer

        check_answer(request, decision.answer)


def _are_shown(decision: Decision, request: ApprovalRequest) -> bool:
    try:
        given = digest(plain_value(decision.arguments))
    except Unrepresentable:
        return False
    return given in (digest(plain_value(request.arguments)), digest(plain_value(request.given or request.arguments)))


def _one_of(verdicts: tuple[Answer, ...]) -> str:
    written = {"answer": "verdict='answer' with answer=..."}
    return " or ".join(written.get(verdict, repr(verdict)) for verdict in verdicts)


def too_wide(decision: Decision, request: ApprovalRequest) -> str | None:
    """Returns why the decision's rule covers more than the request showed; None if it does not, or has no rule."""
    rule = decision.remember
    if rule is None:
        return None
    if (rule.effect == "auto") != (decision.verdict in ("approve", "edit")):
        return f"its rule says {rule.effect!r} and its verdict is {decision.verdict!r}"
    if rule.tool != glob.escape(request.tool):
        return f"it remembers a rule for {rule.tool!r}, and the request shown is a call of {request.tool!r}"
    if rule.agent not in (None, request.caller.agent):
        return f"it remembers a rule for another agent, {rule.agent!r}"
    if rule.principal not in (None, request.caller.principal) or rule.tenant not in (None, request.caller.tenant):
        return f"it remembers a rule for another principal, {rule.principal!r} of the tenant {rule.tenant!r}"
    if rule.run_id not in ("", request.run_id):
        return f"it remembers a rule for another run, {rule.run_id!r}"
    if rule.tool_digest not in ("", request.tool_digest):
        return "it remembers a rule for another version of the tool"
    shown = decision.arguments if decision.verdict == "edit" and decision.arguments is not None else request.arguments
    for condition in rule.conditions:
        if condition.holds(shown) is not True:
            return f"it remembers a rule whose condition {condition} does not hold for the request shown"
    return None


def narrow_rule(rule: Rule, request: ApprovalRequest) -> Rule:
    """Limits a rule to the asking agent, principal and tenant, to the tool as described, and with scope run to the run.

    A rule for all principals is the owner's, in the policy: no decision makes one.
    """
    return replace(
        rule,
        id=rule.id or f"remembered:{request.id}",
        source=rule.source or f"the decision on {request.id}",
        agent=request.caller.agent,
        principal=request.caller.principal,
        tenant=request.caller.tenant,
        tool_digest=request.tool_digest,
        run_id=request.run_id if rule.scope == "run" else "",
    )


def check_authority(request: ApprovalRequest, decision: Decision, *, is_vetted: bool = False) -> None:
    """Checks that a decision fits the request and that its author may decide.

    `is_vetted`: the owner of the policy has checked the author already.

    Raises:
        DecisionRefused: `unknown_request`, `approval_mismatch`, `not_permitted`, `invalid_edit` or `invalid_answer`.
    """

    def refusal_with(code: Any, message: str) -> DecisionRefused:
        return DecisionRefused(code, message, request_id=request.id)

    if decision.request_id not in ("", request.id):
        raise refusal_with("unknown_request", f"the decision is for another request, {decision.request_id!r}")
    if decision.seen_arguments_digest not in ("", request.arguments_digest):
        raise refusal_with("approval_mismatch", "the decision is for other arguments than the request's")
    # Only the owner of the policy knows whether the policy names a model as an approver.
    by = replace(decision.by, channel="") if is_vetted else decision.by
    named = {} if is_vetted else {effect: frozenset(names) for effect, names in request.approvers.items()}
    why = undecidable(by, request, decision.verdict, named) or too_wide(decision, request)
    if why is not None:
        raise refusal_with("not_permitted", why)
    check_fits(request, decision)
    if decision.verdict == "edit":
        # Imported here: the JSON schema validator takes a tenth of a second, and most decisions edit nothing.
        from toolwire.permission.edits import check_edit

        check_edit(request, decision.arguments)


def rule_for(
    request: ApprovalRequest, *, scope: RuleScope = "run", same_arguments: bool = True, effect: str = "auto"
) -> Rule:
    """Returns a rule for calls like the one shown: the same tool, agent, principal, tenant and arguments.

    `same_arguments=False` allows any arguments; offer that only as a separate choice.
    """
    same = Condition(path="/arguments", op="==", value=dict(request.arguments))
    rule = Rule(
        effect=effect,  # pyright: ignore[reportArgumentType] - checked by the rule
        tool=glob.escape(request.tool),
        when=(same,) if same_arguments else (),
        scope=scope,
    )
    return narrow_rule(rule, request)
