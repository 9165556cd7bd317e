"""Explains the verdict of a policy on one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.definition.tool import Permission
from toolwire.permission.check import describe_result
from toolwire.permission.policy import Policy, Verdict
from toolwire.permission.rule import Rule, Subject, gate_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """The outcome of one rule for a call.

    Attributes:
        rule: The rule.
        hits: True if the rule applies to the call.
        why: The reason, for a person.
    """

    rule: Rule
    hits: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A verdict and everything that led to it.

    Attributes:
        tool: The name of the tool.
        arguments: The arguments as they would run.
        default: The permission that counts if no rule applies.
        rules: Every rule for the tool, whether it applies or not.
        guard: Why a person must decide regardless of the rules; empty if the guard does not apply.
        verdict: The verdict.
    """

    tool: str
    arguments: Mapping[str, Any]
    default: Permission
    rules: tuple[RuleOutcome, ...]
    guard: str
    verdict: Verdict


def explain(policy: Policy, tool: str, own: Permission, subject: Subject, verdict: Verdict) -> Explanation:
    """Explains the policy's verdict on a call of `tool`, whose own permission is `own`."""
    now = policy.clock()
    return Explanation(
        tool=tool,
        arguments=subject.arguments,
        default=policy.own(tool, own),
        rules=tuple(
            RuleOutcome(rule=rule, hits=rule.hits(subject, now), why=_why(rule, subject, now))
            for rule in policy.rules_about(tool)
        ),
        guard=gate_reason(subject),
        verdict=verdict,
    )


def _why(rule: Rule, subject: Subject, now: float) -> str:
    if rule.ends_at is not None and rule.ends_at <= now:
        return "it has expired"
    if rule.agent not in (None, subject.caller.agent):
        return f"it is about calls by {rule.agent!r}"
    if rule.principal not in (None, subject.caller.principal) or rule.tenant not in (None, subject.caller.tenant):
        return f"it is about calls for {rule.principal or ''!r} of the tenant {rule.tenant or ''!r}"
    if rule.scope == "run" and rule.run_id != subject.run_id:
        return "it is about another run"
    if rule.tool_digest not in ("", subject.tool_digest):
        return "the tool has changed since"
    if not rule.conditions:
        return "it is about every call of it"
    told_of = [describe_result(condition, subject.arguments, subject.typed) for condition in rule.conditions]
    unsure = any(condition.holds(subject.arguments, subject.typed) is None for condition in rule.conditions)
    if unsure and not any(condition.holds(subject.arguments, subject.typed) is False for condition in rule.conditions):
        told_of.append("an undecided condition " + ("lets nothing run" if rule.effect == "auto" else "counts"))
    return "; ".join(told_of)
