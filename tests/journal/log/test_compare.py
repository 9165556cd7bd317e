"""A run or step that was deleted is named: the log tells of it, and the store no longer has it."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from tests.journal.world import PAID, done, start, started, step
from toolwire import Session
from toolwire.journal.database.location import location_of
from toolwire.journal.ledger import compare
from toolwire.journal.ledger.compare import NAMED, find_missing, find_unlogged, keys_of, spans
from toolwire.journal.log import chain, heads
from toolwire.journal.store import Store
from toolwire.vocabulary.call_events import ToolCompleted, ToolEvent
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall
from toolwire.vocabulary.context import CallContext

PROGRAM = "print([price(n) for n in range(3)])"


def price(n: int) -> int:
    """Gives a price."""
    return n


async def outer(n: int, context: CallContext) -> Any:
    """Asks for a price itself."""
    return (await context.call("price", n=n)).data


def fails() -> None:
    """Fails."""
    raise ValueError("no")


def change(url: str, *statements: str, **values: Any) -> None:
    engine = create_engine(location_of(url).url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement), values)
    engine.dispose()


def ran(store: Store, *calls: ToolCall) -> str:
    before = {run.run_id for run in store.runs()}
    session = Session([price, outer, fails], protocol="attp", store=store)
    asyncio.run(session.turn(Reply(calls=calls)))
    (run_id,) = {run.run_id for run in store.runs()} - before
    return run_id


def keys(url: str, run_id: str) -> list[str]:
    engine = create_engine(location_of(url).url)
    with engine.connect() as connection:
        query = text("SELECT key FROM steps WHERE run_id = :id ORDER BY key")
        found = list(connection.execute(query, {"id": run_id}).scalars())
    engine.dispose()
    return found


CALLS = (
    ToolCall("price", {"n": 1}),
    ToolCall("outer", {"n": 2}),
    ToolCall("fails"),
    ToolCall("price", {"n": "no number"}),
    ToolCall(CODE_EXECUTION, {"code": PROGRAM}),
)


@pytest.mark.threat(62)
def test_each_deleted_step_is_named_and_no_other(store: Store, url: str) -> None:
    run_id = ran(store, *CALLS)
    ran(store, ToolCall("price", {"n": 5}))
    assert store.verify().is_whole
    found = keys(url, run_id)
    # `outer` made one call, and the program three.
    assert len(found) == len(CALLS) + 1 + 3
    for count, key in enumerate(found, 1):
        change(url, "DELETE FROM steps WHERE key = :key", key=key)
        check = store.verify()
        assert check.bad_seq is None
        assert sorted(check.missing) == sorted(f"step {gone} of run {run_id}" for gone in found[:count])


@pytest.mark.threat(62)
def test_a_deleted_run_is_named_with_its_steps(store: Store, url: str) -> None:
    run_id = ran(store, *CALLS)
    found = keys(url, run_id)
    change(url, *(f"DELETE FROM {table} WHERE run_id = :id" for table in ("notes", "steps", "runs")), id=run_id)
    check = store.verify()
    assert (check.bad_seq, check.missing[0]) == (None, f"run {run_id}")
    assert sorted(check.missing[1:]) == sorted(f"step {key} of run {run_id}" for key in found)


def test_a_step_of_a_run_that_never_ended_is_named_by_its_call(store: Store, url: str) -> None:
    ledger = started(store, "r_5")
    done(ledger.begin(start(step("r_5/1"))))
    done(ledger.settle(step("r_5/1"), PAID))
    event = {"kind": "call", "at": 1.0, "run_id": "r_5", "subject": "r_5/1", "tool": "pay", "status": "success"}
    store.tell({**event, "entry": {"parent": ""}})
    assert store.verify().is_whole
    change(url, "DELETE FROM steps")
    assert store.verify().missing == ("step r_5/1 of run r_5",)


def test_a_step_that_was_begun_and_is_not_known_to_have_ended_is_there_too(store: Store, url: str) -> None:
    ledger = started(store, "r_6")
    done(ledger.begin(start(step("r_6/1"))))
    done(ledger.suspend())
    assert store.verify().is_whole
    change(url, "DELETE FROM steps")
    assert store.verify().missing == ("step r_6/1 of run r_6",)


def head_of(url: str) -> Any:
    engine = create_engine(location_of(url).url)
    with engine.connect() as connection:
        # The rows are in the chain with the highest number.
        heads = "SELECT name, value, (SELECT max(seq) FROM log) FROM meta WHERE name LIKE 'log_head%'"
        found = connection.execute(text(f"{heads} ORDER BY name DESC")).first()
    engine.dispose()
    return found


def cut(url: str, head: Any) -> None:
    """Puts an earlier signed end of the log back, without the key."""
    statements = ("UPDATE meta SET value = :value WHERE name = :name", "DELETE FROM log WHERE seq > :last")
    change(url, *statements, name=head[0], value=head[1], last=head[2] or 0)


@pytest.mark.threat(62)
def test_a_run_that_was_cut_off_the_log_is_named(store: Store, url: str) -> None:
    ran(store, *CALLS)
    head = head_of(url)
    run_id = ran(store, ToolCall("price", {"n": 5}))
    assert store.verify().is_whole
    cut(url, head)
    check = store.verify()
    assert (check.bad_seq, check.missing, check.unlogged) == (None, (), (f"run {run_id}",))
    assert not check.is_whole


@pytest.mark.threat(62)
def test_the_steps_and_the_end_of_a_run_that_were_cut_off_are_named(store: Store, url: str) -> None:
    ledger = started(store, "r_7")
    done(ledger.begin(start(step("r_7/1"))))
    done(ledger.suspend())
    suspended = head_of(url)
    again = done(store.reopen("r_7"))
    assert store.verify().is_whole
    done(again.begin(start(step("r_7/2"))))
    done(again.suspend())
    assert store.verify().is_whole
    cut(url, suspended)
    assert store.verify().unlogged == ("step r_7/2 of run r_7",)
    other = started(store, "r_12")
    begun = head_of(url)
    done(other.finish([]))
    cut(url, begun)
    assert store.verify().unlogged[:-1] == ("run r_12 is finished, and started in the log",)
    change(url, "update runs set status = 'running' where run_id = 'r_12'")
    assert "run r_12 is finished, and started in the log" in store.verify().unlogged


@pytest.mark.threat(62)
def test_the_steps_of_a_run_that_never_ended_and_were_cut_off_are_named(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_start = list[Any]()

    def look() -> None:
        """Looks at the log, which has the start of the run by now and no call."""
        at_start.append(head_of(url))

    async def stay() -> None:
        """Never ends."""
        await asyncio.sleep(60)

    async def be_cancelled() -> None:
        session = Session([look, stay], protocol="attp", store=store)
        ended, reply = asyncio.Event(), Reply(calls=(ToolCall("look"), ToolCall("stay")))

        def watch(event: ToolEvent) -> None:
            if isinstance(event, ToolCompleted):
                ended.set()

        turn = asyncio.create_task(session.turn(reply, events=watch))
        await ended.wait()
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)

    asyncio.run(be_cancelled())
    (run,) = store.runs()
    assert (run.status, store.verify().is_whole) == ("running", True)
    cut(url, at_start[0])
    steps = (f"step {run.run_id}/1 of run {run.run_id}",)
    assert store.verify().unlogged == steps
    monkeypatch.setattr(compare, "_steps_without_rows", lambda *_: [])
    assert store.verify().is_whole


@pytest.mark.threat(62)
@pytest.mark.parametrize("entry", ["no JSON", "[1]", "[" * 100_000])
def test_a_row_whose_entry_is_not_json_is_the_bad_row(store: Store, url: str, entry: str) -> None:
    ran(store, *CALLS)
    second = min(row.seq for row in store.log()) + 1
    change(url, "UPDATE log SET entry = :entry WHERE seq = :seq", entry=entry, seq=second)
    assert store.verify().bad_seq == second
    # The chain without the key: its hashes can be computed, and the signed end cannot.
    engine = create_engine(location_of(url).url)
    with engine.begin() as connection:
        before = ""
        for row in connection.execute(text("SELECT * FROM log ORDER BY seq")).mappings().all():
            now = chain.row_hash(before or heads.GENESIS, {name: row[name] for name in row})
            connection.execute(text("UPDATE log SET hash = :now WHERE seq = :seq"), {"now": now, "seq": row["seq"]})
            before = now
    engine.dispose()
    check = store.verify()
    assert (check.bad_seq, check.problem) == (second, "its entry is not JSON")


@pytest.mark.threat(62)
def test_no_column_makes_a_run_older_than_a_pruned_log(store: Store, url: str) -> None:
    ran(store, *CALLS)
    store.prune(keep=1)
    head = head_of(url)
    run_id = ran(store, ToolCall("price", {"n": 5}))
    cut(url, head)
    change(url, "UPDATE runs SET created_at = 1.0")
    assert store.verify().unlogged == (f"run {run_id}",)


def test_runs_under_way_waiting_ended_forgotten_or_pruned_are_no_faults(store: Store) -> None:
    running, waiting, ended = (started(store, f"r_{number}") for number in (8, 9, 10))
    done(running.begin(start(step("r_8/1"))))
    assert store.verify().is_whole
    done(waiting.suspend())
    done(ended.finish([]))
    assert store.verify().is_whole
    store.prune(keep=2)
    assert store.verify().is_whole
    store.prune(keep=0)
    assert store.verify().is_whole
    store.forget(before=time.time() + 1)
    done(started(store, "r_11").suspend())
    assert store.verify().is_whole


def test_at_most_a_hundred_are_named(store: Store, url: str) -> None:
    ledger = started(store)
    for n in range(NAMED + 20):
        done(ledger.settle(step(f"{ledger.run_id}/{n}"), PAID))
    done(ledger.finish([]))
    change(url, "DELETE FROM steps")
    assert len(store.verify().missing) == NAMED


def test_runs_that_come_and_go_while_they_are_compared_are_no_faults(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.journal.ledger.compare._AT_ONCE", 2)
    for number in range(20, 25):
        ledger = started(store, f"r_{number}")
        done(ledger.settle(step(f"r_{number}/1"), PAID))
        done(ledger.finish([]))
    database, reads = store._database, itertools.count()

    def read(job: Any) -> Any:
        found = database.read_one_state(job)
        if next(reads) == 1:
            store.forget(before=time.time() + 60)
            done(started(store, "r_new").finish([]))
        return found

    assert find_missing(read) == ()
    reads = itertools.count()
    assert find_unlogged(read, database.sealer) == ()
    assert store.verify().is_whole


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], []),
        (["r/2", "r/1", "r/3", "r/7", "p/1"], [["r", 1, 3], ["r", 7, 7], ["p", 1, 1]]),
        (["1", "r/x", "r/01", "/1", "r/1-2"], ["1", "r/x", "r/01", "r/1-2", ["", 1, 1]]),
    ],
)
def test_keys_are_written_in_few_words(keys: list[str], expected: list[Any]) -> None:
    assert spans(keys) == expected
    assert sorted(keys_of(spans(keys))) == sorted(keys)
