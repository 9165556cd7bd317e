"""What rarely happens between a request and its decision: none of it lets a call run that nobody allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.invocation.test_decisions import Clock, Paying, paying
from tests.invocation.world import World, outcome
from toolwire.definition.from_function import from_function
from toolwire.invocation.scope import Run
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, Decider, Decision
from toolwire.permission.policy import Policy
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import Pending
from toolwire.vocabulary.values import digest

__all__ = ["paying"]

ADA = Decider(principal="ada", channel="cli", authn="signed")


def in_suspended_run(world: World, paying: Paying) -> Any:
    """Makes a call that waits for a person; returns its request as the ledger has it."""
    world.ledger = ledger = MemoryLedger()
    world.can_suspend, world.approver = True, lambda request: None
    assert isinstance(world.come_to(ToolCall("pay", {"amount": 5}, id="r_1")), Pending)
    (asked,) = ledger.records.requests.values()
    return asked


def decided(asked: Any, **decision: Any) -> None:
    more = {"request_id": asked.request.id, "by": ADA, "at": 5.0}
    asked.decision = Decision(**{**more, **decision})


def test_a_request_has_everything_that_a_person_and_a_policy_need(world: World) -> None:
    def pay(amount: int, to: str) -> None:
        """Pays."""

    tool = from_function(pay, effects=["send", "read", "spend"], effects_of=lambda arguments, seen: ["send", "read"])
    tool.bindings.state = {"to": "Ann"}
    tool.bindings.bind("to")
    world.add(tool, permission="confirm")
    clock, asked = Clock(), list[ApprovalRequest]()
    world.clock, world.caller, world.run_id = clock, Caller(principal="eve", agent="clerk"), "r_0"
    world.policy, world.run = Policy(approvers={"send": ["bob", "ada"]}), Run(["untrusted", "private"])
    world.approver = asked.append
    world.make(ToolCall("pay", {"amount": "5"}, id="r_1", parent="r_0"))
    (request,) = asked
    assert request == ApprovalRequest(
        id=request.id,
        call_id="r_1",
        tool="pay",
        arguments={"amount": 5},
        reasons=request.reasons,
        caller=world.caller,
        run_id="r_0",
        parent="r_0",
        tool_digest=tool.digest,
        arguments_digest=digest({"amount": 5}),
        bound_digest=digest({"to": "Ann"}),
        given={"amount": "5"},
        effects=("read", "send"),
        taints=("private", "untrusted"),
        arguments_schema=tool.input_schema,
        created_at=clock.now,
        expires_at=clock.now + REQUEST_LIFE_S,
        approvers={"send": ("ada", "bob")},
    )


def test_a_recorded_decision_that_this_policy_does_not_accept_is_a_denial(world: World, paying: Paying) -> None:
    decided(in_suspended_run(world, paying), verdict="approve")
    world.policy = Policy(approvers={"*": ["bob"]})
    result = world.call("pay", amount=5)
    reason = "the decision does not count: 'ada' is not among those who may approve any call"
    assert (result.error, paying.paid) == (f"'pay' may not be run: {reason}.", [])
    # The control: a policy that lets Ada decide.
    world.ledger = None
    world.policy = Policy(approvers={"*": ["ada"]})
    decided(in_suspended_run(world, paying), verdict="approve")
    assert (world.call("pay", amount=5).success, len(paying.paid)) == (True, 1)


def test_an_answer_approves_nothing(world: World, paying: Paying) -> None:
    decided(in_suspended_run(world, paying), verdict="answer", answer=1)
    result = world.call("pay", amount=5)
    assert (result.error, paying.paid) == ("'pay' may not be run: an answer approves nothing.", [])


@pytest.mark.parametrize("changed", ["tool", "arguments_digest", "tool_digest", "bound_digest"])
def test_a_request_on_record_is_for_the_same_call_alone(world: World, paying: Paying, changed: str) -> None:
    asked = in_suspended_run(world, paying)
    decided(asked, verdict="approve")
    asked.request = replace(asked.request, **{changed: "sha256:0"})
    assert (outcome(world.call("pay", amount=5)), paying.paid) == ("approval_mismatch", [])


@pytest.mark.parametrize(
    ("verdict", "channel", "reason"),
    [
        ("deny", "console", "a person refused it"),
        ("stop_run", "console", "a person stopped the run"),
        ("deny", "", "the approver refused it"),
        ("stop_run", "", "the approver stopped the run"),
        ("deny", "model", "a model refused it"),
    ],
)
def test_a_refusal_without_a_reason_says_who_refused(
    world: World, paying: Paying, verdict: Any, channel: str, reason: str
) -> None:
    world.run = Run()
    world.approver = lambda request: Decision(verdict=verdict, by=Decider(channel=channel))
    assert world.call("pay", amount=5).error == f"'pay' may not be run: {reason}."
    assert world.run.stopped == (reason if verdict == "stop_run" else None)


EDIT = {"arguments": {"amount": 4}}


@pytest.mark.parametrize(("verdict", "edit"), [("approve", {}), ("edit", EDIT)])
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("disabled", "it broke", "'pay' is disabled: it broke."),
        ("permission", "deny", "'pay' may not be run: the permission of 'pay' is deny."),
    ],
)
def test_a_tool_that_is_taken_away_while_a_person_thinks_does_not_run(
    world: World, paying: Paying, name: str, value: str, error: str, verdict: Any, edit: Any
) -> None:
    def approve(request: ApprovalRequest) -> Decision:
        setattr(paying.entry, name, value)
        return Decision(verdict=verdict, **edit)

    world.approver = approve
    result = world.call("pay", amount=5)
    assert (result.error, paying.paid) == (error, [])
    assert result.metadata["approval"]["verdict"] == verdict


def test_the_decider_must_be_allowed_to_cause_the_effects_that_the_call_has_by_then(world: World) -> None:
    """Ada may approve calls that read. While she thinks, the call has become one that sends."""
    paid: list[int] = []
    run = world.run = Run()

    def pay(amount: int) -> None:
        """Pays."""
        paid.append(amount)

    world.add(
        from_function(
            pay,
            effects=["read", "send"],
            effects_of=lambda arguments, seen: ["read", "send"] if seen.urls else ["read"],
        ),
        permission="confirm",
    )

    def approve(request: ApprovalRequest) -> Decision:
        run.saw(["https://a.example/"])
        return Decision(verdict="approve", by=ADA)

    world.approver = approve
    world.policy = Policy(approvers={"send": ["bob"], "read": ["ada"]})
    reason = "'ada' is not among those who may approve calls that send"
    assert (world.call("pay", amount=5).error, paid) == (f"'pay' may not be run: {reason}.", [])
    # The control: she may cause both.
    world.policy = Policy(approvers={"send": ["ada"], "read": ["ada"]})
    assert (world.call("pay", amount=5).success, paid) == (True, [5])


def test_an_edit_that_cannot_be_written_down_does_not_run(world: World) -> None:
    used: list[Any] = []

    def use(thing: Any) -> None:
        """Uses."""
        used.append(thing)

    world.add(use, permission="confirm")
    world.approver = lambda request: Decision(verdict="edit", arguments={"thing": b"x"})
    reason = (
        "the edited arguments cannot be recorded: a value that changes when it is read again from JSON cannot be "
        "written as JSON at thing"
    )
    assert (world.call("use", thing=1).error, used) == (f"'use' may not be run: {reason}.", [])
