"""Turns that wait for a person, over a store in memory: the pending requests, the effect of a decision, and calls that
run only once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.session.till import Till, calls, texts
from toolwire import ApprovalRequest, ConfigurationError, Decision, Rule, Session, ToolSpec, Turn
from toolwire.permission.approval import Answer, DecisionRefused
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

PAY = ("pay", {"amount": 5})
PRICE = ("price", {"thing": "tea"})


def waiting(turn: Turn) -> tuple[ApprovalRequest, ...]:
    assert turn.suspended is not None
    return turn.suspended.pending


def decided(requests: Iterable[ApprovalRequest], verdict: Answer, **more: Any) -> list[Mapping[str, Any]]:
    return [{"request_id": request.id, "verdict": verdict, **more} for request in requests]


async def test_a_turn_that_needs_a_person_is_suspended_and_has_run_what_needs_none(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY, PRICE))
    assert [(request.tool, request.arguments) for request in waiting(turn)] == [("pay", {"amount": 5, "to": "shop"})]
    assert (turn.results, turn.messages, till.paid, till.asked) == ((), [], [], ["tea"])


async def test_all_requests_of_parallel_calls_come_at_once(store: RunStore) -> None:
    turn = await Till().session(store).turn(calls(PAY, ("pay", {"amount": 6}), PRICE, ("pay", {"amount": 7})))
    assert [request.arguments["amount"] for request in waiting(turn)] == [5, 6, 7]


async def test_an_approved_call_runs_once_however_often_the_run_is_resumed(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY, PRICE))
    assert turn.suspended is not None
    decisions = decided(waiting(turn), "approve")
    done = [await till.session(store).resume(turn.suspended.run_id, decisions) for _ in range(3)]
    assert [texts(each.messages) for each in done] == [["paid 5 to shop", "3"]] * 3
    assert (till.paid, till.asked) == ([5], ["tea"])
    assert [message["tool_call_id"] for message in done[0].messages] == ["c1", "c2"]


async def test_without_decisions_a_run_stays_suspended_and_keeps_its_requests(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY))
    assert turn.suspended is not None
    again = await till.session(store).resume(turn.suspended)
    assert waiting(again) == waiting(turn)
    assert till.paid == []


async def test_partial_answers_run_what_was_approved_and_wait_for_the_rest(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY, ("pay", {"amount": 6})))
    first, second = waiting(turn)
    half = await till.session(store).resume(first.run_id, decided([second], "approve"))
    assert (waiting(half), till.paid) == ((first,), [6])
    done = await till.session(store).resume(first.run_id, decided([first], "deny", reason="too much"))
    assert till.paid == [6]
    assert texts(done.messages)[0].startswith("'pay' may not be run: too much.")
    assert texts(done.messages)[1] == "paid 6 to shop"


async def test_an_edit_runs_what_the_person_wrote(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY))
    done = await till.session(store).resume(
        waiting(turn)[0].run_id, decided(waiting(turn), "edit", arguments={"amount": 4})
    )
    assert (texts(done.messages), till.paid) == (["paid 4 to shop"], [4])


@pytest.mark.parametrize("arguments", [{"amount": "much"}, {}, {"amount": 4, "more": 1}, {"amount": 1000}])
async def test_an_edit_that_cannot_be_made_is_refused_and_the_request_still_waits(
    store: RunStore, arguments: dict[str, Any]
) -> None:
    till = Till()
    session = till.session(store)
    turn = await session.turn(calls(PAY))
    session = till.session(store, policy=[Rule(effect="deny", tool="pay")] if arguments == {"amount": 1000} else None)
    with pytest.raises(DecisionRefused) as refused:
        await session.resume(waiting(turn)[0].run_id, decided(waiting(turn), "edit", arguments=arguments))
    assert (refused.value.code, till.paid) == ("invalid_edit", [])
    assert waiting(await till.session(store).resume(waiting(turn)[0].run_id)) == waiting(turn)


async def test_an_approval_with_other_arguments_runs_nothing_and_the_request_still_waits(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY))
    run_id = waiting(turn)[0].run_id
    with pytest.raises(DecisionRefused, match="write verdict='edit'") as refused:
        await till.session(store).resume(run_id, decided(waiting(turn), "approve", arguments={"amount": 4}))
    assert (refused.value.code, till.paid) == ("invalid_edit", [])
    assert waiting(await till.session(store).resume(run_id)) == waiting(turn)
    await till.session(store).resume(run_id, decided(waiting(turn), "approve"))
    assert till.paid == [5]


async def test_stop_run_runs_nothing_more(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY, ("pay", {"amount": 6})))
    first, _ = waiting(turn)
    done = await till.session(store).resume(first.run_id, decided([first], "stop_run", reason="enough"))
    assert (till.paid, done.suspended) == ([], None)
    assert [result.failure and result.failure.kind for result in done.results] == ["denied", "interrupted"]


async def test_an_approver_that_answers_is_asked_at_once_and_nothing_is_suspended(store: RunStore) -> None:
    till = Till()
    session = till.session(store, approver=lambda _: Decision(verdict="approve"))
    turn = await session.turn(calls(PAY))
    assert (turn.suspended, texts(turn.messages), till.paid) == (None, ["paid 5 to shop"], [5])


async def test_a_changed_tool_is_not_run_on_an_old_approval(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY))

    def pay(amount: int, to: str = "thief") -> str:
        """Pays somebody."""
        return till.pay(amount, to)

    changed = Session([ToolSpec.from_function(pay, permission="confirm")], protocol="openai", store=store)
    with pytest.raises(DecisionRefused) as refused:
        await changed.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert (refused.value.code, till.paid) == ("tool_changed", [])
    store.decide(waiting(turn)[0].id, Decision(verdict="approve"))
    done = await changed.resume(waiting(turn)[0].run_id)
    assert [result.failure and result.failure.kind for result in done.results] == ["approval_mismatch"]
    assert till.paid == []


async def test_a_second_different_decision_is_refused_and_shows_the_first(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY, ("pay", {"amount": 6})))
    first, _ = waiting(turn)
    await till.session(store).resume(first.run_id, decided([first], "deny"))
    with pytest.raises(DecisionRefused) as refused:
        await till.session(store).resume(first.run_id, decided([first], "approve"))
    assert refused.value.code == "already_decided"
    assert refused.value.decided is not None
    assert (refused.value.decided.verdict, till.paid) == ("deny", [])


async def test_a_call_that_a_crash_cut_off_is_not_run_again_unasked() -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store).turn(calls(PAY))
    run = store.kept[waiting(turn)[0].run_id]
    store.decide(waiting(turn)[0].id, Decision(verdict="approve"))

    # The process dies after the effect and before its record.
    settle = run.settle_with_end
    run.settle_with_end = lambda *step: (_ for _ in ()).throw(MemoryError())  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        await till.session(store).resume(run.run_id)
    run.settle_with_end = settle  # type: ignore[method-assign]
    again = await till.session(store).resume(run.run_id)
    (request,) = waiting(again)
    assert (till.paid, request.attempt) == ([5], 2)
    assert request.reasons[0].startswith("this may already have run: attempt 1 began ")
    denied = await till.session(store).resume(run.run_id, decided([request], "deny", reason="it had run"))
    assert texts(denied.messages)[0].startswith("'pay' began before, and its end is not on record;")
    assert till.paid == [5]


async def test_resuming_without_a_store_is_the_developers_mistake() -> None:
    with pytest.raises(ConfigurationError, match="give the session a store"):
        await Till().session(None).resume("r_1")


async def test_a_run_that_is_not_there_is_refused(store: RunStore) -> None:
    with pytest.raises(DecisionRefused) as refused:
        await Till().session(store).resume("r_1")
    assert refused.value.code == "unknown_run"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (True, "decisions=True: give a list of decisions"),
        (Decision(verdict="approve"), "decisions=Decision(verdict='approve'"),
        ({"request_id": "a_1", "verdict": "approve"}, "decisions are a list, also if there is one: write [decision]"),
    ],
)
async def test_decisions_that_are_no_list_are_refused_with_what_to_write(
    store: RunStore, given: Any, said: str
) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(PAY))
    with pytest.raises(DecisionRefused, match=re.escape(said)) as caught:
        await till.session(store).resume(turn.run_id, given)
    assert (caught.value.code, till.paid) == ("malformed", [])


async def test_a_turn_in_place_of_its_run_is_an_error_that_says_what_to_give(store: RunStore) -> None:
    session = Till().session(store)
    given: Any = await session.turn(calls(PAY))
    with pytest.raises(ConfigurationError, match=r"give the id of a run, or turn\.suspended"):
        await session.resume(given)
