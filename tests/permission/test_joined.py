"""Policies that both count: for the calls of a tool that has tools of its own."""

from __future__ import annotations

import random
from typing import get_args

from toolwire.definition.tool import Permission
from toolwire.permission.joined_policy import JoinedPolicy
from toolwire.permission.policy import STRICTNESS, Policy, Rule, Subject
from toolwire.vocabulary.effects import Effect, Label

PAIRS = 100_000
"""Shuffled pairs of policies."""
EFFECTS: tuple[Permission, ...] = get_args(Permission)
RULES = [
    Rule(effect=effect, tool=tool, when=when)
    for effect in EFFECTS
    for tool in ("pay", "p*", "read", "*")
    for when in ((), ({"path": "/arguments/amount", "op": ">", "value": 5},))
]


def some_policy(shuffled: random.Random) -> Policy:
    defaults = {"pay": shuffled.choice(EFFECTS)} if shuffled.random() < 0.3 else None
    return Policy(shuffled.sample(RULES, shuffled.randrange(4)), defaults=defaults)


def test_joined_policies_are_never_wider_than_either() -> None:
    shuffled = random.Random(18)
    policies = [some_policy(shuffled) for _ in range(400)]
    labels, kinds = get_args(Label), get_args(Effect)
    seen: set[str] = set()
    for _ in range(PAIRS):
        parent, child = shuffled.choice(policies), shuffled.choice(policies)
        if shuffled.random() < 0.2:
            child = JoinedPolicy(child, shuffled.choice(policies))
        joined = JoinedPolicy(parent, child)
        tool, own, was_asked = shuffled.choice(("pay", "read")), shuffled.choice(EFFECTS), shuffled.random() < 0.2
        subject = Subject(
            arguments={"amount": shuffled.randrange(10)},
            effects=frozenset(shuffled.sample(kinds, 1)),
            taints=frozenset(shuffled.sample(labels, shuffled.randrange(len(labels) + 1))),
        )
        verdict = joined.judge(tool, own, subject, was_asked=was_asked)
        both = [policy.judge(tool, own, subject, was_asked=was_asked).effect for policy in (parent, child)]
        assert verdict.effect == max(both, key=STRICTNESS.__getitem__)
        settled = joined.constant_verdict(tool, own)
        if settled is not None and not subject.taints and not was_asked:
            assert settled.effect == verdict.effect
        seen.add(verdict.effect)
    assert seen == set(EFFECTS)


def test_a_rule_that_either_policy_learns_counts_at_the_next_call() -> None:
    parent, child = Policy(), Policy()
    joined = JoinedPolicy(parent, child.for_session())
    assert joined.constant_verdict("pay", "auto") is not None
    assert joined.judge("pay", "auto").effect == "auto"
    parent.remember(Rule(effect="confirm", tool="pay"))
    assert joined.judge("pay", "auto").effect == "confirm"
    child.remember(Rule(effect="deny", tool="pay"))
    assert joined.judge("pay", "auto").effect == "deny"


def test_a_remembered_approval_counts_only_where_the_other_policy_lets_the_call_run() -> None:
    asks = Policy()
    joined = JoinedPolicy(asks, Policy())
    joined.remember(Rule(effect="auto", tool="pay"))
    assert joined.judge("pay", "confirm").effect == "auto"
    denies = JoinedPolicy(Policy([Rule(effect="deny", tool="pay")]), Policy())
    denies.remember(Rule(effect="auto", tool="pay"))
    assert denies.judge("pay", "confirm").effect == "deny"


def test_the_permissions_that_a_session_gives_never_lift_the_parents() -> None:
    joined = JoinedPolicy(Policy(defaults={"pay": "deny"}), Policy())
    assert joined.for_session({"pay": "auto"}).judge("pay", "auto").effect == "deny"
    assert joined.merge_with(Policy([Rule(effect="auto", tool="pay")])).judge("pay", "auto").effect == "deny"
