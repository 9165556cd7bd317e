"""Every answer of a policy, compared as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolwire.definition.from_function import from_function
from toolwire.permission import policy as policy_module
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.check import RuleProblem
from toolwire.permission.policy import RUN_RULES_LIMIT, Policy, Rule, Subject, Verdict
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError

NOW = 1_800_000_000.0
ABOVE = {"path": "/arguments/amount", "op": ">", "value": 5}
SOMETIMES = Rule(effect="deny", tool="pay", when=[ABOVE], note="dear")
SUBJECT = Subject(arguments={"amount": 9}, run_id="r_1")
CHEAP = replace(SUBJECT, arguments={"amount": 1})
ADA = Decider(principal="ada")


def own(effect: Any, tool: str = "pay") -> Verdict:
    return Verdict(effect=effect, reasons=(f"the permission of {tool!r} is {effect}",))


def fixed(rules: Any = (), **more: Any) -> Policy:
    """A policy whose clock stands."""
    return Policy(rules, clock=lambda: NOW, **more)


def of_run(number: int, effect: Any = "auto", **more: Any) -> Rule:
    return Rule(effect=effect, tool="pay", scope="run", run_id=f"r_{number}", **more)


# -- judging --


def test_rules_are_objects_or_mappings_whose_source_is_their_place() -> None:
    policy = Policy([Rule(effect="deny", tool="a"), {"effect": "auto", "tool": "b"}, {"effect": "deny", "tool": "c"}])
    sources = [(rule.effect, rule.tool, rule.source) for rule in policy.rules]
    assert sources == [("deny", "a", ""), ("auto", "b", "rule 2"), ("deny", "c", "rule 3")]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"effect": "auto"}, "rule 2: 'tool' is not there: write a tool's name, or '*' for all tools"),
        (
            {"effect": "auto", "tool": "pay", "scope": "run"},
            "rule 2: scope='run' is for rules that are made while a run goes on",
        ),
        (
            Rule(effect="auto", tool="pay", scope="run", source="rules.toml, line 3"),
            "rules.toml, line 3: scope='run' is for rules that are made while a run goes on",
        ),
        (
            Rule(effect="auto", tool="pay", scope="run"),
            "rule 2: scope='run' is for rules that are made while a run goes on",
        ),
    ],
)
def test_a_rule_that_cannot_be_loaded_is_named_by_its_place(rule: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policy([SOMETIMES, rule])
    assert str(caught.value) == message


def test_a_rule_of_a_run_may_be_loaded_with_its_run() -> None:
    assert Policy([of_run(1)]).judge("pay", "confirm", SUBJECT).effect == "auto"


def test_a_verdict_that_no_call_can_change_is_settled() -> None:
    policy = Policy([SOMETIMES, Rule(effect="confirm", tool="read")])
    assert policy.constant_verdict("pay", "auto") is None
    assert policy.constant_verdict("read", "auto") == Verdict(effect="confirm", reasons=("rule confirm 'read'",))
    assert (policy.constant_verdict("other", "auto"), policy.constant_verdict("other", "deny")) == (
        own("auto", "other"),
        own("deny", "other"),
    )


def test_a_settled_verdict_is_made_once() -> None:
    policy, other = Policy(), own("deny")
    policy.constant_verdict("pay", "auto")
    policy.constant_verdict("pay", "confirm")
    assert policy.index().settled == {("pay", "auto"): own("auto"), ("pay", "confirm"): own("confirm")}
    policy.index().settled["pay", "auto"] = other
    assert policy.constant_verdict("pay", "auto") is other


def test_a_verdict_by_name_is_made_once() -> None:
    policy, other = Policy([SOMETIMES]), own("deny")
    assert (policy.judge("pay", "auto"), policy.judge("pay", "auto", CHEAP)) == (own("auto"), own("auto"))
    assert policy.index().verdicts == {("pay", "auto"): own("auto")}
    policy.index().verdicts["pay", "auto"] = other
    assert policy.judge("pay", "auto") is other
    assert policy.judge("pay", "auto", CHEAP) is other


def test_the_rules_for_a_tool_are_looked_for_once() -> None:
    index = Policy([SOMETIMES, Rule(effect="deny", tool="p*"), Rule(effect="deny", tool="other")]).index()
    found = index.of("pay")
    assert (found.always, found.sometimes) == ((Rule(effect="deny", tool="p*"),), (SOMETIMES,))
    assert index.of("pay") is found


def test_the_rules_that_hit_a_call_count_with_those_that_hit_every_call() -> None:
    policy = Policy([SOMETIMES, Rule(effect="deny", tool="p*"), Rule(effect="confirm", tool="pay")])
    hit = Verdict(effect="deny", reasons=("rule deny 'p*'", "rule deny 'pay' when amount > 5: dear"))
    assert policy.judge("pay", "auto", SUBJECT) == hit
    assert policy.judge("pay", "auto", CHEAP) == Verdict(effect="deny", reasons=("rule deny 'p*'",))


def test_without_a_subject_no_rule_about_calls_counts() -> None:
    assert fixed([SOMETIMES]).judge("pay", "auto") == own("auto")
    assert fixed([SOMETIMES]).judge("pay", "auto", SUBJECT).effect == "deny"


def test_a_rule_counts_until_it_expires_by_the_clock_of_the_policy() -> None:
    rules = [Rule(effect="deny", tool="pay", expires_at=NOW + more, note=str(more)) for more in (-1, 0, 1)]
    assert fixed(rules).judge("pay", "auto", SUBJECT) == Verdict(effect="deny", reasons=("rule deny 'pay': 1",))


def test_the_permission_of_a_policy_replaces_the_tools_own() -> None:
    policy = Policy(defaults={"pay": "deny"})
    assert (policy.own("pay", "auto"), policy.own("read", "confirm")) == ("deny", "confirm")
    assert policy.judge("pay", "auto") == own("deny")


def test_a_denial_of_the_tool_itself_is_lifted_by_no_rule() -> None:
    assert fixed([Rule(effect="auto", tool="pay", when=[ABOVE])]).judge("pay", "deny", SUBJECT) == own("deny")


def test_the_rules_about_a_tool_are_listed_in_their_order() -> None:
    policy = Policy([SOMETIMES, Rule(effect="deny", tool="other"), Rule(effect="auto", tool="p*")])
    policy.remember(of_run(1))
    assert policy.rules_about("pay") == (SOMETIMES, Rule(effect="auto", tool="p*"), of_run(1))


GUARDED = replace(
    SUBJECT, effects=frozenset({"send"}), taints=frozenset({"private", "untrusted"}), arguments={"amount": 1}
)
GUARD = "this run has read private data and untrusted text, and the tool sends data out"


@pytest.mark.parametrize(
    ("permission", "expected"),
    [
        ("auto", Verdict(effect="confirm", reasons=(GUARD,))),
        ("confirm", Verdict(effect="confirm", reasons=("the permission of 'pay' is confirm", GUARD))),
        ("deny", own("deny")),
    ],
)
def test_the_guard_asks_but_lifts_no_denial(permission: Any, expected: Verdict) -> None:
    assert fixed().judge("pay", permission, GUARDED) == expected
    assert fixed().judge("pay", permission, SUBJECT) == own(permission)


ASKED_BEFORE = Verdict(effect="confirm", reasons=("a person was asked about this call of 'pay' before",))


def test_a_call_that_was_asked_about_runs_only_by_a_rule_that_a_person_kept() -> None:
    policy = fixed([Rule(effect="auto", tool="pay")])
    assert policy.judge("pay", "auto", SUBJECT) == Verdict(effect="auto", reasons=("rule auto 'pay'",))
    assert policy.judge("pay", "auto", SUBJECT, was_asked=True) == ASKED_BEFORE
    policy.remember(Rule(effect="auto", tool="pay", id="kept"))
    kept = Verdict(effect="auto", reasons=("rule auto 'pay'", "rule 'kept', auto 'pay'"))
    assert policy.judge("pay", "auto", SUBJECT, was_asked=True) == kept


def test_a_kept_rule_about_the_call_lets_a_call_run_that_was_asked_about() -> None:
    policy = fixed()
    policy.remember(of_run(1))
    assert policy.judge("pay", "confirm", SUBJECT, was_asked=True).effect == "auto"
    assert policy.judge("pay", "auto", replace(SUBJECT, run_id="r_2"), was_asked=True) == ASKED_BEFORE


@pytest.mark.parametrize("permission", ["confirm", "deny"])
def test_a_call_that_was_asked_about_and_does_not_run_by_itself_keeps_its_verdict(permission: Any) -> None:
    assert fixed().judge("pay", permission, SUBJECT, was_asked=True) == own(permission)


# -- people --


def request(**more: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "id": "a_1",
            "call_id": "r_1/1",
            "tool": "pay",
            "arguments": {"amount": 5},
            "reasons": (),
            "effects": ("spend",),
            "caller": Caller(agent="clerk"),
            **more,
        }
    )


NOT_AMONG = "'ada' is not among those who may approve calls that spend"


def test_the_approvers_of_an_effect_alone_may_approve() -> None:
    policy = Policy(approvers={"spend": ["bob", "cleo"]})
    assert policy.approvers == {"spend": frozenset({"bob", "cleo"})}
    assert policy.may_decide(ADA, request()) == NOT_AMONG
    assert policy.may_decide(Decider(principal="cleo"), request()) is None
    assert policy.may_decide(ADA, request(), "deny") is None
    assert policy.may_decide(ADA, request(effects=("read",))) is None


def test_a_decision_is_refused_for_its_author_or_for_its_rule() -> None:
    wide = Rule(effect="auto", tool="*")
    too_wide = "it remembers a rule for '*', and the request shown is a call of 'pay'"
    policy = Policy(approvers={"spend": ["bob"]})
    assert policy.refuses(Decision(verdict="approve", by=ADA, remember=wide), request()) == NOT_AMONG
    bob = Decider(principal="bob")
    assert policy.refuses(Decision(verdict="approve", by=bob, remember=wide), request()) == too_wide
    assert policy.refuses(Decision(verdict="approve", by=bob), request()) is None
    assert policy.refuses(Decision(verdict="deny", by=ADA), request()) is None
    clerk = "'clerk' is the agent that asked, and cannot approve its own request"
    assert policy.refuses(Decision(verdict="deny", by=Decider(principal="clerk")), request()) == clerk


@pytest.mark.parametrize(
    ("approvers", "message"),
    [
        ({"pay": ["ada"]}, "approvers={'pay': ...}: write one of read, write, send, exec, spend, *"),
        ({"spend": "ada"}, "approvers={'spend': 'ada'}: write a list of principals"),
        ({"spend": ["ada", ""]}, "approvers={'spend': ['ada', '']}: write a list of principals"),
        ({"spend": ["ada", 5]}, "approvers={'spend': ['ada', 5]}: write a list of principals"),
    ],
)
def test_approvers_are_lists_of_principals_by_effect(approvers: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policy(approvers=approvers)
    assert str(caught.value) == message


def test_the_star_stands_for_every_effect() -> None:
    assert Policy(approvers={"*": ["bob"]}).may_decide(Decider(principal="bob"), request()) is None


# -- remembering --


def test_a_kept_rule_counts_at_once_and_is_given_to_the_host() -> None:
    told: list[Rule] = []
    policy = Policy(on_remember=told.append)
    policy.remember(rule := Rule(effect="deny", tool="pay"))
    assert (policy.rules_of_decisions, told, policy.judge("pay", "auto").effect) == ((rule,), [rule], "deny")
    assert policy.rules == ()


def test_a_restored_rule_counts_and_is_not_given_to_the_host() -> None:
    told: list[Rule] = []
    policy = Policy([SOMETIMES], on_remember=told.append)
    policy.restore(rule := Rule(effect="deny", tool="pay"))
    assert (policy.rules_of_decisions, told, policy.rules_about("pay")) == ((rule,), [], (SOMETIMES, rule))


@pytest.mark.parametrize("is_session", [False, True])
def test_a_rule_of_a_run_is_kept_with_its_run_alone(is_session: bool) -> None:
    policy = Policy().for_session() if is_session else Policy()
    with pytest.raises(ConfigurationError) as caught:
        policy.remember(Rule(effect="auto", tool="pay", scope="run"))
    assert str(caught.value) == "rule auto 'pay': scope='run' needs the run_id of the run"
    policy.remember(of_run(1))
    policy.remember(Rule(effect="auto", tool="pay", scope="session"))
    assert len(policy.rules_of_decisions) == 2


def test_a_rule_replaces_the_one_with_its_id() -> None:
    policy = fixed()
    for rule_id, note in (("a", "1"), ("", "2"), ("b", "3"), ("", "4"), ("a", "5")):
        policy.remember(Rule(effect="deny", tool="pay", id=rule_id, note=note))
    assert [rule.note for rule in policy.rules_of_decisions] == ["2", "3", "4", "5"]


def test_an_expired_rule_is_not_remembered() -> None:
    now = NOW
    policy = Policy(clock=lambda: now)
    session = policy.for_session()
    for each in (policy, session):
        each.restore(Rule(effect="deny", tool="pay", expires_at=NOW + 5, note="short"))
        each.restore(Rule(effect="deny", tool="pay", note="long"))
    assert [rule.note for rule in session.rules_of_decisions] == ["short", "long"] * 2
    now += 5
    assert [rule.note for rule in session.rules_of_decisions] == ["long"] * 2
    policy.restore(Rule(effect="deny", tool="pay", note="new"))
    assert [rule.note for rule in policy.index().rules] == ["long", "new"]


def test_the_oldest_auto_rules_of_runs_are_dropped_beyond_the_limit() -> None:
    policy = fixed()
    policy._remembered = tuple(of_run(number) for number in range(RUN_RULES_LIMIT))
    others = [
        Rule(effect="auto", tool="pay", note="workspace"),
        of_run(1, "deny"),
        Rule(effect="auto", tool="pay", scope="session"),
    ]
    for rule in others:
        policy.restore(rule)
    assert len(policy.rules_of_decisions) == RUN_RULES_LIMIT + 3
    policy.restore(of_run(5_000))
    policy.restore(of_run(5_001))
    runs = [rule for rule in policy.rules_of_decisions if rule not in others]
    assert [runs[0], *runs[-2:]] == [of_run(2), of_run(5_000), of_run(5_001)]
    assert (len(runs), [rule for rule in policy.rules_of_decisions if rule in others]) == (RUN_RULES_LIMIT, others)


@pytest.mark.parametrize("is_session", [False, True])
def test_the_rules_of_a_run_are_dropped_with_it(is_session: bool) -> None:
    policy = fixed([SOMETIMES])
    policy = policy.for_session() if is_session else policy
    for number in (1, 2, 1):
        policy.remember(of_run(number))
    policy.remember(kept := Rule(effect="deny", tool="pay", scope="session"))
    assert len(policy.index().rules) == 5
    policy.forget("r_1")
    assert policy.rules_of_decisions == (of_run(2), kept)
    assert policy.index().rules == (SOMETIMES, of_run(2), kept)


def test_a_run_without_rules_changes_no_index() -> None:
    policy = fixed()
    policy.remember(of_run(1))
    index = policy.index()
    policy.forget("r_2")
    assert policy.index() is index


# -- sessions --


def test_a_session_has_the_rules_of_its_policy_and_later_ones() -> None:
    policy = fixed([SOMETIMES])
    session = policy.for_session()
    inner = session.for_session()
    session.restore(own_rule := Rule(effect="confirm", tool="pay", scope="session"))
    policy.remember(later := Rule(effect="deny", tool="p*"))
    assert session.rules == policy.rules == (SOMETIMES,)
    assert session.index().rules == inner.index().rules == (SOMETIMES, later, own_rule)
    assert session.index() is session.index()
    assert (session.rules_of_decisions, policy.rules_of_decisions) == ((later, own_rule), (later,))
    assert session.constant_verdict("other", "auto") == own("auto", "other")
    assert session.constant_verdict("pay", "auto") is None
    assert session.judge("pay", "auto") == Verdict(effect="deny", reasons=("rule deny 'p*'",))
    session.restore(last := Rule(effect="deny", tool="read", scope="session"))
    assert session.index().rules == (SOMETIMES, later, own_rule, last)
    assert session.constant_verdict("read", "auto") == Verdict(effect="deny", reasons=("rule deny 'read'",))
    policy.remember(Rule(effect="deny", tool="new"))
    assert session.judge("new", "auto") == Verdict(effect="deny", reasons=("rule deny 'new'",))
    policy.remember(Rule(effect="deny", tool="other"))
    assert session.constant_verdict("other", "auto") == Verdict(effect="deny", reasons=("rule deny 'other'",))


def test_a_rule_of_the_workspace_goes_to_the_policy_of_the_session() -> None:
    told: list[Rule] = []
    policy = Policy(on_remember=told.append)
    session, other = policy.for_session(), policy.for_session()
    rules = [Rule(effect="deny", tool="pay", scope=scope) for scope in ("workspace", "session")]
    for rule in rules:
        session.remember(rule)
    assert (policy.rules_of_decisions, other.rules_of_decisions, session.rules_of_decisions) == (
        (rules[0],),
        (rules[0],),
        tuple(rules),
    )
    assert told == rules


def test_a_session_has_the_approvers_the_clock_and_the_permissions_of_its_policy() -> None:
    policy = fixed(defaults={"pay": "deny", "read": "confirm"}, approvers={"spend": ["bob"]})
    session = policy.for_session()
    assert (session.defaults, session.approvers) == (policy.defaults, policy.approvers)
    assert session.clock is policy.clock
    assert policy.for_session({"pay": "auto", "new": "deny"}).defaults == {
        "pay": "auto",
        "read": "confirm",
        "new": "deny",
    }
    assert policy.for_session({}).defaults == policy.defaults


# -- joined --


def test_a_joined_policy_has_the_rules_of_both_and_the_stricter_permission() -> None:
    one = fixed([SOMETIMES], defaults={"a": "auto", "b": "deny", "c": "confirm"})
    one.restore(kept := Rule(effect="deny", tool="x"))
    other = Policy([Rule(effect="auto", tool="y")], defaults={"b": "confirm", "c": "deny", "d": "auto"})
    both = one.merge_with(other)
    assert both.rules == (SOMETIMES, kept, Rule(effect="auto", tool="y"))
    assert both.defaults == {"a": "auto", "b": "deny", "c": "deny", "d": "auto"}
    assert both.clock is one.clock


def test_a_joined_policy_lets_those_approve_whom_both_name() -> None:
    one = Policy(approvers={"read": ["ada", "bob"], "send": ["ada"]})
    other = Policy(approvers={"read": ["bob", "cleo"], "spend": ["cleo"]})
    assert one.merge_with(other).approvers == {
        "read": frozenset({"bob"}),
        "send": frozenset({"ada"}),
        "spend": frozenset({"cleo"}),
    }


def test_a_joined_policy_gives_kept_rules_to_the_host_of_the_first_that_has_one() -> None:
    first: list[Rule] = []
    second: list[Rule] = []
    rule = Rule(effect="deny", tool="pay")
    one, other = Policy(on_remember=first.append), Policy(on_remember=second.append)
    one.merge_with(other).remember(rule)
    assert (first, second) == ([rule], [])
    Policy().merge_with(other).remember(rule)
    assert (first, second) == ([rule], [rule])


# -- looking at it --


def test_a_policy_checks_its_rules_and_permissions_for_tools() -> None:
    def pay(amount: int) -> None: ...

    expired = Rule(effect="auto", tool="pay", expires_at=NOW, source="here")
    policy = fixed([expired, Rule(effect="deny", tool="refund")], defaults={"pay": "deny", "other": "auto"})
    tools = {"pay": from_function(pay)}
    gone = RuleProblem(rule=expired, place="here", message="it has expired: take it out, or set another expires_at")
    denied = replace(gone, message="an auto rule never lifts deny: change the permission of 'pay' itself")
    missing = RuleProblem(
        rule=Rule(effect="deny", tool="refund"),
        place="rule 2",
        message="there is no tool 'refund': mend the name, or set optional = true",
    )
    unknown = RuleProblem(rule=None, place="permissions", message="there is no tool 'other': mend the name")
    assert policy.check(tools) == [gone, denied, missing, unknown]
    assert policy.check(tools, is_whole=False) == [gone, denied]


def test_the_digest_of_a_policy_covers_rules_permissions_and_approvers() -> None:
    """A written value: runs on record have it."""
    rules = [
        SOMETIMES,
        Rule(effect="auto", tool="p*", agent="clerk", tool_digest="sha256:a", expires_at=NOW),
        of_run(1),
        Rule(effect="deny", tool="x", scope="session"),
    ]
    policy = Policy(rules, defaults={"pay": "deny"}, approvers={"spend": ["bob", "ada"]})
    assert policy.digest == "sha256:0c2592507f6dd17470f3bb364bc28bab30b00117f9bb21060749821e52f95b50"
    assert Policy(rules[::-1], defaults={"pay": "deny"}, approvers={"spend": ["ada", "bob"]}).digest == policy.digest
    policy.remember(Rule(effect="deny", tool="pay"))
    assert policy.digest == Policy(rules, defaults={"pay": "deny"}, approvers=policy.approvers).digest
    assert policy.digest != Policy(rules).digest


def test_a_digest_is_made_once_and_again_after_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    made, as_data = list[Rule](), policy_module._as_data
    monkeypatch.setattr(policy_module, "_as_data", lambda rule: made.append(rule) or as_data(rule))
    policy, other = Policy([SOMETIMES]), Policy([of_run(1)], defaults={"pay": "deny"})
    plain, own = policy.for_session(), policy.for_session({"look": "deny"})
    for _ in range(3):
        assert policy.digest == plain.digest == Policy([SOMETIMES]).digest != own.digest
        assert own.digest == Policy([SOMETIMES], defaults={"look": "deny"}).digest
    # Three of them are new policies each time.
    assert len(made) == 2 + 3 * 2
    policy.replace(other)
    assert policy.digest == plain.digest == other.digest
    assert own.digest == Policy([of_run(1)], defaults={"pay": "deny", "look": "deny"}).digest
    policy.replace(Policy([of_run(1)], defaults={"pay": "deny"}, approvers={"spend": ["ada"]}))
    assert policy.digest == plain.digest != other.digest
