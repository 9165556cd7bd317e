"""The only caller of the policy. The registration, the tool and the rules decide together which permission counts."""

from __future__ import annotations

import logging

from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import arguments_with_types
from toolwire.invocation.scope import Scope, run_of
from toolwire.invocation.validate import Prepared
from toolwire.permission.policy import Policy, Subject, Verdict
from toolwire.vocabulary.effects import Effect, Seen
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import plain_value

_LOG = logging.getLogger("toolwire.effects")


def judge_call(prepared: Prepared, scope: Scope) -> Verdict:
    """Returns the policy's verdict on the call as it would run now."""
    entry, policy = prepared.entry, scope.policy
    withheld = _withheld(entry)
    if withheld is not None:
        return withheld
    own = entry.own_permission
    was_asked = scope.run is not None and prepared.call.id in scope.run.asked
    if not was_asked and (scope.run is None or not scope.run.taints):
        settled = policy.constant_verdict(entry.name, own)
        if settled is not None:
            return settled
    try:
        subject = subject_of(prepared, scope)
    except Unrepresentable as error:
        return Verdict(effect="deny", reasons=(f"rules cannot look at these arguments: {error}",))
    return policy.judge(entry.name, own, subject, was_asked=was_asked)


def judge_by_name(entry: Entry, policy: Policy) -> Verdict:
    """Returns the verdict without the rules that depend on the call. A denial holds for every call of the tool."""
    return _withheld(entry) or policy.judge(entry.name, entry.own_permission)


def _withheld(entry: Entry) -> Verdict | None:
    refusal = entry.tool.withheld()
    return None if refusal is None else Verdict(effect="deny", reasons=(str(refusal.error),))


def may_ask(entry: Entry, policy: Policy) -> bool:
    """Returns True if a call of the tool may wait for a person: for approval, or for the answer to its question."""
    verdict = policy.constant_verdict(entry.name, entry.own_permission)
    if verdict is None or verdict.effect == "confirm":
        return True
    # A tool asks by its context.
    return verdict.effect == "auto" and (entry.tool.context_parameter is not None or bool(entry.tool.asker))


def is_denied(entry: Entry, policy: Policy) -> bool:
    """Returns True if every call of the tool is denied, so that no model is told of it.

    No rule denies the call by which a model ends.
    """
    return not entry.tool.ends_turn and judge_by_name(entry, policy).effect == "deny"


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
        effects=effects_of(prepared, scope),
        taints=frozenset() if scope.run is None else scope.run.taints,
        is_outside=tool.is_outside,
        tool_digest=tool.digest,
        typed=arguments_with_types(prepared.validated, scope.secret_key),
    )


def effects_of(prepared: Prepared, scope: Scope) -> frozenset[Effect]:
    """Returns the effects of this call: those that the tool declares, or a part of them that `effects_of` gives.

    If `effects_of` fails, or gives nothing or an effect that is not declared, the declared effects count.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    effects = prepared.entry.tool.effects
    if effects.of_call is None:
        return effects.kinds
    # The function is the host's code and may change its arguments, so it gets a copy.
    arguments = plain_value(prepared.canonical(scope))
    seen = Seen(urls=frozenset() if scope.run is None else frozenset(scope.run.urls))
    try:
        given = effects.of_call(arguments, seen)
        found = frozenset(given)
    except Exception:  # noqa: BLE001 - the host's code: if it fails, the declared effects count
        _LOG.exception("effects_of of %r failed; its declared effects count", prepared.entry.name)
        return effects.kinds
    if found and found <= effects.kinds:
        return found
    _LOG.error("effects_of of %r gave %r; its declared effects count: give a part of them", prepared.entry.name, given)
    return effects.kinds
