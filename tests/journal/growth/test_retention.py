"""What a retention deletes, and what it never deletes."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import time
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from tests.journal.world import done, started, step
from tests.patience import until
from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls, program
from toolwire import ConfigurationError, Decision, Retention, Rule, Session, Store, StoreUnavailable, ToolResult
from toolwire.journal.database.tables import KEPT_RESULTS, RULES, RUNS, STEPS
from toolwire.journal.growth import slices
from toolwire.journal.growth.prune_lease import PRUNE_LEASE_S, PruneLease
from toolwire.journal.growth.short_results import DROPPED
from toolwire.journal.growth.slices import Slices
from toolwire.journal.ledger import forgetting
from toolwire.journal.ledger.leases import Owner
from toolwire.types import PruneReport
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.kept_text import KeptText

AT_ONCE = 1e-9
"""Days after which a test's run is due: less than a millisecond."""
WITHOUT_RESULTS = Retention(results_days=AT_ONCE)
NOTHING = Retention(runs_days=AT_ONCE, log_days=AT_ONCE, results_days=AT_ONCE)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def report(where: str) -> list[Any]:
    """Gives a text and a picture."""
    return [{"type": "text", "text": f"report {where} " + "word " * 400}, IMAGE]


def table(rows: int) -> list[dict[str, int]]:
    """Gives a table."""
    return [{"row": row} for row in range(rows)]


def session(store: Store, protocol: str) -> Session:
    return Session([report, table], protocol=protocol, store=store)


def bytes_on_record(store: Store) -> int:
    query = select(func.sum(func.length(STEPS.c.ended)))
    return store._database.read(lambda connection: connection.execute(query).scalar_one())


# -- whole results -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "reply"),
    [
        ("openai", calls(("report", {"where": "north"}), ("table", {"rows": 40}), ("table", {"rows": "x"}))),
        ("gemini", {"parts": [{"functionCall": {"name": "table", "args": {"rows": 40}}}], "role": "model"}),
        ("json", '<tool_call>\n{"name": "table", "arguments": {"rows": 40}}\n</tool_call>'),
        ("attp", program("a = table(400)\nb = report('x')\nprint(len(a), b[0]['text'][:20])")),
        ("attp", program("table(rows='x')")),
    ],
    ids=["openai", "gemini", "json", "a program", "a program that fails"],
)
async def test_a_finished_run_without_its_whole_results_gives_its_recorded_turn(
    store: Store, protocol: str, reply: Any
) -> None:
    turn = await session(store, protocol).turn(reply)
    (run,) = store.runs()
    recorded = await session(store, protocol).resume(run.run_id)
    size = bytes_on_record(store)
    assert store.retain(WITHOUT_RESULTS, dry_run=True) == PruneReport(results=1)
    deleted = store.retain(WITHOUT_RESULTS)
    assert (deleted.results, deleted.runs, deleted.log_rows) == (1, 0, 0)
    assert store.retain(WITHOUT_RESULTS) == PruneReport()
    if len(turn.messages[0].get("content") or "") < size // 4:
        assert bytes_on_record(store) < size
    again = await session(store, protocol).resume(run.run_id)
    if protocol == "openai":
        # The text that the model read stays, and the picture is named in it.
        told = [one["content"] for one in recorded.messages if one["role"] == "tool"]
        assert [one["content"] for one in again.messages] == told
    else:
        assert again.messages == recorded.messages == turn.messages
    assert [(one.success, one.error, one.text) for one in again.results] == [
        (one.success, one.error, one.text) for one in recorded.results
    ]
    assert store.verify().is_whole


async def test_a_result_that_is_no_longer_whole_says_so_with_its_digest(store: Store) -> None:
    await session(store, "attp").turn(program("a = table(400)\nprint(len(a))"))
    (run,) = store.runs()
    whole = store.calls(run.run_id)
    store.retain(WITHOUT_RESULTS)
    short = store.calls(run.run_id)
    assert [(one.id, one.tool, one.arguments, one.ended_at) for one in short] == [
        (one.id, one.tool, one.arguments, one.ended_at) for one in whole
    ]
    inner = next(one.result for one in short if one.parent)
    assert inner is not None
    assert (inner.success, inner.data) == (True, None)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", inner.metadata[DROPPED]["digest"])
    assert inner.metadata[DROPPED]["bytes"] > 4_000
    # What the program printed is what the model read.
    assert [one.result.text for one in short if not one.parent and one.result] == ["400\n"]


def test_a_long_result_goes_when_no_model_has_read_in_it_since(store: Store) -> None:
    ledgers = [started(store, conversation="c-1") for _ in range(2)]
    text = KeptText(text="long " * 400, page_bytes=1_000, labels=frozenset())
    ids = [done(ledger.pages.keep(text, Caller())) for ledger in ledgers for _ in range(2)]
    done(ledgers[0].finish(()))
    day_ago = update(KEPT_RESULTS).where(KEPT_RESULTS.c.result_id != ids[0]).values(read_at=time.time() - 86_400)
    done(store._database.run(lambda connection: connection.execute(day_ago)))
    ended_at = update(RUNS).values(updated_at=time.time() - 86_400)
    done(store._database.run(lambda connection: connection.execute(ended_at)))
    found = store.retain(Retention(results_days=0.5), dry_run=True)
    assert (found.results, found.long_results) == (1, 1)
    assert store.retain(Retention(results_days=0.5)).long_results == 1
    # One was read since, and the run of two others has not ended.
    assert [ledgers[1].pages.find(one or "", Caller()) is None for one in ids] == [False, True, False, False]


# -- what stays --------------------------------------------------------------------------------------------------------


async def test_a_run_that_waits_stays_whatever_the_retention_is(store: Store) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5}), ("price", {"thing": "tea"})))
    assert turn.suspended is not None
    crashed = started(store)
    done(crashed.release())
    assert store.retain(Retention(runs_days=AT_ONCE, results_days=AT_ONCE)) == PruneReport()
    assert len(store.runs()) == 2
    after = await till.session(store).resume(turn.suspended, decided(waiting(turn), "approve"))
    assert ([one.text for one in after.results], till.asked) == (["paid 5 to shop", "3"], ["tea"])
    # The control: once it has ended, it goes.
    assert store.retain(Retention(runs_days=AT_ONCE)).runs == 1
    assert [run.run_id for run in store.runs()] == [crashed.run_id]
    assert store.verify().is_whole


def test_a_run_that_a_process_holds_stays_until_it_is_released(store: Store) -> None:
    ledger = started(store)
    done(ledger.settle(step(), ToolResult(True, "a")))
    assert ledger.recall(step(amount=6)) is not None
    until(lambda: store.run(ledger.run_id).status == "diverged")
    kept = done(ledger.pages.keep(KeptText(text="long " * 400, page_bytes=1_000, labels=frozenset()), Caller()))
    day_ago = update(KEPT_RESULTS).values(read_at=time.time() - 86_400)
    done(store._database.run(lambda connection: connection.execute(day_ago)))
    found = store.retain(NOTHING)
    assert (found.runs, found.results, found.long_results) == (0, 0, 0)
    assert store.forget(before=time.time() + 60) == 0
    assert ledger.pages.find(kept or "", Caller()) is not None
    done(ledger.release())
    assert store.retain(Retention(runs_days=AT_ONCE)).runs == 1


async def test_a_run_with_a_remembered_rule_stays_and_loses_its_results(store: Store) -> None:
    till = Till()
    turn = await till.session(store).turn(calls(("pay", {"amount": 5})))
    (request,) = waiting(turn)
    rule = Rule(effect="auto", tool="pay", scope="workspace")
    decision = Decision(
        verdict="approve", request_id=request.id, remember=rule, seen_arguments_digest=request.arguments_digest
    )
    assert turn.suspended is not None
    await till.session(store).resume(turn.suspended, [decision])
    assert store.retain(Retention(runs_days=AT_ONCE, results_days=AT_ONCE)).results == 1
    assert len(store.rules()) == len(store.runs()) == 1
    assert store.verify().is_whole


async def test_a_log_that_is_shorter_than_the_runs_can_still_be_verified(store: Store) -> None:
    for protocol in ("xml", "xml"):
        await session(store, protocol).turn("<table><rows>3</rows></table>")
    rows = store.log_length()
    assert store.retain(Retention(log_days=AT_ONCE)).log_rows == rows
    assert (len(store.runs()), store.verify().is_whole, store.log_length()) == (2, True, 0)
    assert store.retain(Retention(runs_days=AT_ONCE)).runs == 2
    assert store.verify().is_whole


def test_only_what_is_old_enough_goes(store: Store) -> None:
    old, new = started(store), started(store)
    for ledger in (old, new):
        done(ledger.finish(()))
    ended_at = {"updated_at": time.time() - 3 * 86_400}
    change = update(RUNS).where(RUNS.c.run_id == old.run_id).values(ended_at)
    done(store._database.run(lambda connection: connection.execute(change)))
    assert store.retain(Retention(runs_days=3.001, log_days=1)) == PruneReport()
    assert store.retain(Retention(runs_days=2.999, log_days=1)).runs == 1
    assert [run.run_id for run in store.runs()] == [new.run_id]


def test_a_damaged_run_is_named_and_the_others_go_on(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    ledgers = [started(store) for _ in range(3)]
    for ledger in ledgers:
        done(ledger.settle(step(), ToolResult(True, "a", content=[{"type": "text", "text": "b"}])))
        done(ledger.finish(()))
    damaged = ledgers[1].run_id
    change = update(RUNS).where(RUNS.c.run_id == damaged).values(start=b"\x01" + bytes(40))
    done(store._database.run(lambda connection: connection.execute(change)))
    with caplog.at_level(logging.WARNING, "toolwire.store"):
        assert store.retain(WITHOUT_RESULTS).results == 2
        assert store.retain(Retention(runs_days=AT_ONCE)).runs == 2
    assert len(caplog.records) == 2
    assert all(damaged in one.getMessage() for one in caplog.records)
    query = select(RUNS.c.run_id)
    assert store._database.read(lambda connection: list(connection.execute(query).scalars())) == [damaged]


# -- slices ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "value", "sizes"),
    [("SLICE_S", 60.0, [20, 20]), ("SLICE_S", 0.0, [20, 10, 10]), ("SLICE_BYTES", 1, [1] * 40)],
)
def test_a_slice_is_bounded_by_its_time_its_rows_and_its_bytes(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, sizes: list[int]
) -> None:
    def forget_some(connection: Any, sealer: Any, run_ids: Any, *more: Any) -> list[str]:
        seen.append(len(run_ids))
        return original(connection, sealer, run_ids, *more)

    seen, original = list[int](), slices.forget
    monkeypatch.setattr(slices, "MOST_ROWS", 20)
    monkeypatch.setattr(slices, "PAUSE_S", 0.0)
    monkeypatch.setattr(slices, limit, value)
    monkeypatch.setattr(slices, "forget", forget_some)
    ledgers = [started(store) for _ in range(40)]
    for ledger in ledgers:
        ledger.settle(step(), ToolResult(True, "a"))
    for ended in [ledger.finish(()) for ledger in ledgers]:
        done(ended)
    assert store.retain(Retention(runs_days=AT_ONCE)).runs == 40
    assert seen == sizes


def test_many_long_results_of_one_run_go_in_slices(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ledgers = [started(store, conversation=f"c-{number}") for number in range(2)]
    text = KeptText(text="long " * 400, page_bytes=1_000, labels=frozenset())
    for ledger in ledgers:
        for _ in range(3):
            done(ledger.pages.keep(text, Caller()))
        done(ledger.finish(()))
    remembered = insert(RULES).values(rule_id="u_1", run_id=ledgers[0].run_id, created_at=0.0, rule=b"")
    done(store._database.run(lambda connection: connection.execute(remembered)))
    done_at_once, original = list[int](), Slices._do

    def do(self: Slices, job: Any, *locks: str) -> Any:
        answer = original(self, job, *locks)
        done_at_once.append(answer if isinstance(answer, int) else len(answer))
        return answer

    monkeypatch.setattr(Slices, "_do", do)
    monkeypatch.setattr(slices, "SLICE_BYTES", 1)
    foreseen = store.retain(Retention(runs_days=AT_ONCE, results_days=30), dry_run=True)
    assert (foreseen.runs, foreseen.long_results) == (1, 3)
    found = store.retain(Retention(runs_days=AT_ONCE, results_days=30))
    assert (found.runs, found.long_results, done_at_once) == (1, 3, [1, 1, 1, 1])
    # Those of a run with a remembered rule stay with it.
    query = select(KEPT_RESULTS.c.run_id).distinct()
    assert store._database.read(lambda connection: list(connection.execute(query).scalars())) == [ledgers[0].run_id]


def test_a_slice_reads_no_start_of_a_run_in_its_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(data: bytes, make: Any) -> Any:
        readers.append(threading.current_thread().name)
        return original(data, make)

    readers, original = list[str](), forgetting.read_form
    ledger = started(store)
    done(ledger.finish(()))
    monkeypatch.setattr(forgetting, "read_form", read)
    assert store.retain(Retention(runs_days=AT_ONCE)).runs == 1
    assert readers == [threading.current_thread().name]


def test_a_store_tells_its_space_and_gives_back_what_is_free(store: Store) -> None:
    for _ in range(3):
        ledger = started(store)
        done(ledger.settle(step(), ToolResult(True, secrets.token_hex(50_000))))
        done(ledger.finish(()))
    full = store.space()
    # PostgreSQL estimates what is free.
    assert full.kinds["calls"] + full.free > 150_000
    assert full.bytes == sum(full.kinds.values()) + full.free
    assert store.retain(Retention(runs_days=AT_ONCE)).bytes > 150_000
    freed = store.compact()
    after = store.space()
    if store.url.startswith("sqlite"):
        assert (freed > 150_000, after.free) == (True, 0)
        assert after.kinds["calls"] < 50_000
    assert (freed >= 0, store.verify().is_whole) == (True, True)


# -- on a clock --------------------------------------------------------------------------------------------------------


def test_a_store_that_is_open_prunes_itself(url: str) -> None:
    with Store.open(url) as store:
        done(started(store).finish(()))
    with Store.open(url, retention=Retention(runs_days=AT_ONCE)) as store:
        until(lambda: not store.runs())
        assert store.verify().is_whole
        done(started(store).finish(()))
        # A pass each second at most: the next one comes by itself.
        until(lambda: not store.runs())
        with Store.open(url) as same, Store.open(url, retention=Retention(runs_days=AT_ONCE)):
            assert same.runs() == []
        with pytest.raises(ConfigurationError, match="runs_days=1e-09"):
            Store.open(url, retention=Retention(runs_days=3))


def test_a_store_keeps_the_retention_with_which_it_began(url: str) -> None:
    first = Retention(runs_days=30, results_days=7)
    with Store.open(url, retention=first) as store:
        assert store.first_retention() == first
        done(started(store).finish(()))
    with Store.open(url, retention=Retention(runs_days=1)) as store:
        assert store.first_retention() == first


def test_a_store_that_had_records_before_has_no_first_retention(url: str) -> None:
    with Store.open(url) as store:
        done(started(store).finish(()))
        assert store.first_retention() is None
    with Store.open(url, retention=Retention(runs_days=30)) as store:
        assert store.first_retention() is None


@pytest.mark.parametrize("days", [0, -1, float("inf"), float("nan"), True, "7"])
def test_a_retention_is_a_number_of_days_above_zero(days: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Retention\(log_days="):
        Retention(log_days=days)
    assert Retention(log_days=0.5).log_days == 0.5


def test_a_clock_that_jumps_makes_nothing_go_early(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    day, real, ahead = 86_400.0, time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    done(started(store).finish(()))
    before_it, kept = Slices(store._database), Retention(runs_days=30, log_days=30, results_days=30)
    for ahead[0] in (400 * day, -400 * day, 0.0):
        assert before_it.apply(kept) == PruneReport()
    assert len(store.runs()) == 1
    # The control: a thread that believes the jump would delete the run. A server has a clock of its own.
    ahead[0] = 400 * day
    is_server = store.url.startswith("postgresql")
    assert Slices(store._database).apply(kept).runs == (0 if is_server else 1)


# -- one process at a time ---------------------------------------------------------------------------------------------


def test_two_processes_do_not_prune_at_once(store: Store) -> None:
    database, now = store._database, time.time()
    parent = Owner(host=Owner.this().host, process_id=os.getppid(), started="", opening="other")
    here = PruneLease(owner=database.owner, shown=store.url)
    other = PruneLease(owner=parent, shown=store.url)
    done(started(store).finish(()))
    done(database.run(lambda connection: other.renew(connection, now)))
    with pytest.raises(StoreUnavailable, match=rf"is being pruned by process {os.getppid()} on "):
        store.retain(NOTHING)
    assert len(store.runs()) == 1
    # Without a slice for a minute it is taken for dead, and its next slice learns of it.
    done(database.run(lambda connection: here.renew(connection, now + PRUNE_LEASE_S + 1)))
    with pytest.raises(StoreUnavailable):
        done(database.run(lambda connection: other.renew(connection, now + PRUNE_LEASE_S + 2)))
    done(database.run(lambda connection: other.give_up(connection)))
    assert store.retain(NOTHING).runs == 1
    # A lease is given up at the end of each pass.
    done(database.run(lambda connection: other.renew(connection, now)))


def test_the_lease_of_a_process_that_died_is_taken_at_once(store: Store) -> None:
    dead = Owner(host=Owner.this().host, process_id=2**22 + 1, started="1", opening="dead")
    lease = PruneLease(owner=dead, shown=store.url)
    done(store._database.run(lambda connection: lease.renew(connection, time.time())))
    done(started(store).finish(()))
    assert store.retain(NOTHING).runs == 1
