"""The log in a store: read back, followed, verified, bounded."""

from __future__ import annotations

import dataclasses
import json
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, text, update

from tests.journal.log.test_memory_log import NOON, FakeRecord
from tests.journal.world import done, request, started
from tests.patience import PATIENCE_S, until
from toolwire import ConfigurationError, ToolRegistry
from toolwire.journal.database.tables import LOG, META
from toolwire.journal.durable_log import DurableLog
from toolwire.journal.growth import slices
from toolwire.journal.log.checking import LogCheck, check_chains
from toolwire.journal.log.heads import Head, chain_of, head_name
from toolwire.journal.log.memory_log import ExecutionLog
from toolwire.journal.log.rows import LogFilter, LogRow
from toolwire.journal.store import Store
from toolwire.permission.approval import Decider, Decision
from toolwire.vocabulary.results import ToolResult

RECORDS = [
    FakeRecord("add", {"a": 1, "b": [None, "é\ud800\x00"]}, ToolResult(True, {"sum": 3}), id="r_1", run_id="r_1"),
    FakeRecord("add", {}, ToolResult.failed("denied", "no"), id="tr/1", run_id="tr", minute=1),
    FakeRecord("mul", {"x": object()}, ToolResult(True, object()), id="tr/2", run_id="tr", minute=2),
    FakeRecord("odd\x00name", {"password": "hunter2"}, id="r_4", run_id="r_4", minute=3),
    FakeRecord("run", {}, ToolResult(True, 1, None, {"isolation": {"level": "kernel"}}), id="r_5", minute=4),
]


def filled(log: ExecutionLog) -> Any:
    for record in RECORDS:
        log.ended(record)
    return log


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"invocation_id": "tr"},
        {"tool_name": "add"},
        {"status": "denied"},
        {"since": NOON.timestamp() + 60},
        {"since": NOON.replace(minute=2, tzinfo=None)},
        {"limit": 2},
        {"limit": 0},
        {"tool_name": "add", "status": "success"},
        {"tool_name": "nothing"},
    ],
    ids=str,
)
def test_a_durable_log_gives_what_the_log_in_memory_gives(store: Store, wanted: dict[str, Any]) -> None:
    expected = filled(ExecutionLog()).get_entries(**wanted)
    found = filled(DurableLog(store)).get_entries(**wanted)
    known = {"é\ud800\x00": "é\ud800\x00", "odd\x00name": "odd\\x00name"}
    for mine, theirs in zip(found, expected, strict=True):
        arguments = {"password": "<redacted>"} if "password" in theirs.arguments else theirs.arguments
        name = known.get(theirs.tool_name, theirs.tool_name)
        assert mine == dataclasses.replace(theirs, arguments=arguments, tool_name=name)


def test_log_entries_are_readable_in_the_next_process(opened: Callable[[], Store]) -> None:
    first = opened()
    filled(DurableLog(first))
    first.close()
    second = DurableLog(opened())
    assert (len(second), [entry.id for entry in second.get_entries()]) == (5, ["r_5", "r_4", "tr/2", "tr/1", "r_1"])
    with pytest.raises(ConfigurationError):
        second.clear()
    with pytest.raises(ConfigurationError):
        second.get_entries(limit=-1)


def test_a_registry_logs_to_a_store_by_its_url(url: str) -> None:
    registry = ToolRegistry()

    @registry.register
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    log = registry.enable_logging(store=url)
    assert registry.enable_logging() is log is registry.get_execution_log()
    registry.invoke("add", {"a": 1, "b": 2})
    assert [(entry.tool_name, entry.result) for entry in log.get_entries()] == [("add", 3)]
    assert isinstance(log, DurableLog)
    log.store.close()


def test_a_log_is_enabled_in_one_place(store: Store) -> None:
    registry = ToolRegistry()
    with pytest.raises(ConfigurationError, match=r"retention=Retention\(log_days=30\)"):
        registry.enable_logging(store=store, keep_days=1)
    registry.enable_logging()
    with pytest.raises(ConfigurationError):
        registry.enable_logging(store=store)


def test_runs_requests_and_decisions_are_told_in_order(store: Store) -> None:
    ledger = started(store)
    asked = request(ledger, "a_1")
    done(ledger.ask(asked))
    done(ledger.ask(asked))
    DurableLog(store).asked(asked, "r_1")
    other = dataclasses.replace(asked, id="a_2", run_id="")
    DurableLog(store).asked(other, "r_1")
    done(ledger.suspend())
    store.decide("a_1", Decision(verdict="deny", reason="no", by=Decider(principal="user:1", channel="cli")))
    found = done(store.reopen(ledger.run_id))
    done(found.finish([ToolResult(True, 1)]))
    rows = store.log()
    assert [(row.kind, row.subject, row.status) for row in rows] == [
        ("run", ledger.run_id, "started"),
        ("request", "a_1", "asked"),
        ("request", "a_2", "asked"),
        ("run", ledger.run_id, "suspended"),
        ("decision", "a_1", "deny"),
        ("run", ledger.run_id, "resumed"),
        ("run", ledger.run_id, "finished"),
    ]
    assert rows[4].entry["by"] == {"principal": "user:1", "channel": "cli", "authn": ""}
    newest = store.log(LogFilter(run_id=ledger.run_id, kind="run"), limit=2, newest_first=True)
    assert ([row.status for row in newest], newest.more) == (["finished", "resumed"], True)


def test_a_log_is_followed_from_a_row_on_until_the_store_is_closed(opened: Callable[[], Store]) -> None:
    store, other = opened(), opened()
    log = DurableLog(other)
    for record in RECORDS[:3]:
        log.ended(record)
    first = other.log()[0]
    seen: list[LogRow] = []
    two, all_seen = threading.Event(), threading.Event()

    def read() -> None:
        for row in store.follow(after=first.cursor):
            seen.append(row)
            if len(seen) == 2:
                two.set()
        all_seen.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert two.wait(PATIENCE_S)
    log.ended(RECORDS[3])
    until(lambda: len(seen) == 3)
    store.close()
    reader.join(PATIENCE_S)
    assert all_seen.is_set()
    assert [row.subject for row in seen] == ["tr/1", "tr/2", "r_4"]


# -- the chain ------------------------------------------------------------------------------------------------------


def bound_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each slice have 10 rows."""
    for name in ("FIRST_ROWS", "MOST_ROWS"):
        monkeypatch.setattr(slices, name, 10)
    monkeypatch.setattr(slices, "SLICE_S", PATIENCE_S)


def rows_of(store: Store, count: int) -> None:
    log = DurableLog(store)
    for number in range(count):
        log.ended(FakeRecord("add", {"a": number}, id=f"r_{number}", run_id="r", minute=number))
    assert store.verify() == LogCheck(rows=count, bad_seq=None, problem="")


COLUMNS = ("at", "kind", "run_id", "subject", "tool", "status", "entry", "hash")


def tamperings(count: int, random_: random.Random) -> list[tuple[str, int, Any]]:
    """Ways to tamper with a log of so many rows: the change, the row that has to be named, and more."""
    found: list[tuple[str, int, Any]] = []
    for seq in range(1, count + 1):
        found += [("edit", seq, column) for column in COLUMNS]
        found.append(("delete", seq, None))
        if seq < count:
            found.append(("swap", seq, random_.randint(seq + 1, count)))
        found.append(("insert", seq, None))
        found.append(("cut", seq, None))
        found.append(("cut and head", seq, None))
    return found


def first_number(store: Store) -> int:
    """The number before the first row: in PostgreSQL the rows are in a chain of the store's own."""
    return min(row.seq for row in store.log()) - 1


def tamper(connection: Any, deed: str, seq: int, more: Any, count: int) -> None:
    row = dict(connection.execute(select(LOG).where(LOG.c.seq == seq)).mappings().one())
    here = LOG.c.seq == seq
    match deed:
        case "edit":
            value = row[more] + 1 if more == "at" else ("0" * 64 if more == "hash" else row[more] + " ")
            connection.execute(update(LOG).where(here).values({more: value}))
        case "delete":
            connection.execute(delete(LOG).where(here))
        case "swap":
            there = connection.execute(select(LOG).where(LOG.c.seq == more)).mappings().one()
            connection.execute(update(LOG).where(here).values({**there, "seq": seq}))
            connection.execute(update(LOG).where(LOG.c.seq == more).values({**row, "seq": more}))
        case "insert":
            for later in range(count, seq - 1, -1):
                connection.execute(update(LOG).where(LOG.c.seq == later).values(seq=later + 1))
            connection.execute(insert(LOG).values({**row, "subject": "r_forged"}))
        case "cut":
            connection.execute(delete(LOG).where(LOG.c.seq >= seq))
        case _:
            connection.execute(delete(LOG).where(LOG.c.seq >= seq))
            last = connection.execute(select(LOG.c.hash).where(LOG.c.seq == seq - 1)).scalar() or "0" * 64
            head = META.c.name == head_name(chain_of(seq))
            kept = json.loads(connection.execute(select(META.c.value).where(head)).scalar())
            forged = json.dumps({**kept, "seq": seq - 1, "hash": last}).encode()
            connection.execute(update(META).where(head).values(value=forged))


@pytest.mark.threat(62)
def test_every_tampering_is_seen_and_named(store: Store) -> None:
    count = 25
    rows_of(store, count)
    before = first_number(store)
    deeds = [
        (deed, before + seq, before + more if deed == "swap" else more)
        for deed, seq, more in tamperings(count, random.Random(7))
    ]
    assert len(deeds) >= 300
    database = store._database
    missed: list[Any] = []
    unseen_without_chain = 0
    with database._engine.connect() as connection:
        for deed, seq, more in deeds:
            with connection.begin() as transaction:
                tamper(connection, deed, seq, more, before + count)
                check = check_chains(lambda job: job(connection), database.sealer, print)
                expected = max(seq - 1, before) if deed == "cut and head" else seq
                if check.bad_seq is None or (check.bad_seq != expected and deed != "cut and head"):
                    missed.append((deed, seq, more, check))
                # The control: rows that parse and ids that are unique are all that there is to see without a chain.
                rows = connection.execute(select(LOG)).mappings().all()
                unseen_without_chain += all(json.loads(row["entry"]) is not None for row in rows)
                transaction.rollback()
        assert (missed, unseen_without_chain) == ([], len(deeds))
    assert store.verify().is_whole


@pytest.mark.threat(62)
@pytest.mark.parametrize("value", [b"", b"{}", b'{"seq": 3}', None])
def test_a_log_whose_end_is_not_signed_stays_bad_whatever_is_appended(store: Store, value: bytes | None) -> None:
    rows_of(store, 3)
    chain = chain_of(first_number(store) + 1)

    def spoil(connection: Any) -> None:
        head = META.c.name == head_name(chain)
        connection.execute(delete(META).where(head) if value is None else update(META).where(head).values(value=value))

    done(store._database.run(spoil))
    assert not store.verify().is_whole
    DurableLog(store).ended(RECORDS[0])
    assert len(store.log()) == 4
    assert not store.verify().is_whole


def test_a_log_that_was_pruned_is_whole_still(store: Store) -> None:
    rows_of(store, 20)
    before = first_number(store)
    assert store.prune(keep=12) == 8
    assert store.verify() == LogCheck(rows=12, bad_seq=None, problem="")
    assert store.prune(before=NOON.timestamp() + 60 * 10) == 2
    assert [row.subject for row in store.log()] == [f"r_{number}" for number in range(10, 20)]
    assert store.prune(keep=12) == 0
    assert store.prune(before=NOON.timestamp() + 60 * 1000) == 10
    assert store.verify() == LogCheck(rows=0, bad_seq=None, problem="")
    DurableLog(store).ended(RECORDS[0])
    assert store.verify() == LogCheck(rows=1, bad_seq=None, problem="")
    done(store._database.run(lambda connection: connection.execute(text("DELETE FROM log"))))
    assert store.verify().bad_seq == before + 21


def test_a_record_is_written_between_the_slices_of_a_long_prune(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_left(connection: Any) -> int:
        return connection.execute(select(func.count()).select_from(LOG)).scalar_one()

    def prune_one(*args: Any, **named: Any) -> Any:
        found = prune(*args, **named)
        # It is queued while a slice is written, and the next slice comes after it.
        records.append(database.run(rows_left))
        return found

    database, records, prune = store._database, list[Future[int]](), slices.prune_slice
    bound_slices(monkeypatch)
    monkeypatch.setattr(slices, "prune_slice", prune_one)
    rows_of(store, 200)
    commits = database.writer.commits
    assert store.prune(keep=5) == 195
    assert [done(record) for record in records] == [*range(190, 0, -10), 5]
    assert database.writer.commits - commits >= 20
    assert store.verify() == LogCheck(rows=5, bad_seq=None, problem="")


def test_a_prune_that_fails_in_the_middle_leaves_a_whole_log_and_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at(connection: Any, sealer: Any, wanted: Any, *, at_once: int) -> Any:
        if wanted.chains is not None:
            raise ConfigurationError("the second slice")
        return prune(connection, sealer, wanted, at_once=at_once)

    prune = slices.prune_slice
    bound_slices(monkeypatch)
    rows_of(store, 30)
    with monkeypatch.context() as broken:
        broken.setattr(slices, "prune_slice", fail_at)
        with pytest.raises(ConfigurationError, match="the second slice"):
            store.prune(keep=0)
    assert store.verify() == LogCheck(rows=20, bad_seq=None, problem="")
    assert store.prune(keep=0) == 20


@pytest.mark.parametrize("rows", [9, 10, 11, 20])
def test_a_prune_of_as_many_rows_as_a_slice_has_drops_all_of_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    bound_slices(monkeypatch)
    rows_of(store, rows)
    assert store.prune(keep=0) == rows
    assert store.verify() == LogCheck(rows=0, bad_seq=None, problem="")


def test_many_threads_append_to_one_chain(opened: Callable[[], Store]) -> None:
    stores: Sequence[Store] = [opened(), opened()]

    def write(number: int) -> None:
        DurableLog(stores[number % 2]).ended(FakeRecord(id=f"r_{number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(200)))
    assert stores[0].verify() == LogCheck(rows=200, bad_seq=None, problem="")


def test_an_empty_log_is_whole(store: Store) -> None:
    assert store.verify() == LogCheck(rows=0, bad_seq=None, problem="")
    assert Head() == Head(seq=0, pruned=0, is_broken=False)


PAYLOADS = [
    f"{opening}{payload}"
    for opening in ("", "x", "1", "'", '"')
    for payload in (
        "' OR '1'='1",
        '" OR ""="',
        "'; DROP TABLE log; --",
        "') UNION SELECT value FROM meta --",
        "1; DELETE FROM runs",
        "\\'; SELECT pg_sleep(9); --",
        ":run_id",
        "%s %(run_id)s ? {0}",
        "log.tool",
        "' || (SELECT hash FROM log LIMIT 1) || '",
    )
]


@pytest.mark.threat(60)
def test_a_search_value_never_becomes_part_of_the_sql(store: Store) -> None:
    assert len(PAYLOADS) >= 50
    log = filled(DurableLog(store))
    before = store.log()
    for payload in PAYLOADS:
        for name in ("invocation_id", "tool_name", "status"):
            assert log.get_entries(**{name: payload}) == []
        assert store.pending(payload) == store.rules(payload) == []
        with pytest.raises(ConfigurationError):
            LogFilter(kind=payload)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError):
            store.runs(status=payload)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            log.get_entries(**{payload: "x"})
        log.ended(FakeRecord(payload, {payload: payload}, id=payload, run_id=payload, minute=9))
        assert [entry.tool_name for entry in log.get_entries(tool_name=payload)] == [payload]
    assert store.log(limit=len(before)) == before
    assert store.verify().is_whole
