"""Why a policy says what it says of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.definition.tool import Permission
from toolwire.permission.check import told
from toolwire.permission.policy import Policy, Verdict
from toolwire.permission.rule import Rule, Subject
from toolwire.permission.taint import gate_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """What one rule makes of a call."""

    rule: Rule
    """The rule."""
    hits: bool
    """Whether it counts for the call."""
    why: str
    """What it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A verdict, and all that led to it."""

    tool: str
    """The tool's name."""
    arguments: Mapping[str, Any]
    """The arguments as they would run."""
    default: Permission
    """What counts where no rule hits."""
    rules: tuple[RuleOutcome, ...]
    """Every rule about the tool, hit or not."""
    guard: str
    """Why a person is asked whatever the rules say; empty when no guard is against it."""
    verdict: Verdict
    """What is to happen."""


def explain(policy: Policy, tool: str, own: Permission, subject: Subject) -> Explanation:
    """What the policy says of this call of `tool`, whose own permission is `own`, and why."""
    now = policy.clock()
    return Explanation(
        tool=tool,
        arguments=subject.arguments,
        default=policy.own(tool, own),
        rules=tuple(_outcome(rule, subject, now) for rule in policy.rules_about(tool)),
        guard=gate_reason(subject),
        verdict=policy.judge(tool, own, subject),
    )


def _outcome(rule: Rule, subject: Subject, now: float) -> RuleOutcome:
    return RuleOutcome(rule=rule, hits=rule.hits(subject, now), why=_why(rule, subject, now))


def _why(rule: Rule, subject: Subject, now: float) -> str:
    if rule.ends_at is not None and rule.ends_at <= now:
        return "it has expired"
    if rule.agent not in (None, subject.caller.agent):
        return f"it is about calls by {rule.agent!r}"
    if rule.scope == "run" and rule.run_id != subject.run_id:
        return "it is about another run"
    if rule.tool_digest not in ("", subject.tool_digest):
        return "the tool has changed since"
    if not rule.conditions:
        return "it is about every call of it"
    told_of = [told(condition, subject.arguments) for condition in rule.conditions]
    unsure = any(condition.holds(subject.arguments) is None for condition in rule.conditions)
    if unsure and not any(condition.holds(subject.arguments) is False for condition in rule.conditions):
        told_of.append("what cannot be told " + ("lets nothing run" if rule.effect == "auto" else "counts"))
    return "; ".join(told_of)
