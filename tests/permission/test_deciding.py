"""The persons who may decide, and the narrow rules that are remembered."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from toolwire.facade.registry import ToolRegistry
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.condition import Condition
from toolwire.permission.deciding import narrow_rule, rule_for
from toolwire.permission.policy import RUN_RULES_LIMIT, Policy, Rule, Subject
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller, Reply, ToolCall
from toolwire.vocabulary.effects import Effect
from toolwire.vocabulary.errors import ConfigurationError

ROOT_AGENT = Caller(principal="ada", agent="root")
SHOWN = {"amount": 5, "to": "bob", "tags": ["a"]}


def request(tool: str = "pay", effects: tuple[Effect, ...] = ("spend",), **more: Any) -> ApprovalRequest:
    given: dict[str, Any] = {
        "caller": ROOT_AGENT,
        "run_id": "r_1",
        "tool_digest": "sha256:a",
        "arguments": SHOWN,
        **more,
    }
    return ApprovalRequest(id="a_1", call_id="r_1/1", tool=tool, reasons=(), effects=effects, **(given | more))


def subject(arguments: Mapping[str, Any] = SHOWN, **more: Any) -> Subject:
    return Subject(**{"arguments": arguments, "caller": ROOT_AGENT, "run_id": "r_1", "tool_digest": "sha256:a", **more})


NEAR_ARGUMENTS: list[dict[str, Any]] = [
    {**SHOWN, "amount": 6},
    {**SHOWN, "amount": 5.000001},
    {**SHOWN, "amount": "5"},
    {**SHOWN, "amount": True},
    {**SHOWN, "amount": [5]},
    {**SHOWN, "amount": None},
    {**SHOWN, "amount": -5},
    {**SHOWN, "to": "Bob"},
    {**SHOWN, "to": "bob "},
    {**SHOWN, "to": "bob\u200b"},
    {**SHOWN, "to": "ｂob"},
    {**SHOWN, "to": "b\u043eb"},
    {**SHOWN, "to": ["bob"]},
    {**SHOWN, "to": {"name": "bob"}},
    {**SHOWN, "tags": []},
    {**SHOWN, "tags": ["a", "b"]},
    {**SHOWN, "tags": ["A"]},
    {**SHOWN, "tags": "a"},
    {**SHOWN, "memo": "x"},
    {**SHOWN, "memo": None},
    {"amount": 5, "to": "bob"},
    {},
    {"arguments": SHOWN},
    {"Amount": 5, "to": "bob", "tags": ["a"]},
]
NEAR_CALLS: list[tuple[str, Subject]] = [
    *(("pay", subject(arguments)) for arguments in NEAR_ARGUMENTS),
    ("pays", subject()),
    ("Pay", subject()),
    ("bank/pay", subject()),
    ("pay", subject(run_id="r_2")),
    ("pay", subject(run_id="")),
    ("pay", subject(caller=Caller(principal="ada", agent="sub"))),
    ("pay", subject(caller=Caller())),
    ("pay", subject(tool_digest="sha256:b")),
]


@pytest.mark.threat(9)
def test_an_always_covers_the_very_call_that_was_shown_and_nothing_near_it() -> None:
    policy = Policy()
    policy.remember(rule_for(request()))
    assert policy.judge("pay", "confirm", subject()).effect == "auto"
    assert len(NEAR_CALLS) >= 30
    assert [case for case in NEAR_CALLS if policy.judge(case[0], "confirm", case[1]).effect != "confirm"] == []


@pytest.mark.threat(9)
def test_a_rule_for_the_tool_alone_would_cover_nearly_all_that_is_near() -> None:
    policy = Policy([Rule(effect="auto", tool="pay")])
    covered = [case for case in NEAR_CALLS if policy.judge(case[0], "confirm", case[1]).effect == "auto"]
    assert len(covered) == len(NEAR_CALLS) - 3


@pytest.mark.parametrize("name", ["[ps]ay", "pay*", "a?b", "[!a]"])
def test_a_name_that_looks_like_a_pattern_is_remembered_as_that_name(name: str) -> None:
    policy = Policy()
    policy.remember(rule_for(request(tool=name)))
    others = ("pay", "say", "pays", "aab", "b", "x")
    judged = [policy.judge(tool, "confirm", subject()).effect for tool in (name, *others)]
    assert judged == ["auto", *["confirm"] * len(others)]


EQUAL = Condition(path="/arguments/to", op="==", value="bob")
WIDE: list[tuple[dict[str, Any], str]] = [
    ({"tool": "*"}, "it remembers a rule for '*', and the request shown is a call of 'pay'"),
    ({"tool": "pa*"}, "it remembers a rule for 'pa*', and the request shown is a call of 'pay'"),
    ({"tool": "[p]ay"}, "it remembers a rule for '[p]ay', and the request shown is a call of 'pay'"),
    ({"tool": "refund"}, "it remembers a rule for 'refund', and the request shown is a call of 'pay'"),
    ({"agent": "sub"}, "it remembers a rule for another agent, 'sub'"),
    ({"scope": "run", "run_id": "r_2"}, "it remembers a rule for another run, 'r_2'"),
    ({"tool_digest": "sha256:b"}, "it remembers a rule for another version of the tool"),
    ({"effect": "deny"}, "its rule says 'deny' and its verdict is 'approve'"),
    (
        {"when": [Condition(path="/arguments/amount", op=">", value=5)]},
        "it remembers a rule whose condition amount > 5 does not hold for the request shown",
    ),
    (
        {"when": [EQUAL, Condition(path="/arguments/memo", op="==", value="x")]},
        "it remembers a rule whose condition memo == 'x' does not hold for the request shown",
    ),
]


@pytest.mark.parametrize(("rule", "reason"), WIDE, ids=range(len(WIDE)))
def test_a_rule_wider_than_the_request_is_refused(rule: dict[str, Any], reason: str) -> None:
    remember = Rule(**{"effect": "auto", "tool": "pay", **rule})
    decision = Decision(verdict="approve", remember=remember)
    assert Policy().refuses(decision, request()) == reason


@pytest.mark.parametrize(
    "decision",
    [
        Decision(verdict="approve", remember=rule_for(request())),
        Decision(verdict="approve", remember=rule_for(request(), same_arguments=False, scope="workspace")),
        Decision(verdict="approve", remember=Rule(effect="auto", tool="pay", when=[EQUAL], scope="run")),
        Decision(verdict="deny", remember=Rule(effect="deny", tool="pay")),
        Decision(verdict="edit", arguments={"to": "eve"}, remember=rule_for(request(arguments={"to": "eve"}))),
        Decision(verdict="approve"),
    ],
)
def test_a_rule_no_wider_than_the_request_counts(decision: Decision) -> None:
    assert Policy().refuses(decision, request()) is None


def test_what_is_remembered_is_for_the_agent_the_run_and_the_tool_that_were_shown() -> None:
    kept = narrow_rule(Rule(effect="auto", tool="pay", scope="run"), request())
    assert (kept.agent, kept.run_id, kept.tool_digest, kept.id) == ("root", "r_1", "sha256:a", "remembered:a_1")


ADA, MODEL, AGENT = Decider(principal="ada"), Decider(principal="m", channel="model"), Decider(principal="root")
BOB = Decider(principal="bob")
SPEND = {"spend": ["ada"]}
UNNAMED = "a model may deny, but may approve only if the policy names it among the approvers"
IS_THE_AGENT = "is the agent that asked, and cannot approve its own request"
ITSELF = f"'root' {IS_THE_AGENT}"


def not_among(who: str, what: str) -> str:
    return f"{who!r} is not among those who may approve {what}"


@pytest.mark.parametrize(
    ("approvers", "by", "verdict", "effects", "reason"),
    [
        ({}, ADA, "approve", ("spend",), None),
        ({}, Decider(), "approve", ("spend",), None),
        (SPEND, ADA, "approve", ("spend",), None),
        (SPEND, ADA, "edit", ("spend",), None),
        (SPEND, BOB, "approve", ("read",), None),
        (SPEND, BOB, "approve", ("spend", "read"), not_among("bob", "calls that spend")),
        (SPEND, BOB, "edit", ("spend",), not_among("bob", "calls that spend")),
        (SPEND, BOB, "approve", (), not_among("bob", "calls that spend")),
        (SPEND, Decider(), "approve", ("spend",), not_among("an approver without a name", "calls that spend")),
        (SPEND, BOB, "deny", ("spend",), None),
        ({"*": ["ada"]}, BOB, "approve", ("read",), not_among("bob", "any call")),
        ({}, MODEL, "approve", ("read",), UNNAMED),
        ({}, MODEL, "edit", ("read",), UNNAMED),
        ({}, MODEL, "deny", ("read",), None),
        ({}, MODEL, "stop_run", ("read",), None),
        ({"read": ["m"]}, MODEL, "approve", ("read",), None),
        ({"read": ["m"], "send": ["ada"]}, MODEL, "approve", ("read", "send"), not_among("m", "calls that send")),
        ({}, AGENT, "approve", ("read",), ITSELF),
        ({}, AGENT, "deny", ("read",), ITSELF),
        ({"*": ["root"]}, AGENT, "approve", ("read",), ITSELF),
        ({}, Decider(principal="agent:root"), "approve", (), f"'agent:root' {IS_THE_AGENT}"),
    ],
)  # fmt: skip
def test_only_named_principals_may_decide(
    approvers: Any, by: Decider, verdict: Any, effects: tuple[Effect, ...], reason: str | None
) -> None:
    assert Policy(approvers=approvers).may_decide(by, request(effects=effects), verdict) == reason


class Till:
    """Pays, and knows how often; asks with an answer of the test's."""

    def __init__(self, answer: Decision | None = None) -> None:
        self.paid: list[float] = []
        self.asked: list[ApprovalRequest] = []
        self.answer = answer

    def pay(self, amount: float) -> str:
        """Pays."""
        self.paid.append(amount)
        return "paid"

    def ask(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.answer or Decision(verdict="approve", remember=rule_for(request, scope="session"))


def registry_of(till: Till, policy: Policy | None = None) -> ToolRegistry:
    registry = ToolRegistry(policy=policy, approver=till.ask)
    registry.register(till.pay, permission="confirm")
    return registry


def test_what_a_person_chose_to_remember_is_not_asked_again_and_the_rest_is() -> None:
    till = Till()
    registry = registry_of(till)
    for amount in (5, 5, 5.0, 6):
        assert registry.invoke("pay", {"amount": amount}).success
    assert [asked.arguments["amount"] for asked in till.asked] == [5, 6]


def test_a_decision_that_is_too_wide_lets_nothing_run_and_nothing_is_remembered() -> None:
    till = Till(Decision(verdict="approve", remember=Rule(effect="auto", tool="*")))
    registry = registry_of(till)
    result = registry.invoke("pay", {"amount": 5})
    assert (till.paid, registry.policy.rules_of_decisions, result.error) == (
        [],
        (),
        f"'pay' was not run: a person has to allow it, and {WIDE[0][1]}.",
    )


def test_a_decision_without_authority_runs_nothing() -> None:
    till = Till(Decision(verdict="approve", by=Decider(principal="bob")))
    assert not registry_of(till, Policy(approvers={"*": ["ada"]})).invoke("pay", {"amount": 5}).success
    assert (till.paid, len(till.asked)) == ([], 1)


async def test_a_session_keeps_its_rules_to_itself_and_shares_those_of_the_workspace() -> None:
    written: list[Rule] = []
    till = Till()
    registry = registry_of(till, Policy(on_remember=written.append))
    one, other = Session(registry, protocol="openai"), Session(registry, protocol="openai")

    async def pay(session: Session, amount: float) -> int:
        await session.turn(Reply(calls=(ToolCall("pay", {"amount": amount}),)))
        return len(till.asked)

    asked = [await pay(session, 5) for session in (one, one, other, other)]
    till.answer = None
    registry.policy.remember(Rule(effect="auto", tool="pay"))
    asked += [await pay(session, 7) for session in (one, other)]
    assert asked == [1, 1, 2, 2, 2, 2]
    assert [rule.scope for rule in written] == ["session", "session", "workspace"]
    assert registry.policy.rules_of_decisions == (written[2],)


def test_a_session_hands_a_workspace_rule_up() -> None:
    policy = Policy()
    session = policy.for_session()
    session.remember(Rule(effect="auto", tool="pay"))
    session.remember(Rule(effect="auto", tool="refund", scope="session"))
    judged = [
        (each.judge("pay", "confirm").effect, each.judge("refund", "confirm").effect) for each in (policy, session)
    ]
    assert judged == [("auto", "confirm"), ("auto", "auto")]
    assert [rule.tool for rule in session.rules_of_decisions] == ["pay", "refund"]


def test_rules_of_a_run_are_forgotten_with_it() -> None:
    policy = Policy()
    policy.remember(rule_for(request()))
    policy.forget("r_1")
    assert (policy.rules_of_decisions, policy.judge("pay", "confirm", subject()).effect) == ((), "confirm")


@pytest.mark.parametrize("more", [0, 1])
def test_the_oldest_rules_of_runs_go_first(more: int) -> None:
    policy = Policy()
    for number in range(RUN_RULES_LIMIT + more):
        policy.remember(Rule(effect="auto", tool="pay", scope="run", run_id=f"r_{number}"))
    assert (len(policy.rules_of_decisions), policy.rules_of_decisions[0].run_id) == (RUN_RULES_LIMIT, f"r_{more}")


def test_a_rule_for_a_run_says_which() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policy().remember(Rule(effect="auto", tool="pay", scope="run"))
    assert str(caught.value) == "rule auto 'pay': scope='run' needs the run_id of the run"


def test_rules_are_remembered_from_many_threads_at_once_and_none_is_lost() -> None:
    policy = Policy().for_session()
    judged: list[str] = []

    def remember(number: int) -> None:
        for each in range(20):
            tool = f"t_{number}_{each}"
            policy.remember(Rule(effect="auto", tool=tool, scope="session" if each % 2 else "workspace"))
            judged.append(policy.judge(tool, "confirm").effect)

    threads = [threading.Thread(target=remember, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (set(judged), len(judged), len(policy.rules_of_decisions)) == ({"auto"}, 160, 160)
