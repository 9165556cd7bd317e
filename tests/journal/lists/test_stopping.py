"""`Store.stop`: a run ends from any process, what ran stays on record, and nothing more begins."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from tests.journal.world import PAID, done, request, run_start, start, started, step
from tests.patience import PATIENCE_S
from tests.session.test_interrupt import Tools, reply
from tests.session.till import Till, calls, program
from toolwire import ConfigurationError, Decision, DecisionRefused, Session, Store
from toolwire.approvals import Decider, rule_for
from toolwire.journal.ledger.leases import Owner
from toolwire.log import LogFilter

WHY = "the budget is spent"
OTHER = """
    import sys
    from toolwire import Store
    with Store.open(sys.argv[1], create=False) as store:
        print(store.stop(sys.argv[2], by="ada", reason="the budget is spent"))
"""
"""A second process that stops a run."""


def stop_elsewhere(store: Store, run_id: str) -> str:
    url = store._location.url.render_as_string(hide_password=False)  # pyright: ignore[reportPrivateUsage]
    command = [sys.executable, "-c", textwrap.dedent(OTHER), url, run_id]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.strip()


def run_rows(store: Store, run_id: str) -> list[str]:
    return [row.status for row in store.log(LogFilter(kind="run", run_id=run_id))]


async def test_a_run_that_waits_is_stopped_at_once_and_runs_nothing_when_resumed(store: Store) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 1}), ("price", {"thing": "tea"})))
    assert turn.suspended is not None
    run_id, (waits,) = turn.suspended.run_id, turn.suspended.pending
    assert await store.astop(run_id, by="ada", reason=WHY) == "stopped"
    assert (store.run(run_id).status, list(store.pending())) == ("stopped", [])
    with pytest.raises(DecisionRefused) as refused:
        store.decide(waits.id, Decision(verdict="approve"))
    assert refused.value.code == "expired"
    assert store.stop(run_id, by="bob") == "stopped"
    assert [call.state for call in store.calls(run_id)] == ["stopped", "ended"]
    (row,) = store.log(LogFilter(kind="run", status="stopped"))
    assert (row.entry["by"]["principal"], row.entry["reason"]) == ("ada", WHY)
    assert store.verify().is_whole
    again = await till.session(store).resume(run_id)
    assert (till.paid, till.asked, again.stopped) == ([], ["tea"], WHY)
    assert [result.failure and result.failure.kind for result in again.results] == ["interrupted", None]
    assert WHY in str(again.results[0].error)
    assert store.run(run_id).status == "stopped"
    assert store.verify().is_whole


async def test_a_run_at_work_is_stopped_by_another_process_at_its_next_record(store: Store) -> None:
    steps: list[str] = []
    run_ids: list[str] = []

    async def first() -> str:
        """Works, while somebody stops the run elsewhere."""
        (run,) = store.runs(is_held=True)
        run_ids.append(run.run_id)
        assert await asyncio.to_thread(stop_elsewhere, store, run.run_id) == "running"
        steps.append("first")
        return "done"

    def second() -> None:
        """Must not run."""
        steps.append("second")

    session = Session([first, second], protocol="attp", store=store)
    turn = await session.turn(program("await first()\nsecond()"))
    (run_id,) = run_ids
    assert (steps, turn.stopped) == (["first"], WHY)
    assert store.run(run_id).status == "stopped"
    assert run_rows(store, run_id) == ["started", "stopping", "stopped"]
    # The result of the call that ran is on record.
    assert [call.result.data for call in store.calls(run_id) if call.tool == "first" and call.result] == ["done"]
    assert store.verify().is_whole


async def test_a_call_whose_record_finds_the_stop_has_ended(store: Store) -> None:
    async def first() -> str:
        """Works, while somebody stops the run elsewhere."""
        (run,) = store.runs(is_held=True)
        await asyncio.to_thread(stop_elsewhere, store, run.run_id)
        return "done"

    async def stay() -> None:
        """Is cancelled by the stop."""
        await asyncio.sleep(60)

    session = Session([first, stay], protocol="openai", store=store)
    turn = await session.turn(calls(("first", {}), ("stay", {})))
    assert (turn.stopped, turn.results[0].data, turn.results[1].success) == (WHY, "done", False)
    rows = [row.status for row in store.log(LogFilter(run_id=turn.run_id, kind="call"))]
    assert sorted(rows) == ["interrupted", "success"]
    again = await session.resume(turn.run_id)
    assert [result.text for result in again.results] == [result.text for result in turn.results]


async def test_a_run_of_this_process_is_stopped_at_once_in_the_middle_of_a_call(store: Store) -> None:
    tools = Tools()
    task = asyncio.create_task(Session(tools, protocol="openai", store=store).turn(reply("slow", "pay")))
    await asyncio.to_thread(tools.has_begun.wait, PATIENCE_S)
    (run,) = store.runs(is_held=True)
    assert store.stop(run.run_id, by=Decider(principal="ada", channel="page"), reason=WHY) == "running"
    turn = await asyncio.wait_for(task, PATIENCE_S)
    assert (tools.steps, turn.suspended, turn.stopped) == (["slow", "cleaned up"], None, WHY)
    assert store.run(run.run_id).status == "stopped"
    assert store.pending() == []


def test_each_record_of_a_stopped_run_is_kept_and_no_step_begins(store: Store) -> None:
    ledger = started(store)
    running = start(step("1"))
    assert isinstance(done(ledger.begin(running)), float)
    assert stopped_unnoticed(store, ledger.run_id) == "running"
    for key in ("2", "3"):
        refused: Any = done(ledger.begin(start(step(key))))
        assert (refused.failure.kind, refused.error) == ("interrupted", f"'pay' was not run: {WHY}.")
    assert done(ledger.settle(running.step, PAID)) == PAID
    ledger.note("1", {"kept": True})
    assert done(ledger.suspend()) is None
    done(ledger.finish((PAID,)))
    again = done(store.reopen(ledger.run_id))
    assert (again.outcome, list(again.notes("1")), store.run(ledger.run_id).status) == (
        (PAID,),
        [{"kept": True}],
        "stopped",
    )


def stopped_unnoticed(store: Store, run_id: str) -> str:
    """Stops a run as another process does: this one is not told."""
    database = store._database  # pyright: ignore[reportPrivateUsage]
    held = database.held.pop(run_id)
    try:
        return store.stop(run_id, by="ada", reason=WHY)
    finally:
        database.held[run_id] = held


def test_a_pass_that_breaks_off_leaves_its_stopped_run_stopped(store: Store) -> None:
    ledger = started(store)
    done(ledger.ask(request(ledger)))
    assert stopped_unnoticed(store, ledger.run_id) == "running"
    done(ledger.release())
    run = store.run(ledger.run_id)
    assert (run.status, run.is_held, run.pending) == ("stopped", False, 0)


def test_a_run_whose_process_died_is_stopped_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = started(store)
    with monkeypatch.context() as dead:
        dead.setattr(Owner, "is_alive", lambda *_, **__: False)
        assert store.stop(ledger.run_id, by="ada") == "stopped"
    assert isinstance(done(ledger.begin(start(step("1")))), float) is False


def test_a_run_that_ended_or_is_unknown_is_not_stopped(store: Store) -> None:
    ledger = started(store)
    done(ledger.finish(()))
    for run_id, code in ((ledger.run_id, "run_ended"), ("r_none", "unknown_run")):
        with pytest.raises(DecisionRefused) as refused:
            store.stop(run_id, by="ada")
        assert refused.value.code == code
    assert store.run(ledger.run_id).status == "finished"
    others: list[Any] = [None, "", 5]
    for by in others:
        with pytest.raises(ConfigurationError, match="write by='ada', or by=Decider"):
            store.stop(ledger.run_id, by=by)


def test_a_rule_is_forgotten_by_its_id_and_the_log_says_so(store: Store) -> None:
    ledger = started(store)
    for number in (1, 2):
        asked = request(ledger, f"a_{number}", str(number))
        done(ledger.ask(asked))
        store.decide(asked.id, Decision(verdict="deny", remember=rule_for(asked, scope="workspace", effect="deny")))
    store.forget_rule("remembered:a_1", by="ada")
    assert [rule.id for rule in store.rules()] == ["remembered:a_2"]
    store.forget_rule("a_2", by=Decider(principal="bob"))
    assert (store.rules(), store.decisions_with_rules()) == ([], [])
    rows = [row for row in store.log() if row.status == "rule_forgotten"]
    assert [(row.subject, row.run_id, row.entry["by"]["principal"]) for row in rows] == [
        ("a_1", ledger.run_id, "ada"),
        ("a_2", ledger.run_id, "bob"),
    ]
    assert store.verify().is_whole
    with pytest.raises(DecisionRefused) as refused:
        store.forget_rule("a_2", by="ada")
    assert refused.value.code == "unknown_rule"


def test_a_run_starts_with_the_number_that_a_stop_compares(store: Store) -> None:
    """The control: without a stop the same records are written as ever."""
    ledger = done(store.start(run_start()))
    running = start(step("1"))
    done(ledger.begin(running))
    assert done(ledger.settle(running.step, PAID)) == PAID
    done(ledger.finish((PAID,)))
    assert store.run(ledger.run_id).status == "finished"
