"""A run that would go another way than its record is found out before anything runs; answers find their own calls."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls, program, texts
from toolwire import Turn
from toolwire.permission.approval import DecisionRefused
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

MADE: list[tuple[str, dict[str, Any]]] = [
    ("pay", {"amount": 5}),
    ("price", {"thing": "tea"}),
    ("price", {"thing": "bread"}),
    ("pay", {"amount": 6}),
]
Reply = dict[str, Any]


def reply_of(store: MemoryStore, run_id: str) -> list[Any]:
    return [dict(call) for call in store.kept[run_id].start.reply["calls"]]


def put_reply(store: MemoryStore, run_id: str, made: list[Any]) -> None:
    run = store.kept[run_id]
    run.start = replace(run.start, reply={**run.start.reply, "calls": made})


def other_orders() -> Iterator[Callable[[list[Any]], list[Any]]]:
    """Every order in which a recorded call has another place."""
    for order in itertools.permutations(range(len(MADE))):
        if [MADE[place] for place in order][1:3] != MADE[1:3]:
            yield lambda made, order=order: [made[place] for place in order]


def other_arguments() -> Iterator[Callable[[list[Any]], list[Any]]]:
    for place, value in itertools.product(
        (1, 2),
        ["Tea", "tea ", "", "TEA", "t\u0435a", "tea\u200b", None, 0, 1, True, ["tea"], {"a": 1}, *map(str, range(75))],
    ):
        yield lambda made, place=place, value=value: [
            {**call, "arguments": {"thing": value}} if at == place else call for at, call in enumerate(made)
        ]


def other_tools() -> Iterator[Callable[[list[Any]], list[Any]]]:
    for place, name in itertools.product((1, 2), ["pay", "Price", "price2", "", "search", "code_execution"]):
        yield lambda made, place=place, name=name: [
            {**call, "name": name} if at == place else call for at, call in enumerate(made)
        ]


def fewer() -> Iterator[Callable[[list[Any]], list[Any]]]:
    for place in (0, 1):
        yield lambda made, place=place: [call for at, call in enumerate(made) if at != place]


CHANGES = [*other_orders(), *other_arguments(), *other_tools(), *fewer()]


@pytest.mark.threat(17)
async def test_every_changed_order_tool_and_argument_is_found_before_anything_runs(whole: bool) -> None:
    assert len(CHANGES) >= 200
    for change in CHANGES if whole else CHANGES[::5]:
        till, store = Till(), MemoryStore()
        turn = await till.session(store).turn(calls(*MADE))
        requests = waiting(turn)
        run_id = requests[0].run_id
        put_reply(store, run_id, change(reply_of(store, run_id)))
        with pytest.raises(DecisionRefused) as refused:
            await till.session(store).resume(run_id, decided(requests, "approve"))
        assert (refused.value.code, till.paid, sorted(till.asked)) == ("divergence", [], ["bread", "tea"])
        # It stays as it is, whatever is handed in later.
        with pytest.raises(DecisionRefused, match="the run was stopped"):
            await till.session(store).resume(run_id)
        assert till.paid == []


@pytest.mark.threat(17)
@pytest.mark.parametrize("amount", [4, 5_000, -5, 6])
async def test_a_changed_call_that_waits_is_not_run_on_the_approval_of_another(amount: int) -> None:
    till, store = Till(), MemoryStore()
    (request,) = waiting(await till.session(store).turn(calls(("pay", {"amount": 5}))))
    (call,) = reply_of(store, request.run_id)
    put_reply(store, request.run_id, [{**call, "arguments": {"amount": amount}}])
    done = await till.session(store).resume(request.run_id, decided([request], "approve"))
    assert [result.failure and result.failure.kind for result in done.results] == ["approval_mismatch"]
    assert till.paid == []


@pytest.mark.threat(17)
async def test_without_the_record_a_changed_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same change, without the comparison."""
    monkeypatch.setattr("toolwire.testing.ledger.MemoryLedger.recall", lambda self, step: None)
    till, store = Till(), MemoryStore()
    requests = waiting(await till.session(store).turn(calls(*MADE)))
    changed = next(other_arguments())(reply_of(store, requests[0].run_id))
    put_reply(store, requests[0].run_id, changed)
    await till.session(store).resume(requests[0].run_id, decided(requests, "approve"))
    # Side by side, in whatever order: once before the change, once after it.
    assert (sorted(till.paid), sorted(till.asked[:2]), sorted(till.asked[2:])) == (
        [5, 6],
        ["bread", "tea"],
        ["Tea", "bread"],
    )


async def test_what_one_call_of_several_is_refused_for_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any, request: Any) -> Any:
        raise DecisionRefused("bad_mac", "it was changed")

    till, store = Till(), MemoryStore()
    requests = waiting(await till.session(store).turn(calls(*MADE)))
    monkeypatch.setattr("toolwire.testing.ledger.MemoryLedger.ask", refused)
    with pytest.raises(DecisionRefused, match="it was changed"):
        await till.session(store).resume(requests[0].run_id)
    assert till.paid == []


SOURCE = "first = price('tea')\nsecond = price('bread')\nprint(pay(first), pay(second))"
OTHER_SOURCES = [
    "second = price('bread')\nfirst = price('tea')\nprint(pay(first), pay(second))",
    "first = price('tea')\nprint(pay(first))",
    "first = price('tee')\nsecond = price('bread')\nprint(pay(first), pay(second))",
    "print(pay(1000))",
    "first = price('tea')\nsecond = price('bread')\nprint(pay(first), pay(second)) ",
    "",
]


@pytest.mark.threat(17)
@pytest.mark.parametrize("source", OTHER_SOURCES, ids=range(len(OTHER_SOURCES)))
async def test_a_changed_program_is_found_before_anything_runs(source: str) -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store, protocol="attp").turn(program(SOURCE))
    requests = waiting(turn)
    run_id = requests[0].run_id
    made = [{**call, "arguments": {**call["arguments"], "code": source}} for call in reply_of(store, run_id)]
    put_reply(store, run_id, made)
    with pytest.raises(DecisionRefused) as refused:
        await till.session(store, protocol="attp").resume(run_id, decided(requests, "approve"))
    assert (refused.value.code, till.paid, till.asked) == ("divergence", [], ["tea", "bread"])


# -- answers in any order ---------------------------------------------------------------------------------------------


async def answered(store: RunStore, chance: random.Random, count: int) -> tuple[Turn, Till, list[tuple[str, int]]]:
    """A run of that many calls, answered some at a time, in any order, in every way; and the decision on each call."""
    till = Till()
    amounts = chance.sample(range(10_000), count)
    turn = await till.session(store).turn(calls(*(("pay", {"amount": amount}) for amount in amounts)))
    said: dict[int, tuple[str, int]] = {}
    while turn.suspended is not None:
        requests = list(waiting(turn))
        chance.shuffle(requests)
        items: list[Any] = []
        for request in requests[: chance.randint(1, len(requests))]:
            amount = request.arguments["amount"]
            match chance.choice(["approve", "edit", "deny"]):
                case "edit":
                    items += decided([request], "edit", arguments={"amount": amount + 100_000})
                    said[amount] = ("paid", amount + 100_000)
                case "deny":
                    items += decided([request], "deny", reason=f"no {amount}")
                    said[amount] = ("denied", amount)
                case _:
                    items += decided([request], "approve")
                    said[amount] = ("paid", amount)
        turn = await till.session(store).resume(turn.suspended.run_id, items)
        assert sorted(till.paid) == sorted(amount for what, amount in said.values() if what == "paid")
    return turn, till, [said[amount] for amount in amounts]


def as_said(said: list[tuple[str, int]]) -> list[str]:
    return [
        f"paid {amount} to shop" if what == "paid" else f"'pay' may not be run: no {amount}." for what, amount in said
    ]


async def misroutes(store: RunStore, chance: random.Random, runs: int) -> tuple[int, int]:
    """The number of requests, and the number of answers that went to a wrong call."""
    asked = wrong = 0
    for _ in range(runs):
        turn, _, said = await answered(store, chance, chance.randint(2, 16))
        heard = [text.splitlines()[0] for text in texts(turn.messages)]
        asked += len(said)
        wrong += sum(one != other for one, other in zip(heard, as_said(said), strict=True))
    return asked, wrong


@pytest.mark.threat(5)
async def test_answers_in_any_order_reach_the_calls_that_they_are_for(whole: bool) -> None:
    runs, least = (130, 1_000) if whole else (32, 200)
    asked, wrong = await misroutes(MemoryStore(), random.Random(5), runs)
    assert (asked >= least, wrong) == (True, 0)


@pytest.mark.threat(5)
async def test_answers_in_any_order_reach_their_calls_in_every_store(store: RunStore) -> None:
    asked, wrong = await misroutes(store, random.Random(6), 3)
    assert (asked >= 6, wrong) == (True, 0)


@pytest.mark.threat(5)
async def test_answers_by_their_place_among_those_that_wait_go_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: decisions handed out in the order in which they came."""

    def by_place(self: MemoryStore, request_id: str, decision: Any) -> Any:
        (first, *_) = self.pending(self.request(request_id)[0].run_id)
        return decide(self, first.id, replace(decision, request_id=first.id))

    decide = MemoryStore.decide
    monkeypatch.setattr(MemoryStore, "decide", by_place)
    with pytest.raises(AssertionError):
        await misroutes(MemoryStore(), random.Random(5), 20)
