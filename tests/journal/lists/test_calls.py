"""The calls of a run: in pages, with their states, the arguments that ran, and the lines of programs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.journal.world import PAID, done, request, start, started, step
from tests.session.till import Till, calls, program
from toolwire import CallContext, Decision, Session, Store, ToolSpec
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.ledger.large_values import LARGE_BYTES
from toolwire.vocabulary.results import ToolResult

SOURCE = """import asyncio
found = [price("tea")]
found += await asyncio.gather(
    price("bread"),
    price("rice"),
)
def twice(amount):
    return pay(amount)
twice(found[0])"""


async def test_each_call_of_a_program_has_its_line_and_its_state(store: Store) -> None:
    till = Till()
    session = till.session(store, protocol="attp")
    turn = await session.turn(program(SOURCE))
    assert turn.suspended is not None, turn
    run_id = turn.suspended.run_id
    outer, *inner = store.calls(run_id)
    assert (outer.tool, outer.state, outer.line) == ("code_execution", "waiting", None)
    lines = [(call.tool, call.arguments.get("thing"), call.line, call.state) for call in inner]
    assert sorted(lines[:-1], key=str) == [
        ("price", "bread", 4, "ended"),
        ("price", "rice", 5, "ended"),
        ("price", "tea", 2, "ended"),
    ]
    assert lines[-1] == ("pay", None, 8, "waiting")
    assert [call.id for call in store.calls(run_id, parent="")] == [outer.id]
    assert [call.id for call in store.calls(run_id, parent=outer.id)] == [call.id for call in inner]
    assert inner[-1].request_id == turn.suspended.pending[0].id
    found, after = [], None
    while True:
        page = store.calls(run_id, limit=2, after=after)
        found += page
        if not page.more:
            break
        after = page.cursor
    assert found == [outer, *inner]


async def test_a_call_shows_the_arguments_that_ran_after_an_edit(store: Store) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5}), ("pay", {"amount": 9})))
    assert turn.suspended is not None
    run_id, (first, second) = turn.suspended.run_id, turn.suspended.pending
    store.decide(first.id, Decision(verdict="edit", arguments={"amount": 4, "to": "ann"}))
    edited, waits = store.calls(run_id)
    assert (edited.state, waits.state) == ("decided", "waiting")
    await till.session(store).resume(run_id)
    # In the order of their starts.
    waits, edited = store.calls(run_id)
    assert (edited.state, edited.arguments, edited.final_arguments, edited.request_id) == (
        *("ended", {"amount": 5}, {"amount": 4, "to": "ann"}, first.id),
    )
    assert (waits.state, waits.final_arguments, waits.request_id) == ("waiting", None, second.id)
    # The control: what ran is what the record says.
    assert till.paid == [4]


async def test_a_tool_that_asks_waits_with_its_question_and_the_call_that_it_made(store: Store) -> None:
    async def book(context: CallContext) -> str:
        """Books."""
        await context.call("pay", amount=1)
        return str(await context.ask("For whom?"))

    pay = ToolSpec.from_function(Till().pay, permission="confirm")
    session = Session([book, pay], protocol="openai", store=store)
    turn = await session.turn(calls(("book", {})))
    assert turn.suspended is not None, turn.text
    run_id = turn.suspended.run_id
    outer, inner = store.calls(run_id)
    assert [(one.tool, one.parent, one.state) for one in (outer, inner)] == [
        ("book", "", "waiting"),
        ("pay", outer.id, "waiting"),
    ]


def test_the_states_of_calls_follow_their_run(store: Store) -> None:
    ledger = started(store)
    done(ledger.begin(start(step("r/1"))))
    done(ledger.ask(request(ledger, "a_1", "r/2")))
    done(ledger.ask(request(ledger, "a_2", "r/3", expires_at=1.0)))
    done(ledger.ask(request(ledger, "a_3", "r/10")))
    store.decide("a_3", Decision(verdict="approve"))

    def states() -> dict[str, str]:
        return {call.id: call.state for call in store.calls(ledger.run_id)}

    assert states() == {"r/1": "running", "r/2": "waiting", "r/3": "expired", "r/10": "decided"}
    done(ledger.release())
    assert states()["r/1"] == "in_doubt"
    store.stop(ledger.run_id, by="ada")
    assert states() == {"r/1": "in_doubt", "r/2": "stopped", "r/3": "stopped", "r/10": "stopped"}


def test_only_the_records_of_the_page_are_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, large = started(store), ToolResult(True, "x" * (LARGE_BYTES + 1))
    for number in range(1, 8):
        one = step(f"r/{number}")
        done(ledger.begin(start(one)))
        # The fourth result is large, and the seventh refers to it.
        done(ledger.settle(one, large if number in (4, 7) else PAID))
    opened: list[Any] = []
    real = Sealer.open
    monkeypatch.setattr(Sealer, "open", lambda self, sealed, *place: opened.append(place) or real(self, sealed, *place))
    page = store.calls(ledger.run_id, limit=2)
    assert ([call.id for call in page], {place[2] for place in opened}) == (["r/1", "r/2"], {"r/1", "r/2"})
    opened.clear()
    rest = store.calls(ledger.run_id, after=store.calls(ledger.run_id, limit=6).cursor)
    assert [call.result.data == large.data for call in rest if call.result] == [True]
    assert "r/5" not in {place[2] for place in opened[-4:]}
