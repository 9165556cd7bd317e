"""Kills, contention, damage: answered records are there, and unknown outcomes are reported as unknown."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.kills import begun, contend, in_child, kill_loop, start_of, step_number

from tests.journal.ledger.test_run_ledger import again, kind
from tests.journal.postgres import Server
from tests.journal.world import PAID, done, request, start, started, step
from toolwire.journal.ledger import leases
from toolwire.journal.store import Store
from toolwire.permission.approval import Decision, DecisionRefused
from toolwire.vocabulary.errors import StoreUnavailable
from toolwire.vocabulary.run_step import InDoubtStep


@pytest.mark.threat(16, 58)
def test_an_answered_record_survives_the_kill(url: str) -> None:
    # `make soak` kills a thousand.
    kills = 10 if url.startswith("sqlite") else 5
    toll = kill_loop(url, kills, seed=1)
    assert (toll.kills, toll.lost) == (kills, 0)
    assert toll.acked > 10 * kills
    with Store.open(url) as store:
        assert store.verify().is_whole
    # The control: a writer that answers before the store does loses records.
    assert kill_loop(url, 5, seed=2, is_patient=False).lost > 0


@pytest.mark.threat(57)
def test_processes_that_write_at_once_wait_for_each_other(url: str) -> None:
    assert contend(url, 4, 40) == [0, 0, 0, 0]
    with Store.open(url) as store:
        assert [(run.status, run.steps) for run in store.runs()] == [("finished", 40)] * 4
        assert store.verify().is_whole


@pytest.mark.threat(57)
def test_without_waiting_a_second_writer_is_turned_away(tmp_path: Path) -> None:
    """The control: the settings of a connection make the second writer wait."""
    path = tmp_path / "runs.db"
    Store.open(f"sqlite:///{path}").close()
    first, second = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        second.execute("BEGIN IMMEDIATE")
    first.close()
    second.close()


@pytest.mark.threat(58)
def test_a_write_ahead_log_that_was_cut_anywhere_opens(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Store.open(f"sqlite:///{tmp_path}/a/runs.db") as store:
        ledger = begun(store, "r_1")
        for number in range(40):
            done(ledger.begin(start_of(step_number(number))))
            done(ledger.settle(step_number(number), PAID))
        size = (tmp_path / "a" / "runs.db-wal").stat().st_size
        found: list[int] = []
        for part in range(17):
            folder = tmp_path / f"cut{part}"
            folder.mkdir()
            for name in ("runs.db", "runs.db-wal", "runs.db.key"):
                shutil.copy(tmp_path / "a" / name, folder / name)
            os.truncate(folder / "runs.db-wal", size * part // 16)
            with Store.open(f"sqlite:///{folder}/runs.db") as cut:
                found.append(sum(run.steps for run in cut.runs()))
                assert cut.verify().is_whole
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 40)


@pytest.mark.threat(18)
def test_one_of_eight_processes_that_open_a_run_owns_it(url: str, tmp_path: Path) -> None:
    with Store.open(url) as store:
        for number in range(5):
            run_id = started(store, f"r_{number}").run_id
            ledger = again(store, run_id)
            asked = request(ledger, f"a_{number}")
            done(ledger.ask(asked))
            done(ledger.suspend())
            store.decide(asked.id, Decision(verdict="approve"))
    effects = tmp_path / "effects"

    def resume() -> None:
        with Store.open(url) as mine:
            for number in range(5):
                try:
                    ledger = done(mine.reopen(f"r_{number}"))
                except DecisionRefused as refused:
                    if refused.code != "run_busy":
                        raise
                    continue
                if ledger.outcome is not None or ledger.recall(step()) is not None:
                    done(ledger.release())
                    continue
                if isinstance(done(ledger.begin(start(step(), request_id=f"a_{number}"))), float):
                    with open(effects, "a") as file:
                        file.write(f"{number}\n")
                done(ledger.settle(step(), PAID))
                done(ledger.finish([PAID]))

    children = [in_child(resume) for _ in range(8)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    # The control: without the lease's and the approval's part each of the eight would have written every number.
    assert sorted(effects.read_text().split()) == ["0", "1", "2", "3", "4"]


def test_a_killed_workers_run_is_taken_over_at_once_and_says_what_is_unclear(url: str) -> None:
    reading, writing = os.pipe()

    def work() -> None:
        ledger = begun(Store.open(url), "r_1")
        done(ledger.begin(start(step("1"))))
        os.write(writing, b"x")
        signal.pause()

    child = in_child(work)
    os.read(reading, 1)
    with Store.open(url) as store:
        with pytest.raises(DecisionRefused) as busy:
            done(store.reopen("r_1"))
        assert busy.value.code == "run_busy"
        assert store.runs()[0].is_held
        os.kill(child, signal.SIGKILL)
        # Not waited for yet: a process that has ended holds nothing.
        for _ in range(500):
            if not store.runs()[0].is_held:
                break
            time.sleep(0.01)
        ledger = done(store.reopen("r_1"))
        assert isinstance(ledger.recall(step("1")), InDoubtStep)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def test_another_hosts_run_is_taken_over_when_its_lease_is_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = started(store)
    here = leases.this_host()
    monkeypatch.setattr(leases, "this_host", lambda: f"other {here}")
    with pytest.raises(DecisionRefused) as busy:
        done(store.reopen(ledger.run_id))
    assert busy.value.code == "run_busy"
    monkeypatch.setattr(leases.Owner, "is_alive", lambda self, *, renewed_until, now: now + 61 < renewed_until)
    found = again(store, ledger.run_id)
    done(found.begin(start(step("2"))))
    # The former holder of the run writes nothing more, and says so.
    assert kind(done(ledger.begin(start(step("1"))))) == "interrupted"
    assert kind(done(ledger.begin(start(step("2"))))) == "unknown_outcome"


def test_a_forked_child_has_its_own_connections_and_not_its_parents_runs(url: str) -> None:
    store = Store.open(url)
    ledger = started(store, "r_1")

    def child() -> None:
        assert kind(done(ledger.begin(start(step("1"))))) == "unavailable"
        with pytest.raises(DecisionRefused):
            done(store.reopen("r_1"))
        done(started(store, "r_2").finish([PAID]))

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(child), 0)[1]) == 0
    done(ledger.begin(start(step("1"))))
    assert sorted(run.run_id for run in store.runs()) == ["r_1", "r_2"]
    store.close()


def test_a_server_that_went_away_in_between_is_connected_to_again(server: Server) -> None:
    server.create("away")
    with Store.open(server.url("away"), key=b"k" * 32) as store:
        ledger = started(store)
        store._database.read(
            lambda connection: connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).all()
        )
        assert isinstance(done(ledger.begin(start(step("1")))), float)
        done(ledger.release())
        assert isinstance(again(store, ledger.run_id).recall(step("1")), InDoubtStep)
    server.drop("away")


def test_a_store_that_is_closed_has_written_everything(url: str, opened: Callable[[], Store]) -> None:
    store = Store.open(url)
    ledger = started(store, "r_1")
    futures = [ledger.settle(step_number(number), PAID) for number in range(500)]
    store.close()
    assert all(future.done() for future in futures)
    with pytest.raises(StoreUnavailable):
        store.runs()
    assert kind(done(ledger.begin(start(step("new"))))) == "unavailable"
    later = opened()
    assert later.runs()[0].steps == 500
    # And its runs are anybody's.
    assert again(later, "r_1").run_id == "r_1"


def test_a_write_that_fails_fails_alone(store: Store) -> None:
    database = store._database

    def broken(connection: object) -> None:
        raise RuntimeError("broken")

    ledger = started(store)
    futures = [ledger.settle(step_number(number), PAID) for number in range(50)]
    failing = [database.run(broken) for _ in range(3)]
    futures += [ledger.settle(step_number(number), PAID) for number in range(50, 100)]
    for future in failing:
        with pytest.raises(RuntimeError, match="broken"):
            done(future)
    assert [done(future) for future in futures] == [PAID] * 100
    assert store.runs()[0].steps == 100


def test_queued_records_are_committed_together(store: Store) -> None:
    ledger = started(store)
    before = store._database.writer.commits
    for future in [ledger.settle(step_number(number), PAID) for number in range(300)]:
        done(future)
    assert store._database.writer.commits - before < 100
