"""Which calls run unasked, which ask first, which never run."""

from __future__ import annotations

import random
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.definition.tool import Permission
from toolwire.permission.policy import STRICTNESS, Policy, Rule, Verdict
from toolwire.vocabulary.errors import ConfigurationError

AUTO, CONFIRM, DENY = (Rule(effect=effect, tool="pay") for effect in get_args(Permission))
OTHER = Rule(effect="deny", tool="refund")


def verdict(effect: Permission, *reasons: str) -> Verdict:
    return Verdict(effect=effect, reasons=reasons)


@pytest.mark.parametrize(
    ("rules", "own", "effect"),
    [
        ([], "auto", "auto"),
        ([], "confirm", "confirm"),
        ([], "deny", "deny"),
        ([OTHER], "auto", "auto"),
        ([CONFIRM], "auto", "confirm"),
        ([DENY], "auto", "deny"),
        ([AUTO], "confirm", "auto"),
        ([AUTO], "deny", "deny"),
        ([CONFIRM], "deny", "deny"),
        ([AUTO, CONFIRM], "auto", "confirm"),
        ([AUTO, CONFIRM, DENY], "auto", "deny"),
        ([AUTO, AUTO], "confirm", "auto"),
    ],
)
def test_the_strictest_rule_counts_and_without_one_the_tools_own(
    rules: list[Rule], own: Permission, effect: Permission
) -> None:
    assert Policy(rules).judge("pay", own).effect == effect


def test_a_verdict_names_the_rules_that_led_to_it() -> None:
    noted = Rule(effect="confirm", tool="p*", note="money leaves")
    policy = Policy([AUTO, CONFIRM, noted, OTHER])
    assert policy.judge("pay", "auto") == verdict("confirm", "rule confirm 'pay'", "rule confirm 'p*': money leaves")
    assert policy.judge("pay", "deny") == verdict("deny", "the permission of 'pay' is deny")
    assert policy.judge("search", "auto") == verdict("auto", "the permission of 'search' is auto")


RULES = st.builds(
    Rule, effect=st.sampled_from(get_args(Permission)), tool=st.sampled_from(["pay", "p*", "?ay", "[pq]ay", "*", "x"])
)


@settings(deadline=None)
@given(st.lists(RULES, max_size=6), st.sampled_from(get_args(Permission)), st.randoms())
def test_the_order_of_rules_never_matters(rules: list[Rule], own: Permission, order: random.Random) -> None:
    first = Policy(rules).judge("pay", own)
    second = Policy(order.sample(rules, len(rules))).judge("pay", own)
    assert (second.effect, sorted(second.reasons)) == (first.effect, sorted(first.reasons))


@settings(deadline=None)
@given(st.lists(RULES, max_size=6), RULES, st.sampled_from(get_args(Permission)))
def test_one_more_rule_makes_no_verdict_milder_but_by_lifting_the_tools_own(
    rules: list[Rule], rule: Rule, own: Permission
) -> None:
    before, after = Policy(rules).judge("pay", own), Policy([*rules, rule]).judge("pay", own)
    was_own = before.reasons == (f"the permission of 'pay' is {own}",)
    assert STRICTNESS[after.effect] >= STRICTNESS[before.effect] or (was_own and own != "deny")


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("pay", ["pay"], ["Pay", "pays", "pay "]),
        ("*", ["pay", "a/b", ""], []),
        ("git_*", ["git_log", "git_"], ["git", "GIT_log", "xgit_log"]),
        ("?ay", ["pay"], ["ay", "spay"]),
        ("[ps]ay", ["pay", "say", "[ps]ay"], ["day"]),
        ("a[1]", ["a[1]", "a1"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("pay\n", ["pay\n"], ["pay"]),
    ],
)
def test_a_rule_is_about_a_name_or_a_pattern(pattern: str, fits: list[str], misses: list[str]) -> None:
    rule = Rule(effect="deny", tool=pattern)
    assert [name for name in fits + misses if rule.fits(name)] == fits


def test_a_default_stands_in_for_the_tools_own() -> None:
    policy = Policy([], defaults={"pay": "confirm", "search": "auto"})
    judged = [policy.judge(*case).effect for case in [("pay", "auto"), ("search", "deny"), ("other", "deny")]]
    assert judged == ["confirm", "auto", "deny"]
    assert Policy([AUTO], defaults={"pay": "deny"}).judge("pay", "auto").effect == "deny"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"effect": "ask", "tool": "pay"}, "Rule(effect='ask'): write one of auto, confirm, deny"),
        ({"effect": "AUTO", "tool": "pay"}, "Rule(effect='AUTO'): write one of auto, confirm, deny"),
        ({"effect": "deny", "tool": ""}, "Rule(tool=''): write a tool's name, or '*' for all tools"),
        ({"effect": "deny", "tool": None}, "Rule(tool=None): write a tool's name, or '*' for all tools"),
        ({"effect": "deny", "tool": 5}, "Rule(tool=5): write a tool's name, or '*' for all tools"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_where_it_is_written(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Rule(**given)
    assert str(caught.value) == message


def test_a_default_that_cannot_work_is_refused_where_it_is_written() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policy([], defaults={"pay": "never"})
    assert str(caught.value) == "permissions={'pay': 'never'}: write one of auto, confirm, deny"
