"""A request that is not answered within its week: the run ends, and the model reads why."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import update

from tests.session.till import Till, calls, program
from toolwire import Decision
from toolwire.journal.database.server_clock import ServerClock
from toolwire.journal.database.tables import REQUESTS
from toolwire.journal.store import Store
from toolwire.permission.approval import REQUEST_LIFE_S, DecisionRefused
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

NOBODY = "'pay' was not run: no decision came in time.\nIt did not run. A new request needs a new call."
GUARDED = """
print(price("tea"))
try:
    pay(3)
except Exception as error:
    print(error)
print(price("bread"))
"""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts the clocks of this process and of the database's server forward."""
    now = time.time

    def put_forward(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now() + seconds)
        monkeypatch.setattr(ServerClock, "__call__", lambda _: now() + seconds)

    return put_forward


async def test_a_turn_whose_request_expired_ends_and_tells_the_finished_calls(
    store: RunStore, later: Callable[[float], None]
) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("price", {"thing": "tea"}), ("pay", {"amount": 5})))
    assert turn.suspended is not None
    # The control: within the week it waits.
    later(REQUEST_LIFE_S - 60)
    waiting = await till.session(store).resume(turn.suspended.run_id)
    assert waiting.suspended is not None
    assert [request.tool for request in waiting.suspended.pending] == ["pay"]
    later(REQUEST_LIFE_S + 60)
    for _ in range(2):
        ended = await till.session(store).resume(turn.suspended.run_id)
        assert ended.suspended is None
        assert [result.failure and result.failure.kind for result in ended.results] == [None, "approval_expired"]
        assert [message["content"] for message in ended.messages] == ["3", NOBODY]
    assert (till.paid, till.asked) == ([], ["tea"])
    assert store.run(turn.suspended.run_id).status == "finished"


async def test_a_program_whose_request_expired_goes_on_without_the_call(
    store: RunStore, later: Callable[[float], None]
) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(program(GUARDED))
    assert turn.suspended is not None
    later(REQUEST_LIFE_S + 60)
    ended = await till.session(store, protocol="attp").resume(turn.suspended.run_id)
    assert ended.text == f"3\n{NOBODY}\n5\n"
    assert (till.paid, till.asked) == ([], ["tea", "bread"])


async def test_a_late_decision_is_refused_and_the_turn_still_ends(
    store: RunStore, later: Callable[[float], None]
) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5})))
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    later(REQUEST_LIFE_S + 60)
    with pytest.raises(DecisionRefused) as refused:
        store.decide(request.id, Decision(verdict="approve"))
    assert refused.value.code == "expired"
    assert (await till.session(store).resume(turn.suspended.run_id)).text == NOBODY
    assert till.paid == []


async def test_a_call_in_doubt_whose_request_expired_is_not_said_to_have_never_run(
    later: Callable[[float], None],
) -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5})))
    assert turn.suspended is not None
    run = store.kept[turn.suspended.run_id]
    store.decide(turn.suspended.pending[0].id, Decision(verdict="approve"))
    # The process dies after the effect and before its record.
    settle = run.settle_with_end
    run.settle_with_end = lambda *_: (_ for _ in ()).throw(MemoryError())  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        await till.session(store).resume(run.run_id)
    run.settle_with_end = settle  # type: ignore[method-assign]
    assert (await till.session(store).resume(run.run_id)).suspended is not None
    later(REQUEST_LIFE_S + 60)
    ended = await till.session(store).resume(run.run_id)
    assert ended.results[0].error == (
        "'pay' began before, and its end is not on record; it was not run again: no decision came in time."
    )
    assert till.paid == [5]


async def test_a_request_that_its_store_lists_no_more_does_not_wait(store: RunStore) -> None:
    if not isinstance(store, Store):
        return
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5})))
    assert turn.suspended is not None

    def expire(connection: Any) -> None:
        connection.execute(update(REQUESTS).values(expires_at=1.0))

    cast("Any", store)._database.run(expire).result()
    assert store.pending() == []
    assert (await till.session(store).resume(turn.suspended.run_id)).text == NOBODY
