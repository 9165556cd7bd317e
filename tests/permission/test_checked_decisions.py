"""A decision is checked against its request: the ids, the author, the verdict, the rule, the edit, the answer."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.condition import Condition
from toolwire.permission.deciding import check_authority, narrow_rule, rule_for, too_wide
from toolwire.permission.rule import Rule
from toolwire.vocabulary.calls import Caller

ADA = Decider(principal="ada", channel="terminal")
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
NUMBER = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


def request(**more: Any) -> ApprovalRequest:
    given: dict[str, Any] = {
        "id": "a_1",
        "call_id": "r_1/1",
        "run_id": "r_1",
        "tool": "pay",
        "tool_digest": "sha256:a",
        "caller": Caller(principal="ada", agent="root"),
        "arguments": {"amount": 5},
        "arguments_digest": "sha256:b",
        "arguments_schema": SCHEMA,
        "reasons": (),
        "effects": ("spend",),
    }
    return ApprovalRequest(**(given | more))


def question(**more: Any) -> ApprovalRequest:
    return request(kind="question", answer_schema=NUMBER, effects=(), **more)


def decision(verdict: Any = "approve", by: Decider = ADA, **more: Any) -> Decision:
    return Decision(verdict=verdict, by=by, **more)


def refusal(of: ApprovalRequest, given: Decision, **more: Any) -> tuple[str, str]:
    """The code and the text of the refusal, which names the request."""
    with pytest.raises(DecisionRefused) as caught:
        check_authority(of, given, **more)
    assert caught.value.request_id == "a_1"
    return caught.value.code, str(caught.value)


def test_a_decision_may_leave_out_the_ids_or_give_those_of_the_request() -> None:
    check_authority(request(), decision())
    check_authority(request(), decision(request_id="a_1", seen_arguments_digest="sha256:b"))


def test_a_decision_for_another_request_is_refused() -> None:
    code, text = refusal(request(), decision(request_id="a_2"))
    assert (code, "the decision is for another request, 'a_2'" in text) == ("unknown_request", True)


def test_a_decision_on_other_arguments_than_the_shown_ones_is_refused() -> None:
    code, text = refusal(request(), decision(seen_arguments_digest="sha256:c"))
    assert (code, "for other arguments than the request's" in text) == ("approval_mismatch", True)


def test_only_the_named_principals_approve_an_effect_unless_they_were_checked_already() -> None:
    named = request(approvers={"spend": ("bob",)})
    code, text = refusal(named, decision())
    assert (code, "'ada' is not among those who may approve calls that spend" in text) == ("not_permitted", True)
    check_authority(named, decision(by=Decider(principal="bob")))
    check_authority(named, decision(), is_vetted=True)


def test_a_model_approves_only_for_an_owner_who_has_vetted_it() -> None:
    model = decision(by=Decider(principal="judge", channel="model"))
    code, text = refusal(request(), model)
    assert (code, "a model may deny" in text) == ("not_permitted", True)
    check_authority(request(), model, is_vetted=True)
    check_authority(request(), decision("deny", by=Decider(principal="judge", channel="model")))


def test_the_agent_that_asks_approves_nothing_of_its_own_even_when_vetted() -> None:
    for name in ("root", "agent:root"):
        own = decision(by=Decider(principal=name))
        for is_vetted in (False, True):
            assert refusal(request(), own, is_vetted=is_vetted)[0] == "not_permitted"


def test_a_rule_that_covers_more_than_was_shown_is_refused() -> None:
    code, text = refusal(request(), decision(remember=Rule(effect="auto", tool="*")))
    assert (code, "it remembers a rule for '*'" in text) == ("not_permitted", True)


WRONG_VERDICTS = [
    (
        request(),
        decision("answer", answer={"seats": 2}),
        (
            "request a_1 is a request for approval, and the verdict is 'answer': "
            "write 'approve' or 'edit' or 'deny' or 'stop_run'"
        ),
    ),
    (
        question(),
        decision(),
        (
            "request a_1 is a question, and the verdict is 'approve': "
            "write verdict='answer' with answer=... or 'deny' or 'stop_run'"
        ),
    ),
    (
        question(),
        decision("answer", answer={"seats": 2}, remember=Rule(effect="deny", tool="pay")),
        "request a_1 is a question: write no remember=",
    ),
]


@pytest.mark.parametrize(("of", "given", "told"), WRONG_VERDICTS)
def test_a_verdict_of_the_other_kind_of_request_is_refused(of: ApprovalRequest, given: Decision, told: str) -> None:
    code, text = refusal(of, given)
    assert (code, told in text) == ("invalid_answer", True), text


def test_an_answer_fits_the_schema_of_its_question() -> None:
    check_authority(question(), decision("answer", answer={"seats": 2}))
    assert refusal(question(), decision("answer", answer={"seats": "two"}))[0] == "invalid_answer"
    check_authority(question(), decision("deny"))


def test_an_edit_fits_the_schema_of_the_tool() -> None:
    check_authority(request(), decision("edit", arguments={"amount": 6}))
    assert refusal(request(), decision("edit", arguments={"amount": "six"}))[0] == "invalid_edit"


@pytest.mark.parametrize(
    "arguments", [{"amount": 6}, {}, {"amount": 5, "to": "me"}, {"amount": "5"}, {"amount": object()}]
)
def test_an_approval_with_other_arguments_is_refused_and_told_of_edit(arguments: dict[str, Any]) -> None:
    assert refusal(request(), decision(arguments=arguments)) == (
        "invalid_edit",
        (
            "request a_1 was approved with other arguments than it shows: write verdict='edit' to run these arguments, "
            "or leave them out"
        ),
    )


def test_an_approval_may_repeat_the_arguments_that_were_shown_or_written() -> None:
    check_authority(request(), decision(arguments={"amount": 5}))
    check_authority(request(given={"amount": "5"}), decision(arguments={"amount": "5"}))
    check_authority(request(), decision("deny", arguments={"amount": 6}))


EDITED = Rule(effect="auto", tool="pay", when=(Condition(path="/arguments/amount", op="==", value=6),))


def test_the_rule_of_an_edit_holds_for_the_edited_arguments_and_not_for_the_shown_ones() -> None:
    assert too_wide(decision("edit", arguments={"amount": 6}, remember=EDITED), request()) is None
    assert too_wide(decision("approve", arguments={"amount": 6}, remember=EDITED), request()) is not None


def test_a_remembered_rule_says_which_decision_it_comes_from_unless_it_says_so_itself() -> None:
    assert narrow_rule(Rule(effect="auto", tool="pay"), request()).source == "the decision on a_1"
    assert narrow_rule(Rule(effect="auto", tool="pay", source="policy.toml"), request()).source == "policy.toml"


def test_a_rule_for_any_arguments_has_no_condition() -> None:
    assert rule_for(request(), same_arguments=False).when == ()
    assert len(rule_for(request()).when) == 1


PATTERNS = [
    ("pay", "pay", True),
    ("p*", "p*", False),
    ("p[*]", "p*", True),
    ("p?y", "p?y", False),
    ("p[?]y", "p?y", True),
    ("p[a]y", "p[a]y", False),
    ("p[[]a]y", "p[a]y", True),
]


@pytest.mark.parametrize(("pattern", "tool", "is_exact"), PATTERNS)
def test_the_pattern_of_a_remembered_rule_matches_this_tool_alone(pattern: str, tool: str, is_exact: bool) -> None:
    rule = Rule(effect="auto", tool=pattern)
    assert (too_wide(decision(remember=rule), request(tool=tool)) is None) is is_exact
