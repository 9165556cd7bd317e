"""Rules on calls: which of them match, and the verdict of the strictest."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from toolwire.definition.tool import Permission
from toolwire.permission.condition import Condition
from toolwire.permission.policy import STRICTNESS, Policy, Rule, Subject
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError

SMALL = Condition(path="/arguments/amount", op="<=", value=10)
BIG = {"path": "/arguments/amount", "op": ">", "value": 1000}


class Clock:
    """Time that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def about(amount: Any = 5, **more: Any) -> Subject:
    return Subject(**{"arguments": {} if amount is None else {"amount": amount}, **more})


@pytest.mark.parametrize(
    ("amount", "effect"),
    [(5, "auto"), (10, "auto"), (11, "confirm"), (1001, "deny"), ("5", "deny"), (None, "deny"), (True, "deny")],
)
def test_rules_look_at_arguments(amount: Any, effect: Permission) -> None:
    policy = Policy([Rule(effect="auto", tool="pay", when=[SMALL]), {"effect": "deny", "tool": "pay", "when": [BIG]}])
    assert policy.judge("pay", "confirm", about(amount)).effect == effect


def test_without_a_call_only_rules_count_that_hit_every_call() -> None:
    policy = Policy([Rule(effect="auto", tool="pay"), {"effect": "deny", "tool": "pay", "when": [BIG]}])
    assert policy.judge("pay", "confirm").effect == "auto"


def test_a_verdict_is_settled_where_no_call_can_change_it() -> None:
    policy = Policy([Rule(effect="auto", tool="pay"), {"effect": "deny", "tool": "pay", "when": [BIG]}])
    assert policy.constant_verdict("pay", "confirm") is None
    for own in ("auto", "confirm", "deny"):
        assert policy.constant_verdict("refund", own) == policy.judge("refund", own, about())
    policy.remember(Rule(effect="deny", tool="refund", when=[BIG]))
    assert policy.constant_verdict("refund", "auto") is None


def test_a_verdict_names_the_conditions() -> None:
    policy = Policy([Rule(effect="deny", tool="pay", id="cap", when=[BIG, SMALL], note="ask the bank")])
    assert policy.judge("pay", "auto", about("x")).reasons == (
        "rule 'cap', deny 'pay' when amount > 1000 and amount <= 10: ask the bank",
    )


@pytest.mark.parametrize(
    ("rule", "hits", "misses"),
    [
        ({"agent": "root"}, {"caller": Caller(agent="root")}, {"caller": Caller(agent="other")}),
        ({"agent": ""}, {}, {"caller": Caller(agent="root")}),
        ({"scope": "run", "run_id": "r_1"}, {"run_id": "r_1"}, {"run_id": "r_2"}),
        ({"tool_digest": "sha256:a"}, {"tool_digest": "sha256:a"}, {"tool_digest": "sha256:b"}),
    ],
)
def test_a_rule_may_be_about_some_calls_only(rule: Any, hits: Any, misses: Any) -> None:
    policy = Policy([Rule(effect="auto", tool="pay", **rule)])
    judged = [policy.judge("pay", "confirm", about(**more)).effect for more in (hits, misses)]
    assert (judged, policy.judge("pay", "confirm").effect) == (["auto", "confirm"], "confirm")


def test_a_rule_ends_at_its_time() -> None:
    clock = Clock()
    policy = Policy([Rule(effect="auto", tool="pay", expires_at=datetime.fromtimestamp(1_001, UTC))], clock=clock)
    before = policy.judge("pay", "confirm", about()).effect
    clock.now = 1_001
    assert (before, policy.judge("pay", "confirm", about()).effect) == ("auto", "confirm")


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("bank/pay", ["bank/pay"], ["bank/pays", "pay", "x/bank/pay"]),
        ("bank/*", ["bank/pay", "bank/"], ["bank", "bank/a/b", "bank2/pay"]),
        ("*/pay", ["bank/pay"], ["a/b/pay", "pay"]),
        ("bank/p?y", ["bank/pay"], ["bank/p/y"]),
    ],
)
def test_a_pattern_with_a_slash_goes_part_by_part(pattern: str, fits: list[str], misses: list[str]) -> None:
    rule = Rule(effect="deny", tool=pattern)
    assert [name for name in fits + misses if rule.fits(name)] == fits


CONDITIONS: list[dict[str, Any]] = [
    {"path": "/arguments/amount", "op": "<=", "value": 10},
    {"path": "/arguments/amount", "op": ">", "value": 3},
    {"path": "/arguments/to", "op": "==", "value": "ada"},
    {"path": "/arguments/to", "op": "exists"},
    {"path": "/arguments/to", "op": "starts_with", "value": "A"},
]
AMOUNTS: list[Any] = [1, 5, 11, "5", None, True]
NAMES: list[Any] = ["ada", "Ada", "eve", None, 5]


@pytest.mark.threat(11)
def test_shuffled_rules_say_the_same_in_a_hundred_thousand_cases() -> None:
    """The verdict is compared with the strictest of the hits, worked out without a policy; and no order changes it."""
    chance = random.Random(11)
    made = [
        Rule(effect=effect, tool=tool, when=chance.sample(CONDITIONS, chance.randrange(3)), agent=agent)
        for effect in get_args(Permission)
        for tool in ("pay", "p*", "*", "bank/*", "other")
        for agent in (None, None, "root")
        for _ in range(4)
    ]
    differences, cases, first_wins = 0, 0, 0
    for _ in range(1_000):
        rules = chance.sample(made, chance.randrange(1, 6))
        orders = [Policy(chance.sample(rules, len(rules))) for _ in range(5)]
        for _ in range(20):
            arguments = {"amount": chance.choice(AMOUNTS), "to": chance.choice(NAMES)}
            subject = Subject(arguments=arguments, caller=Caller(agent=chance.choice(["root", ""])))
            own = chance.choice(get_args(Permission))
            hits = [rule for rule in rules if rule.fits("pay") and rule.hits(subject, 0)]
            strictest = max(hits, key=lambda rule: STRICTNESS[rule.effect]).effect if hits else own
            expected = "deny" if own == "deny" else strictest
            for policy in orders:
                cases += 1
                differences += policy.judge("pay", own, subject).effect != expected
            first_wins += bool(hits) and own != "deny" and hits[0].effect != expected
    assert (cases, differences) == (100_000, 0)
    assert first_wins > 1_000, "a policy in which the first hit wins would have been found out"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"effect": "auto"}, "rule 1: 'tool' is not there: write a tool's name, or '*' for all tools"),
        ({"tool": "pay"}, "rule 1: 'effect' is not there: write one of auto, confirm, deny"),
        ({"efect": "auto", "tool": "pay"}, "rule 1: unknown key 'efect'; did you mean 'effect'?"),
        ({"note": 5}, "rule 1: note = 5: write a string"),
        ({"optional": "yes"}, "rule 1: optional = 'yes': write true or false"),
        ({"scope": "forever"}, "rule 1: Rule(scope='forever'): write one of workspace, session, run"),
        ({"scope": "run"}, "rule 1: scope='run' is for rules that are made while a run goes on"),
        ({"run_id": "r_1"}, "rule 1: Rule(run_id='r_1'): write scope='run', or leave it out"),
        ({"when": {"path": "/arguments/a"}}, "rule 1: when={'path': '/arguments/a'}: write a list"),
        ({"when": [{"op": "exists"}]}, "rule 1: when lacks 'path': write '/arguments/amount'"),
        (
            {"when": [{"path": "/arguments/a", "op": "exists", "valeu": 1}]},
            "rule 1: when has the unknown key 'valeu'; did you mean 'value'?",
        ),
        ({"when": [{"path": "/arguments/a", "op": "gt", "value": 1}]}, "rule 1: op='gt': write '>'"),
        ({"match": [{"amount": 5}]}, "rule 1: match has {'amount': 5}: write a call, as {'arguments': {'amount': 5}}"),
        (
            {"expires_at": "tomorrow"},
            "rule 1: expires_at='tomorrow': write a time with its zone, or seconds since the epoch",
        ),
        (
            {"expires_at": datetime(2030, 1, 1)},
            "rule 1: expires_at='2030-01-01T00:00:00': add the zone, as 2030-01-01T00:00:00Z",
        ),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_place(given: dict[str, Any], message: str) -> None:
    whole = given if {"effect", "tool"} & given.keys() else {"effect": "auto", "tool": "pay", **given}
    with pytest.raises(ConfigurationError) as caught:
        Policy([whole])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"spending": ["ada"]}, "approvers={'spending': ...}: write one of read, write, send, exec, spend, *"),
        ({"spend": "ada"}, "approvers={'spend': 'ada'}: write a list of principals"),
    ],
)
def test_approvers_that_are_none_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policy(approvers=given)
    assert str(caught.value) == message


def test_two_policies_together_are_never_milder_than_their_rules() -> None:
    one = Policy([Rule(effect="auto", tool="pay")], defaults={"ask": "auto"}, approvers={"spend": ["ada", "bob"]})
    other = Policy([Rule(effect="confirm", tool="pay")], defaults={"ask": "deny"}, approvers={"spend": ["bob"]})
    both = one.merge_with(other)
    assert both.judge("pay", "auto").effect == "confirm"
    assert (both.defaults, both.approvers) == ({"ask": "deny"}, {"spend": frozenset({"bob"})})


def test_the_digest_is_of_the_rules_and_not_of_their_order() -> None:
    one, other = Rule(effect="auto", tool="pay", when=[SMALL]), Rule(effect="deny", tool="drop")
    assert Policy([one, other]).digest == Policy([other, one]).digest != Policy([one]).digest
