"""The store as a console reads it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, event, func, select, text

from tests.journal.log.test_memory_log import NOON, FakeRecord
from tests.journal.plans import grow, plans_of
from tests.journal.world import PAID, done, on_record, request, run_start, started, step
from tests.patience import PATIENCE_S, until
from tests.session.saved import THREE
from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls, program
from toolwire import ConfigurationError
from toolwire.journal.database.tables import DECISIONS, LOG, NOTES, REQUESTS, RUNS, STEPS
from toolwire.journal.growth import slices
from toolwire.journal.ledger.conversations import refuse_busy
from toolwire.journal.ledger.leases import Owner
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.log import text_search
from toolwire.journal.log.events import call_event
from toolwire.journal.log.memory_log import row_of
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.log.stats import CallStats
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import NOBODY, Caller, ToolCall
from toolwire.vocabulary.results import ToolResult


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """The statements that the store's engine executes meanwhile."""
    engine, seen = store._database._engine, []  # pyright: ignore[reportPrivateUsage]

    def note(*arguments: Any) -> None:
        seen.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


def test_a_list_of_runs_is_one_query_whatever_its_length(store: Store) -> None:
    for number in range(30):
        ledger = started(store, f"r_{number:02}")
        done(ledger.settle(step("1"), PAID))
        if number % 3 == 0:
            done(ledger.ask(request(ledger, call_id="2")))
            done(ledger.ask(request(ledger, call_id="3")))
    with statements(store) as seen:
        found = store.runs(limit=30)
    assert len(seen) == 1
    assert [(run.run_id, run.steps, run.pending) for run in found] == [
        (f"r_{number:02}", 1, 2 if number % 3 == 0 else 0) for number in reversed(range(30))
    ]
    with statements(store) as seen:
        assert store.run("r_03").pending == 2
    assert len(seen) == 1


def test_runs_are_listed_page_by_page(store: Store) -> None:
    for number in range(1, 8):
        on_record(store, replace(run_start(f"r_{number}"), created_at=float(number)))
    pages: list[list[str]] = []
    before = None
    while page := store.runs(limit=3, before=before):
        pages.append([run.run_id for run in page])
        before = page[-1].created_at
    assert pages == [["r_7", "r_6", "r_5"], ["r_4", "r_3", "r_2"], ["r_1"]]
    assert [run.run_id for run in store.runs(since=2.0, before=4.0)] == ["r_3", "r_2"]
    assert store.runs(since=2.0, before=2.0, status="running") == []


# -- a call is in the log once -----------------------------------------------------------------------------------------


def logged(store: Store) -> list[str]:
    return [row.subject for row in store.log(LogFilter(kind="call"))]


THREE_CALLS = calls(("pay", {"amount": 1}), ("price", {"thing": "tea"}), ("pay", {"amount": 2}))


@pytest.mark.parametrize("protocol", ["openai", "attp"])
async def test_a_call_is_in_the_log_once_however_often_its_run_is_resumed(store: Store, protocol: str) -> None:
    till = Till()
    turn = await till.session(store, protocol=protocol).turn(THREE_CALLS if protocol == "openai" else program(THREE))
    while turn.suspended is not None:
        some = decided(waiting(turn)[:1], "approve")
        turn = await till.session(store, protocol=protocol).resume(turn.suspended.run_id, some)
    found = logged(store)
    assert len(found) == len(set(found)) == len(till.paid) + len(till.asked) + (protocol == "attp")


async def test_a_call_whose_row_was_lost_is_logged_at_the_next_resume(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older toolwire wrote the row in a later transaction, and its process died in between."""
    till, rows = Till(), RunLedger._end_rows
    with monkeypatch.context() as dying:
        dying.setattr(RunLedger, "_end_rows", lambda ledger, kept, end, place, _: rows(ledger, kept, end, place, None))
        dying.setattr(Store, "tell", lambda *_: None)
        turn = await till.session(store).turn(THREE_CALLS)
    assert turn.suspended is not None
    assert logged(store) == []
    for _ in range(2):
        await till.session(store).resume(turn.suspended.run_id)
        assert logged(store) == [f"{turn.suspended.run_id}/2"]
    assert till.asked == ["tea"]


# -- calls, trees, filters, counts -------------------------------------------------------------------------------------


async def test_the_calls_of_a_run_are_listed_with_their_parents_while_it_waits(store: Store) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(program(THREE))
    assert turn.suspended is not None
    run_id = turn.suspended.run_id
    outer, inner, waits = store.calls(run_id)
    assert (waits.parent, waits.tool, waits.state, waits.arguments) == (outer.id, "pay", "waiting", {"amount": 3})
    assert (outer.state, inner.state, waits.request_id) == ("waiting", "ended", turn.suspended.pending[0].id)
    assert (outer.id, outer.parent, outer.tool, outer.ended_at, outer.result) == (
        f"{run_id}/1",
        "",
        "code_execution",
        None,
        None,
    )
    assert (inner.parent, inner.tool, inner.arguments) == (outer.id, "price", {"thing": "tea"})
    assert (inner.result is not None and inner.result.data, inner.attempt) == (3, 1)
    assert outer.started_at is not None
    assert inner.started_at is not None
    assert inner.ended_at is not None
    assert outer.started_at <= inner.started_at <= inner.ended_at
    with pytest.raises(DecisionRefused) as refused:
        store.calls("r_none")
    assert refused.value.code == "unknown_run"


async def test_the_tree_of_a_run_reads_only_rows_of_the_run(store: Store) -> None:
    till = Till()
    first = await till.session(store, protocol="attp").turn(program(THREE))
    other = await till.session(store, protocol="attp").turn(program("price('bread')\nprice('tea')"))
    for _ in range(50):
        store.tell(call_event(row_of(FakeRecord("between")), "", NOBODY))
    assert first.suspended is not None
    run_id = first.suspended.run_id
    await till.session(store, protocol="attp").resume(run_id, decided(waiting(first), "deny"))
    with statements(store) as seen:
        found = store.log_tree(run_id)
    assert len(seen) <= 5
    assert [row.tool for row in found if row.kind == "call"].count("price") == 1
    assert {row.run_id for row in found if row.kind != "call"} == {run_id}
    assert all(row.tool != "between" for row in found)
    assert other.suspended is None


def logged_calls(store: Store) -> None:
    for number in range(100):
        tool, status = ("slow", "tool_error") if number % 10 == 0 else ("fast", None)
        result = ToolResult(True, f"found nüm{number}!") if status is None else ToolResult.failed(status, "broke 100%")
        record = FakeRecord(tool, {"a": number}, result, id=f"r/{number}", run_id="r", minute=number)
        record.duration_s = number / 100
        record.call = ToolCall(tool, {"a": number}, id=f"r/{number}", parent="p/1" if number < 3 else "p/2")
        store.tell(call_event(row_of(record), "", NOBODY))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (LogFilter(parent="p/1"), [0, 1, 2]),
        (LogFilter(parent="p/3"), []),
        (LogFilter(until=NOON.timestamp() + 120), [0, 1]),
        (LogFilter(since=NOON.timestamp() + 120, until=NOON.timestamp() + 180), [2]),
        (LogFilter(min_duration_s=0.97), [97, 98, 99]),
        (LogFilter(text="nüm5"), [5, *(number for number in range(51, 60))]),
        (LogFilter(text="NÜM5"), []),
        (LogFilter(text="FOUND", until=NOON.timestamp() + 180), [1, 2]),
        (LogFilter(text="100%"), list(range(0, 100, 10))),
        (LogFilter(text="100_"), []),
        (LogFilter(text="0%"), list(range(0, 100, 10))),
        (LogFilter(text='"a'), []),
        (LogFilter(text='"a":42}'), []),
    ],
    ids=str,
)
def test_the_log_is_filtered(store: Store, wanted: LogFilter, expected: list[int]) -> None:
    logged_calls(store)
    assert [int(row.subject[2:]) for row in store.log(wanted)] == expected
    assert store.log_length(wanted) == len(expected)


def is_indexed(store: Store) -> bool:
    return store._database.read(text_search._is_indexed)  # pyright: ignore[reportPrivateUsage]


def test_a_text_is_found_in_rows_that_came_after_the_index_and_not_in_pruned_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "UNINDEXED", 20)
    monkeypatch.setattr(text_search, "INDEXED_AT_ONCE", 70)
    logged_calls(store)
    assert store.log_length(LogFilter(text="broke")) == 10
    logged_calls(store)
    assert store.log_length(LogFilter(text="broke")) == 20
    assert is_indexed(store)
    store.prune(keep=50)
    assert store.log_length(LogFilter(text="broke")) == 5
    assert store.verify().is_whole


def test_a_short_text_is_looked_for_in_the_newest_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "SCANNED", 10)
    monkeypatch.setattr(text_search, "UNINDEXED", 20)
    logged_calls(store)
    assert store.log_length(LogFilter(text="m42")) == 1
    assert [row.subject for row in store.log(LogFilter(text="99"))] == ["r/99"]
    assert store.log(LogFilter(text="42")) == []
    assert [row.subject for row in store.log(LogFilter(text="m42"))] == ["r/42"]


@pytest.mark.usefixtures("is_new")
def test_a_search_does_not_wait_for_the_first_index_and_says_how_much_it_searched(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, may_begin = LogFilter(text="m42"), threading.Event()
    monkeypatch.setattr(text_search, "SCANNED", 10)
    go = text_search.TextIndex._go  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(text_search.TextIndex, "_go", lambda index: (may_begin.wait(PATIENCE_S), go(index)))
    logged_calls(store)
    monkeypatch.setattr(text_search, "UNINDEXED", 100)
    store.log(wanted)
    monkeypatch.setattr(text_search, "UNINDEXED", 99)
    assert not is_indexed(store)
    found = store.log(wanted)
    assert (list(found), found.searched) == ([], 0.1 if store.url.startswith("sqlite") else 0.0)
    may_begin.set()
    assert store.log_length(wanted) == 1
    found = store.log(wanted)
    assert ([row.subject for row in found], found.searched) == (["r/42"], 1.0)


@pytest.mark.usefixtures("is_new")
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_an_index_that_a_process_left_half_made_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, left = LogFilter(text="m42"), "indisvalid = false WHERE indexrelid = 'log_text'::regclass"
    monkeypatch.setattr(text_search, "UNINDEXED", 20)
    logged_calls(store)
    assert (store.log_length(wanted), is_indexed(store)) == (1, True)
    leave = text(f"UPDATE pg_index SET {left}")
    done(store._database.run(lambda connection: connection.execute(leave)))  # pyright: ignore[reportPrivateUsage]
    assert not is_indexed(store)
    assert (store.log_length(wanted), is_indexed(store)) == (1, True)


@pytest.mark.usefixtures("is_new")
def test_without_an_index_a_text_is_looked_for_in_the_newest_rows_with_a_warning(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(connection: Any, _: Any = None) -> bool:
        connection.execute(text("SELECT missing"))
        return True

    monkeypatch.setattr(text_search, "SCANNED", 10)
    monkeypatch.setattr(text_search, "UNINDEXED", 20)
    monkeypatch.setattr(text_search, "index_slice", fails)
    monkeypatch.setattr(text_search, "_create_postgres_index", fails)
    logged_calls(store)
    assert store.log_length(LogFilter(text="m42")) == 0
    assert [row.subject for row in store.log(LogFilter(text="m99"))] == ["r/99"]
    assert store.log(LogFilter(text="m42")) == []
    assert "the log has no index of its texts, so a search sees the newest 10 rows" in caplog.text
    assert store.verify().is_whole


def test_calls_are_counted_with_failures_and_percentiles(store: Store) -> None:
    assert store.stats() == []
    logged_calls(store)
    assert store.stats() == [
        CallStats(name="fast", calls=90, failures=0, p50_s=0.49, p95_s=0.95),
        CallStats(name="slow", calls=10, failures=10, p50_s=0.4, p95_s=0.9),
    ]
    assert [(one.name, one.calls) for one in store.stats(by="status", since=NOON.timestamp() + 60 * 95)] == [
        ("success", 5)
    ]
    with pytest.raises(ConfigurationError, match=r"Store\.stats\(by='color'\): write one of tool, status, principal"):
        store.stats(by="color")  # type: ignore[arg-type]


def test_calls_are_counted_by_whom_they_were_for(store: Store) -> None:
    for number, (conversation, caller) in enumerate(
        [("c-1", Caller(principal="ann", agent="a")), ("c-1", Caller(principal="ann", agent="b")), ("", NOBODY)]
    ):
        record = FakeRecord("fast", {}, ToolResult(True, 1), id=f"r/{number}", run_id="r", minute=number)
        store.tell(call_event(row_of(record), conversation, caller))

    def counted(by: Any) -> dict[str, int]:
        return {one.name: one.calls for one in store.stats(by=by)}

    assert counted("principal") == {"ann": 2, "": 1}
    assert counted("agent") == {"a": 1, "b": 1, "": 1}
    assert counted("conversation") == {"c-1": 2, "": 1}


def test_runs_are_listed_by_caller(store: Store) -> None:
    callers = {
        "a": Caller(principal="ann", agent="a"),
        "b": Caller(principal="ann", agent="b"),
        "c": Caller(principal="ann", tenant="other"),
        "d": Caller(principal="\ud800"),
        "e": NOBODY,
    }
    for name, caller in callers.items():
        done(started(store, name, caller=caller).release())

    def listed(caller: Caller | None, **more: Any) -> list[str]:
        return sorted(run.run_id for run in store.runs(caller=caller, **more))

    assert listed(None) == sorted(callers)
    assert listed(Caller(principal="ann")) == ["a", "b"]
    assert listed(Caller(principal="ann", agent="b")) == ["b"]
    assert listed(Caller(principal="ann", tenant="other")) == ["c"]
    assert listed(Caller(principal="\ud800")) == ["d"]
    assert listed(NOBODY) == ["e"]
    assert listed(Caller(principal="ann"), status="finished") == []
    assert listed(Caller(principal="ann"), status="running", limit=1) == ["b"]
    # All these runs have one time of creation.
    (first, *_) = store.runs(limit=1)
    assert listed(Caller(principal="ann"), before=first.created_at) == []
    assert listed(Caller(principal="ann"), before=first.created_at + 1) == ["a", "b"]


@pytest.mark.parametrize("change", ["parent = 'p/9'", "duration_s = 99.0", "duration_s = NULL"])
def test_a_parent_or_a_duration_that_was_changed_is_found_out(store: Store, change: str) -> None:
    logged_calls(store)
    assert store.verify().is_whole
    seq = store.log()[4].seq
    change_row = text(f"UPDATE log SET {change} WHERE seq = {seq}")
    done(store._database.run(lambda connection: connection.execute(change_row)))  # pyright: ignore[reportPrivateUsage]
    check = store.verify()
    assert (check.bad_seq, check.problem) == (seq, "its parent or its duration was changed")


# -- following ---------------------------------------------------------------------------------------------------------


def test_an_iterator_that_waits_is_ended_from_another_thread(store: Store) -> None:
    logged_calls(store)
    followed, seen = store.follow(store.log()[97].cursor), list[str]()
    thread = threading.Thread(target=lambda: seen.extend(row.subject for row in followed))
    thread.start()
    until(lambda: len(seen) == 2)
    followed.close()
    thread.join(PATIENCE_S)
    assert (thread.is_alive(), seen) == (False, ["r/98", "r/99"])


def test_many_followers_share_one_poller_that_ends_with_the_last(store: Store) -> None:
    def pollers() -> int:
        return sum(thread.name == "toolwire-follow" for thread in threading.enumerate())

    followers = [store.follow() for _ in range(20)]
    assert pollers() == 0
    logged_calls(store)
    assert [next(followed).subject for followed in followers] == ["r/0"] * 20
    followers.pop().close()
    assert pollers() == 1
    # The others end with their last reference.
    del followers
    gc.collect()
    until(lambda: pollers() == 0)


def test_the_connection_of_a_reader_is_closed_when_the_store_was_closed_meanwhile(store: Store) -> None:
    database, reads, may_end = store._database, threading.Event(), threading.Event()
    connections: list[Any] = []

    def read(connection: Connection) -> None:
        connections.append(connection.connection.dbapi_connection)
        reads.set()
        assert may_end.wait(PATIENCE_S)

    reader = threading.Thread(target=lambda: database.read(read))
    reader.start()
    assert reads.wait(PATIENCE_S)
    store.close()
    may_end.set()
    reader.join(PATIENCE_S)
    with pytest.raises(Exception, match="closed"):
        connections[0].execute("SELECT 1")


async def test_a_loop_follows_the_log_and_goes_on_beside_it(store: Store) -> None:
    seen: list[str] = []

    async def follow() -> None:
        async for row in store.afollow():
            seen.append(row.subject)

    tasks = [asyncio.create_task(follow()) for _ in range(3)]
    await asyncio.to_thread(logged_calls, store)
    await asyncio.to_thread(until, lambda: len(seen) == 300)
    tasks[0].cancel()
    await asyncio.to_thread(store.close)
    async with asyncio.timeout(PATIENCE_S):
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError, type(None), type(None)]


# -- forgetting --------------------------------------------------------------------------------------------------------


async def test_runs_that_ended_are_forgotten_with_their_records_and_nothing_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "FIRST_ROWS", 2)
    till, ended = Till(), list[str]()
    for _ in range(5):
        turn = await till.session(store, protocol="attp").turn(program("price('tea')\npay(1)"))
        assert turn.suspended is not None
        ended.append(turn.suspended.run_id)
        await till.session(store, protocol="attp").resume(ended[-1], decided(waiting(turn), "approve"))
    waits = await till.session(store).turn(THREE_CALLS)
    assert waits.suspended is not None
    assert store.forget(before=0.0) == 0
    assert store.forget(before=time.time() + 60) == 5
    assert [run.run_id for run in store.runs()] == [waits.suspended.run_id]
    assert store.verify().is_whole
    with pytest.raises(DecisionRefused):
        store.calls(ended[0])
    assert [call.state for call in store.calls(waits.suspended.run_id)] == ["waiting", "ended", "waiting"]
    tables = (STEPS, NOTES, REQUESTS, DECISIONS)
    left = store._database.read(  # pyright: ignore[reportPrivateUsage]
        lambda connection: [connection.execute(select(func.count()).select_from(one)).scalar() for one in tables]
    )
    assert left == [1, 0, 2, 0]


def test_a_run_that_was_deleted_by_hand_is_still_missing(store: Store) -> None:
    kept, gone = started(store), started(store)
    done(gone.finish(()))
    done(kept.finish(()))
    delete_it = delete(RUNS).where(RUNS.c.run_id == gone.run_id)
    done(store._database.run(lambda connection: connection.execute(delete_it)))  # pyright: ignore[reportPrivateUsage]
    assert store.forget(before=time.time() + 60) == 1
    assert store.verify().missing == (f"run {gone.run_id}",)


def test_the_runs_of_a_caller_are_found_by_their_index(store: Store) -> None:
    done(started(store, caller=Caller(principal="ann")).release())
    grow(store)
    found = plans_of(store, lambda store: store.runs(caller=Caller(principal="ann")))
    assert any("runs_principal" in plan for plan in found), found
    # The control: all runs have another index.
    found = plans_of(store, lambda store: store.runs())
    assert found
    assert not any("runs_principal" in plan for plan in found)


QUESTIONS: dict[str, Callable[[Store], object]] = {
    "runs_created_at": lambda store: store.runs(),
    "runs_conversation": lambda store: store.runs(conversation="c-1"),
    "runs_unfinished": lambda store: store.runs(status="suspended"),
    "runs_ready": lambda store: store.ready(),
    "runs_held": lambda store: store._database.read(
        lambda connection: refuse_busy(connection, "c-1", Owner.this(), time.time())
    ),
    "log_run_id": lambda store: store.log(LogFilter(run_id="r_1"), limit=100, newest_first=True),
    "log_conversation": lambda store: store.log(LogFilter(conversation="c-1"), limit=100, newest_first=True),
    "log_asked": lambda store: store.log(LogFilter(kind="decision"), limit=100, newest_first=True),
    "log_parent": lambda store: store.log(LogFilter(parent="r_1/1"), limit=100, newest_first=True),
}
"""The question that needs each index of these tables. Rows of a time are found by `log_at`, and those of a principal
by `runs_principal`."""


def test_each_index_of_a_turn_is_needed_by_a_question(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        for index, ask in QUESTIONS.items():
            assert index in plan_of(store, lambda ask=ask: ask(store)), index
        # The control: a status without an index of its own is looked for in the order of time.
        assert "runs_created_at" in plan_of(store, lambda: store.runs(status="finished"))
    indexes = {index.name for table in (RUNS, LOG) for index in table.indexes}
    assert indexes == {*QUESTIONS, "runs_principal", "log_at"}


def plan_of(store: Store, ask: Callable[[], object]) -> str:
    """The plans of all that SQLite was asked."""
    plans, asked = list[str](), list[str]()
    driver: Any = store._database.read(lambda connection: connection.connection.dbapi_connection)
    driver.set_trace_callback(asked.append)
    ask()
    driver.set_trace_callback(None)
    for statement in asked:
        if statement.startswith("SELECT"):
            plans += [str(row) for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()]
    return "\n".join(plans)


def test_a_filter_for_rows_of_no_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        LogFilter(kind="calls")  # type: ignore[arg-type]
    assert str(refused.value) == "LogFilter(kind='calls'): write one of 'call', 'request', 'decision', 'run'"


def test_a_read_that_fails_halfway_leaves_no_old_state_for_later_ones(store: Store) -> None:
    for _ in range(2):
        done(started(store).finish(()))

    def fail(connection: Connection) -> None:
        rows = connection.execute(select(RUNS.c.run_id))
        raise ArithmeticError(next(rows))

    kept: list[BaseException] = []
    for _ in range(3):
        with pytest.raises(ArithmeticError) as failed:
            store._database.read(fail)
        # With its traceback, as a log of errors keeps it.
        kept.append(failed.value)
    done(started(store).finish(()))
    assert [len(store.runs()) for _ in range(4)] == [3] * 4
