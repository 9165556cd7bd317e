"""The step that asks for permission, alone: its outcome is compared as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from tests.invocation.alone import Person, entry_of, ready, scope_of
from toolwire.invocation.authorize import authorize, with_edits
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.validate import Prepared
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.policy import Policy, Rule
from toolwire.runtime.step import step
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep

ADA = Decider(principal="ada", channel="cli", authn="signed")
NOW = 1_800_000_000.0
DOUBT = InDoubtStep(idempotent="no", is_composite=False, started_at=0.0, attempt=3, idempotency_key="r_1:r_1:k")
EVIDENCE = (
    "this may already have run: attempt 3 began 1970-01-01T00:00:00+00:00, and its end is not on record "
    "(idempotency key r_1:r_1:k)"
)


def pay(amount: int, to: str = "Bob") -> str:
    return f"paid {amount}"


def paying(person: Person | None = None, **more: Any) -> Scope:
    """A scope in which a person is asked before `pay` runs."""
    return scope_of(pay, **{"permission": "confirm", "approver": person, "clock": lambda: NOW, **more})


def authorized(prepared: Prepared, scope: Scope, doubt: InDoubtStep | None = None) -> Prepared | Outcome:
    return step(authorize(prepared, scope, doubt))


def told(person: Person, **more: Any) -> dict[str, Any]:
    """The facts about a decision of Ada's."""
    decision = person.decision
    assert decision is not None
    return {
        "request_id": person.asked[0].id,
        "verdict": decision.verdict,
        "principal": "ada",
        "channel": "cli",
        "authn": "signed",
        "decided_at": NOW,
        **more,
    }


def denied(prepared: Prepared, reason: str, approval: Any = None) -> ToolResult:
    """The whole result of a call that may not run."""
    return ToolResult.failed(
        "denied",
        f"'pay' may not be run: {reason}.",
        data={"reason": reason},
        call=prepared.asked,
        metadata=None if approval is None else {"approval": approval},
    )


def test_a_call_that_needs_no_approval_is_returned_as_it_is() -> None:
    scope = paying(permission="auto")
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) is prepared
    assert (prepared.attempt, prepared.approval, prepared.request_id) == (1, None, "")


def test_a_denial_gives_every_reason() -> None:
    scope = paying(permission="auto", policy=Policy([Rule(effect="deny", tool="p*"), Rule(effect="deny", tool="pay")]))
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) == denied(prepared, "rule deny 'p*'; rule deny 'pay'")


def test_an_approved_call_keeps_the_facts_about_the_decision() -> None:
    person = Person("approve", by=ADA)
    scope = paying(person)
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) is prepared
    assert (prepared.approval, prepared.request_id) == (told(person), person.asked[0].id)


@pytest.mark.parametrize(
    ("verdict", "reason", "is_told"),
    [
        ("deny", "too much", "too much"),
        ("deny", "", "a person refused it"),
        ("stop_run", "enough", "enough"),
        ("stop_run", "", "a person stopped the run"),
    ],
)
@pytest.mark.parametrize("run", [None, Run()])
def test_a_refused_call_tells_the_reason_and_the_decision(
    verdict: Any, reason: str, is_told: str, run: Run | None
) -> None:
    person = Person(verdict, reason=reason, by=ADA)
    scope = paying(person, run=None if run is None else Run())
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) == denied(prepared, is_told, told(person))
    if scope.run is not None:
        assert scope.run.stopped == (is_told if verdict == "stop_run" else None)


def test_an_answer_approves_nothing() -> None:
    ledger = MemoryLedger()
    scope = paying(ledger=ledger, can_suspend=True)
    assert isinstance(authorized(ready(scope, amount=5), scope), Pending)
    (asked,) = ledger.records.requests.values()
    asked.decision = Decision(verdict="answer", answer=1, request_id=asked.request.id, by=ADA, at=NOW)
    prepared = ready(scope, amount=5)
    facts = {"request_id": asked.request.id, "verdict": "answer", "principal": "ada", "channel": "cli"}
    facts |= {"authn": "signed", "decided_at": NOW}
    assert authorized(prepared, scope) == denied(prepared, "an answer approves nothing", facts)


# -- what changes while a person decides --


@pytest.mark.parametrize("verdict", ["approve", "edit"])
def test_a_tool_that_is_disabled_meanwhile_does_not_run(verdict: Any) -> None:
    def disable() -> None:
        entry_of(scope).disabled = "it broke"

    more = {"arguments": {"amount": 4}} if verdict == "edit" else {}
    person = Person(verdict, meanwhile=disable, by=ADA, **more)
    scope = paying(person)
    prepared = ready(scope, amount=5)
    result = authorized(prepared, scope)
    assert isinstance(result, ToolResult)
    assert result.error == "'pay' is disabled: it broke."
    assert (result.call, result.metadata) == (prepared.call, {"approval": told(person)})


def test_a_refusal_counts_more_than_a_tool_that_is_disabled_meanwhile() -> None:
    def disable() -> None:
        entry_of(scope).disabled = "it broke"

    person = Person("deny", meanwhile=disable, by=ADA)
    scope = paying(person)
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) == denied(prepared, "a person refused it", told(person))


@pytest.mark.parametrize("verdict", ["approve", "edit"])
def test_a_tool_that_is_denied_meanwhile_does_not_run(verdict: Any) -> None:
    def deny() -> None:
        entry_of(scope).permission = "deny"

    person = Person(verdict, meanwhile=deny, by=ADA, **({"arguments": {"amount": 4}} if verdict == "edit" else {}))
    scope = paying(person)
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope) == denied(prepared, "the permission of 'pay' is deny", told(person))


class Noting(Policy):
    """A policy that keeps the requests about which it is asked whether a person may decide them."""

    requests: list[ApprovalRequest]

    def may_decide(self, by: Decider, request: ApprovalRequest, verdict: Any = "approve") -> str | None:
        self.requests.append(request)
        return super().may_decide(by, request, verdict)


@pytest.mark.parametrize("verdict", ["approve", "edit"])
def test_the_decider_must_be_allowed_to_cause_the_effects_of_the_call_as_it_is_now(verdict: Any) -> None:
    """Ada may approve calls that read. Meanwhile, or by her edit, the call has become one that sends."""

    def effects_of(arguments: Any, seen: Any) -> list[str]:
        return ["send", "read"] if arguments["amount"] == 4 or seen.urls else ["read"]

    def see() -> None:
        run.saw(["https://a.example/"] if verdict == "approve" else [])

    run, caller = Run(), Caller(principal="eve", agent="clerk")
    policy = Noting(approvers={"send": ["bob"], "read": ["ada"]})
    policy.requests = []
    person = Person(verdict, meanwhile=see, by=ADA, **({"arguments": {"amount": 4}} if verdict == "edit" else {}))
    scope = paying(
        person, run=run, policy=policy, caller=caller, options={"effects": ["send", "read"], "effects_of": effects_of}
    )
    prepared = ready(scope, amount=5)
    reason = "'ada' is not among those who may approve calls that send"
    assert authorized(prepared, scope) == denied(prepared, reason, told(person))
    assert policy.requests[-1] == ApprovalRequest(
        id=person.asked[0].id,
        call_id="r_1",
        tool="pay",
        arguments={},
        reasons=(),
        caller=caller,
        effects=("read", "send"),
    )


@pytest.mark.parametrize("verdict", ["approve", "edit"])
def test_the_control_whoever_may_cause_them_lets_it_run(verdict: Any) -> None:
    policy = Policy(approvers={"send": ["ada"], "read": ["ada"]})
    person = Person(verdict, by=ADA, **({"arguments": {"amount": 4}} if verdict == "edit" else {}))
    effects = {"effects": ["send", "read"], "effects_of": lambda arguments, seen: ["send"]}
    scope = paying(person, policy=policy, options=effects)
    assert isinstance(authorized(ready(scope, amount=5), scope), Prepared)


# -- edits --


def edited(scope: Scope, arguments: dict[str, Any], **given: Any) -> Prepared | ToolResult:
    """The outcome of an edit of a call that was asked about by a request `a_1` at its second attempt."""
    prepared = ready(scope, **given)
    prepared.request_id, prepared.attempt, prepared.idempotency_key = "a_1", 2, "key"
    decision = Decision(verdict="edit", arguments=arguments, request_id="a_1", by=ADA, at=NOW)
    return with_edits(prepared, decision, scope)


def test_an_edited_call_has_everything_that_was_known_of_the_call() -> None:
    found = edited(paying(), {"amount": 4}, amount=5, to="Eve")
    assert isinstance(found, Prepared)
    assert found.call == ToolCall("pay", {"amount": 4}, id="r_1", parent="r_0", raw_text="as written")
    assert found.asked == ToolCall("pay", {"amount": 5, "to": "Eve"}, id="r_1", parent="r_0", raw_text="as written")
    assert (found.request_id, found.attempt, found.idempotency_key) == ("a_1", 2, "key")
    assert found.validated.values == {"amount": 4, "to": "Bob"}
    assert found.approval == {
        "request_id": "a_1",
        "verdict": "edit",
        "principal": "ada",
        "channel": "cli",
        "authn": "signed",
        "decided_at": NOW,
        "changed": {"amount": {"before": 5, "after": 4}, "to": {"before": "Eve", "after": "Bob"}},
    }


def test_the_changes_of_an_edit_leave_out_equal_values_and_absent_ones() -> None:
    unset = object()  # A default without a JSON form is left out of the canonical form.

    def pay(same: list[int], other: Any, added: Any = unset, gone: Any = unset) -> None: ...

    found = edited(scope_of(pay), {"same": [1], "other": 1.0, "added": None}, same=[1], other=1, gone=None)
    assert isinstance(found, Prepared)
    assert found.approval is not None
    changed = found.approval["changed"]
    assert changed == {
        "other": {"before": 1, "after": 1.0},
        "added": {"after": None},
        "gone": {"before": None},
    }


def test_an_edited_call_finds_the_bound_values_of_its_scope() -> None:
    scope = paying(states=({"to": "Ann"},))
    entry_of(scope).tool.bindings.bind("to", state_key="to")
    found = edited(scope, {"amount": 4}, amount=5)
    assert isinstance(found, Prepared)
    assert found.validated.bound == {"to": "Ann"}


def test_bound_values_that_have_changed_since_the_request_stop_an_edited_call() -> None:
    state = {"to": "Ann"}
    scope = paying(states=(state,))
    entry_of(scope).tool.bindings.bind("to", state_key="to")
    prepared = ready(scope, amount=5)
    prepared.request_id = "a_1"
    state["to"] = "Eve"
    found = with_edits(prepared, Decision(verdict="edit", arguments={"amount": 4}), scope)
    assert found == ToolResult.failed(
        "approval_mismatch",
        "'pay' was not run: the tool or its arguments have changed since approval was requested.",
        data={"request_id": "a_1"},
        call=prepared.call,
    )


def test_an_edit_that_is_not_valid_has_the_failure_of_the_edited_call() -> None:
    found = edited(paying(), {"amount": "much"}, amount=5)
    problem = "'amount' must be an integer, not 'much'."
    assert found == ToolResult.failed(
        "invalid_arguments",
        f"'pay' was not run: a person edited the call, and the edited call is not valid.\n"
        f"The arguments of 'pay' are wrong:\n- {problem}",
        hint="The arguments of your own call were not the cause. Tell the user what is wrong with the edit.",
        path="amount",
        data={"problems": [{"path": "amount", "kind": "invalid", "message": problem}]},
        call=ToolCall("pay", {"amount": 5}, id="r_1", parent="r_0", raw_text="as written"),
    )


def test_an_edit_that_the_rules_deny_gives_every_reason() -> None:
    above = [{"path": "/arguments/amount", "op": ">", "value": 100}]
    rules = [Rule(effect="deny", tool="pay", when=above, note=note) for note in ("dear", "very dear")]
    scope = paying(policy=Policy(rules))
    found = edited(scope, {"amount": 101}, amount=5)
    when = "rule deny 'pay' when amount > 100"
    assert found == denied(ready(scope, amount=5), f"{when}: dear; {when}: very dear")


def test_an_edit_of_something_else_keeps_a_secret_that_was_masked_with_the_key_of_the_scope() -> None:
    def pay(amount: int, token: SecretStr) -> None: ...

    scope = scope_of(pay, secret_key=b"k" * 32)
    shown = ready(scope, amount=5, token="s-1").canonical(scope)
    found = edited(scope, {**shown, "amount": 4}, amount=5, token="s-1")
    assert isinstance(found, Prepared)
    assert found.validated.values == {"amount": 4, "token": SecretStr("s-1")}


def test_an_edit_of_a_value_that_looks_like_a_masked_secret_does_not_run() -> None:
    def pay(thing: Any) -> None: ...

    scope = scope_of(pay)
    prepared = ready(scope, thing="********** #" + "0" * 32)
    found = with_edits(prepared, Decision(verdict="edit", arguments={"thing": 1}), scope)
    assert found == denied(
        prepared,
        "the edited arguments cannot be read: a string equal to the placeholder of a hidden secret cannot be written "
        "as JSON",
    )


def test_an_edit_to_a_value_that_json_cannot_hold_does_not_run() -> None:
    def pay(thing: Any) -> None: ...

    scope = scope_of(pay)
    found = edited(scope, {"thing": b"x"}, thing=1)
    assert found == denied(
        ready(scope, thing=1),
        "the edited arguments cannot be recorded: a value that changes when it is read again from JSON cannot be "
        "written as JSON at thing",
    )


# -- calls in doubt --


def test_a_call_in_doubt_is_asked_about_with_the_evidence_first_and_is_another_attempt() -> None:
    person = Person("approve", by=ADA)
    scope = paying(person)
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope, DOUBT) is prepared
    (request,) = person.asked
    assert (request.reasons, request.attempt) == ((EVIDENCE, "the permission of 'pay' is confirm"), 4)
    assert prepared.attempt == 4


def test_a_call_in_doubt_is_asked_about_although_its_tool_needs_no_approval() -> None:
    scope = paying(permission="auto")
    prepared = ready(scope, amount=5)
    result = authorized(prepared, scope, DOUBT)
    assert isinstance(result, ToolResult)
    assert result.failure is not None
    request_id = result.failure.data["request_id"]
    assert result == ToolResult.failed(
        "unknown_outcome",
        "'pay' began before, and its end is not on record; it was not run again: no answer came.",
        data={
            "reasons": [EVIDENCE, "the permission of 'pay' is auto"],
            "request_id": request_id,
            "is_started": True,
            "is_ended": False,
            "may_repeat": False,
        },
        call=prepared.call,
    )


def test_a_call_in_doubt_that_is_denied_today_is_not_asked_about() -> None:
    person = Person("approve")
    scope = paying(person, permission="deny")
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope, DOUBT) == denied(prepared, "the permission of 'pay' is deny")
    assert (person.asked, prepared.attempt) == ([], 1)


def test_a_call_that_its_owner_knows_to_be_done_is_not_asked_about() -> None:
    person = Person("approve")
    scope = paying(person, options={"reconcile": lambda key: "done" if key == "r_1:r_1:k" else "unknown"})
    result = authorized(ready(scope, amount=5), scope, replace(DOUBT, has_key=True))
    assert isinstance(result, ToolResult)
    assert (result.metadata, person.asked) == ({"reconciled": True}, [])


def test_a_call_that_its_owner_knows_not_to_be_done_needs_no_person() -> None:
    scope = paying(permission="auto", options={"reconcile": lambda key: "not_done"})
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope, replace(DOUBT, has_key=True)) is prepared
    assert prepared.attempt == 4


WAITING = replace(DOUBT, is_asking=True, waiting=("a_1", "a_2"))


def test_a_tool_that_waits_for_answers_is_not_called_before_they_are_there() -> None:
    scope = paying(permission="auto", can_suspend=True)
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope, WAITING) == Pending(call=prepared.call, request_ids=("a_1", "a_2"))


@pytest.mark.parametrize(
    ("doubt", "more"),
    [
        (replace(WAITING, waiting=()), {"can_suspend": True}),
        (WAITING, {"can_suspend": True, "approver": Person(None)}),
        (WAITING, {"can_suspend": False}),
    ],
    ids=["nothing waits", "someone can be asked", "the run cannot be suspended"],
)
def test_a_tool_that_waited_for_answers_is_called_again_as_the_same_attempt(
    doubt: InDoubtStep, more: dict[str, Any]
) -> None:
    scope = paying(**{"permission": "auto", **more})
    prepared = ready(scope, amount=5)
    assert authorized(prepared, scope, doubt) is prepared
    assert prepared.attempt == 3


def test_a_call_in_doubt_that_did_not_ask_waits_for_its_own_request_alone() -> None:
    scope = paying(permission="auto", can_suspend=True)
    result = authorized(ready(scope, amount=5), scope, replace(WAITING, is_asking=False))
    assert isinstance(result, Pending)
    assert result.request_ids != ("a_1", "a_2")
