"""A call runs unasked, after a person said so, or not at all."""

from __future__ import annotations

import asyncio
import datetime
import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from toolwire.definition.from_function import from_function
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, Approver, Decision
from toolwire.permission.policy import Rule
from toolwire.vocabulary.failures import FAILURE_RULES
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest

OWN_DENY = "'pay' may not be run: the permission of 'pay' is deny."
DENIED = FAILURE_RULES["denied"].hint
UNASKED = FAILURE_RULES["approval_required"].hint
Answer = Callable[[ApprovalRequest], Any]


class Till:
    """A tool, and the arguments that it was really called with."""

    def __init__(self) -> None:
        self.paid: list[tuple[Any, ...]] = []

    def pay(self, amount: int, day: datetime.date = datetime.date(2024, 5, 1)) -> str:
        """Pays."""
        self.paid.append((amount, day))
        return f"paid {amount}"


DAY = datetime.date(2024, 5, 1)


@pytest.fixture
def till(world: World) -> Till:
    """Asks before it pays."""
    till = Till()
    world.add(till.pay, permission="confirm")
    return till


class AsyncApprover:
    """An instance whose call is a coroutine function."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    async def __call__(self, request: ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        return self.answer(request)


def as_function(answer: Answer) -> Approver:
    return lambda request: answer(request)


def as_coroutine_function(answer: Answer) -> Approver:
    return AsyncApprover(answer).__call__


def as_function_that_gives_a_coroutine(answer: Answer) -> Approver:
    return lambda request: AsyncApprover(answer)(request)


KINDS = [as_function, as_coroutine_function, AsyncApprover, as_function_that_gives_a_coroutine]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def ask(request: pytest.FixtureRequest, world: World) -> Callable[[Answer], None]:
    """Sets who is asked, in each form that an approver can have."""

    def set_approver(answer: Answer) -> None:
        world.approver = request.param(answer)

    return set_approver


Ask = Callable[[Answer], None]


def decides(verdict: Any, **more: Any) -> Answer:
    return lambda _: Decision(verdict=verdict, **more)


def test_an_approved_call_runs_as_it_was_shown(world: World, till: Till, ask: Ask) -> None:
    shown: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Decision:
        shown.append(request)
        return Decision(verdict="approve")

    ask(approve)
    assert world.call("pay", amount="5").text == "paid 5"
    (request,) = shown
    assert request == ApprovalRequest(
        id=request.id,
        call_id="r_1",
        tool="pay",
        arguments={"amount": 5, "day": "2024-05-01"},
        reasons=("the permission of 'pay' is confirm",),
        run_id="r_1",
        tool_digest=from_function(Till().pay).digest,
        arguments_digest=digest({"amount": 5, "day": "2024-05-01"}),
        given={"amount": "5"},
        arguments_schema=from_function(Till().pay).input_schema,
        created_at=request.created_at,
        expires_at=request.created_at + REQUEST_LIFE_S,
    )
    assert re.fullmatch("a_[0-9a-f]{32}", request.id)
    assert till.paid == [(5, DAY)]


def test_a_denied_call_does_not_run_and_the_reason_reaches_the_model(world: World, till: Till, ask: Ask) -> None:
    reason = "Nicht heute – “zu teuer”\n\t多 \ud800 \x00"
    ask(decides("deny", reason=reason))
    result = world.call("pay", amount=5)
    shown = reason.replace("\ud800", "\ufffd")
    assert result.text == f"'pay' may not be run: {shown}.\n{DENIED}"
    assert result.failure is not None
    assert (result.failure.data, till.paid) == ({"reason": reason}, [])


def test_a_denial_without_a_reason_says_that_the_approver_refused(world: World, till: Till, ask: Ask) -> None:
    ask(decides("deny"))
    assert world.call("pay", amount=5).text == f"'pay' may not be run: the approver refused it.\n{DENIED}"
    assert till.paid == []


def test_an_edited_call_runs_with_the_edit(world: World, till: Till, ask: Ask) -> None:
    ask(decides("edit", arguments={"amount": "3", "day": "2024-06-01"}))
    result = world.call("pay", amount=5)
    assert (result.text, till.paid) == ("paid 3", [(3, datetime.date(2024, 6, 1))])
    assert result.call is not None
    assert (result.call.arguments, result.call.id) == ({"amount": "3", "day": "2024-06-01"}, "r_1")


def test_an_edit_is_validated_like_the_models_own_arguments(world: World, till: Till, ask: Ask) -> None:
    ask(decides("edit", arguments={"amount": "much", "extra": 1}))
    result = world.call("pay", amount=5)
    assert result.text == (
        "'pay' was not run: a person edited the call, and the edited call is not valid.\n"
        "The arguments of 'pay' are wrong:\n"
        "- 'amount' must be an integer, not 'much'.\n"
        "- 'extra' is unknown: it takes 'amount', 'day'.\n"
        "The arguments of your own call were not the cause. Tell the user what is wrong with the edit."
    )
    assert (outcome(result), till.paid) == ("invalid_arguments", [])


def test_an_edited_call_is_judged_again(world: World, till: Till) -> None:
    entry = world.catalogue.find("pay")
    assert entry is not None

    def edit(_: ApprovalRequest) -> Decision:
        entry.permission = "deny"
        return Decision(verdict="edit", arguments={"amount": 1})

    world.approver = edit
    assert world.call("pay", amount=5).text == f"{OWN_DENY}\n{DENIED}"
    assert till.paid == []


NOT_RUN = f"'pay' was not run: a person has to allow it, and no answer came.\n{UNASKED}"
FAILED = f"'pay' was not run: a person has to allow it, and asking failed.\n{UNASKED}"


def test_without_anybody_to_ask_a_call_does_not_run(world: World, till: Till) -> None:
    result = world.call("pay", amount=5)
    assert (result.text, till.paid) == (NOT_RUN, [])
    assert result.failure is not None
    request_id = result.failure.data.pop("request_id")
    assert result.failure.data == {"reasons": ["the permission of 'pay' is confirm"]}
    assert re.fullmatch("a_[0-9a-f]{32}", request_id)


def test_without_an_answer_a_call_does_not_run(world: World, till: Till, ask: Ask) -> None:
    ask(lambda _: None)
    assert (world.call("pay", amount=5).text, till.paid) == (NOT_RUN, [])


@pytest.mark.parametrize(
    "answer", [True, "approve", 1, {"verdict": "approve"}, object, (Decision, "approve")], ids=repr
)
def test_whatever_is_not_a_decision_lets_nothing_run(
    world: World, till: Till, ask: Ask, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ask(lambda _: answer)
    assert (world.call("pay", amount=5).text, till.paid) == (FAILED, [])
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage() == (
        f"call r_1 was not run: its approver returned {answer!r}: return Decision(verdict='approve'), "
        "Decision(verdict='deny'), or None"
    )


@pytest.mark.parametrize("error", [ValueError("no terminal"), EOFError(), StopIteration(), TimeoutError()], ids=repr)
def test_an_approver_that_raises_lets_nothing_run_and_is_logged(
    world: World, till: Till, ask: Ask, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ApprovalRequest) -> Decision:
        raise error

    ask(fail)
    result = world.call("pay", amount=5)
    assert (result.text, outcome(result), till.paid) == (FAILED, "approval_required", [])
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        ("toolwire.approval", logging.ERROR, "asking for approval of call r_1 failed; it was not run")
    ]


def test_arguments_that_cannot_be_shown_are_not_run(world: World, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[Any] = []
    world.add(from_function(lambda thing: ran.append(thing), name="take"), permission="confirm")
    world.approver = decides("approve")
    assert outcome(world.call("take", thing=object())) == "approval_required"
    assert (ran, len(caplog.records)) == ([], 1)


@pytest.mark.parametrize(
    ("rules", "own", "text"),
    [
        ([], "deny", f"{OWN_DENY}\n{DENIED}"),
        (
            [Rule(effect="deny", tool="p*", note="no money"), Rule(effect="deny", tool="pay")],
            "auto",
            f"'pay' may not be run: rule deny 'p*': no money; rule deny 'pay'.\n{DENIED}",
        ),
        ([Rule(effect="confirm", tool="*")], "auto", NOT_RUN),
        ([Rule(effect="auto", tool="pay")], "confirm", "paid 5"),
        (
            [Rule(effect="auto", tool="pay")],
            "deny",
            f"{OWN_DENY}\n{DENIED}",
        ),
    ],
    ids=["own deny", "rules deny", "a rule asks", "a rule lifts confirm", "no rule lifts deny"],
)
def test_rules_decide_before_anybody_is_asked(world: World, rules: list[Rule], own: Any, text: str) -> None:
    till = Till()
    world.add(till.pay, permission=own)
    world.rules = rules
    assert world.call("pay", amount=5).text == text


def test_wrong_arguments_and_denied_calls_ask_no_person(world: World, till: Till) -> None:
    asked: list[ApprovalRequest] = []
    world.approver = lambda request: asked.append(request)
    world.call("pay", amount="much")
    world.rules = [Rule(effect="deny", tool="pay")]
    world.call("pay", amount=5)
    assert (asked, till.paid) == ([], [])


def test_a_tools_own_permission_counts_where_its_entry_says_nothing(world: World) -> None:
    world.add(from_function(Till().pay, permission="deny"))
    assert outcome(world.call("pay", amount=5)) == "denied"


def test_a_sync_approver_does_not_hold_up_an_event_loop(world: World, till: Till) -> None:
    threads: list[threading.Thread] = []

    def approve(_: ApprovalRequest) -> Decision:
        threads.append(threading.current_thread())
        return Decision(verdict="approve")

    world.approver = approve
    world.call("pay", amount=5)
    assert (threads[0] is threading.current_thread()) == (world.driver == "blocking")


def test_each_of_several_calls_is_asked_about_by_itself(world: World, till: Till, ask: Ask) -> None:
    def decide(request: ApprovalRequest) -> Decision | None:
        amount = request.arguments["amount"]
        return [None, Decision(verdict="approve"), Decision(verdict="deny", reason=f"not {amount}")][amount % 3]

    ask(decide)
    results: list[ToolResult] = world.batch(*[("pay", {"amount": amount}) for amount in range(9)])
    assert [outcome(result) for result in results] == ["approval_required", "success", "denied"] * 3
    assert sorted(till.paid) == [(1, DAY), (4, DAY), (7, DAY)]
    assert [result.failure.data["reason"] for result in results[2::3] if result.failure] == ["not 2", "not 5", "not 8"]
