"""The only caller of the policy. The registration, the tool and the rules decide together which permission counts."""

from __future__ import annotations

from toolwire.catalogue.entry import Entry
from toolwire.invocation.scope import Scope, run_of
from toolwire.invocation.validate import Prepared
from toolwire.permission.policy import Policy, Subject, Verdict
from toolwire.vocabulary.errors import Unrepresentable


def judged(prepared: Prepared, scope: Scope) -> Verdict:
    """Returns the policy's verdict on the call as it would run now."""
    entry, policy = prepared.entry, scope.policy
    own = entry.own_permission
    was_asked = scope.run is not None and prepared.call.id in scope.run.asked
    if not was_asked and (scope.run is None or not scope.run.taints):
        settled = policy.settled(entry.name, own)
        if settled is not None:
            return settled
    try:
        subject = subject_of(prepared, scope)
    except Unrepresentable as error:
        return Verdict(effect="deny", reasons=(f"rules cannot look at these arguments: {error}",))
    return policy.judge(entry.name, own, subject, was_asked=was_asked)


def judged_by_name(entry: Entry, policy: Policy) -> Verdict:
    """Returns the verdict without the rules that depend on the call. A denial holds for every call of the tool."""
    return policy.judge(entry.name, entry.own_permission)


def is_denied(entry: Entry, policy: Policy) -> bool:
    """Returns True if every call of the tool is denied, so that no model is told of it."""
    return judged_by_name(entry, policy).effect == "deny"


def subject_of(prepared: Prepared, scope: Scope) -> Subject:
    """Returns the call in the form that a policy judges.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    tool = prepared.entry.tool
    return Subject(
        arguments=prepared.canonical(scope),
        caller=scope.caller,
        run_id=run_of(prepared.call, scope),
        effects=tool.effects.kinds,
        taints=frozenset() if scope.run is None else scope.run.taints,
        is_outside=tool.is_outside,
        tool_digest=tool.digest,
    )
