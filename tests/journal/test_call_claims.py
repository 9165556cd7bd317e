"""Calls that wait for a person are found by an equal call, and one call at a time continues each."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, cast

import pytest
from sqlalchemy import Connection, func, select

from tests.architecture.source import ROOT
from tests.journal.world import done, request, started
from tests.patience import PATIENCE_S
from toolwire.journal.database.tables import WAITING_CALLS
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.store import Store
from toolwire.permission.approval import Decision

KEY = "a key"


def suspended(store: Store, *, asked: int = 1) -> tuple[RunLedger, str]:
    """Returns a run that waits for a person, and the id of its last request. It is kept for equal calls."""
    ledger, asking = started(store), ""
    for number in range(asked):
        asking = done(ledger.ask(request(ledger, call_id=f"{number}")))[0].id
    done(ledger.suspend())
    done(store.keep_waiting_call(KEY, ledger.run_id, expires_at=time.time() + 60))
    return ledger, asking


def found(store: Store, key: str = KEY) -> list[tuple[str, bool]]:
    return [(one.run_id, one.is_decided) for one in done(store.waiting_calls(key))]


def test_an_equal_call_finds_the_runs_that_wait_and_first_those_with_a_decision(store: Store) -> None:
    assert found(store) == []
    (first, _), (second, asked) = suspended(store), suspended(store)
    assert sorted(found(store)) == sorted([(first.run_id, False), (second.run_id, False)])
    store.decide(asked, Decision(verdict="approve"))
    assert found(store) == [(second.run_id, True), (first.run_id, False)]
    assert found(store, "another key") == []


@pytest.mark.parametrize("verdict", ["approve", "deny", "stop_run"])
def test_each_decision_lets_a_run_go_on_even_if_another_request_of_it_waits(store: Store, verdict: str) -> None:
    ledger, asked = suspended(store, asked=2)
    store.decide(asked, Decision(verdict=verdict))  # type: ignore[arg-type]
    assert found(store) == [(ledger.run_id, True)]


def test_a_run_is_found_until_its_time_is_over_or_it_has_ended(store: Store) -> None:
    ledger, _ = suspended(store)
    done(store.keep_waiting_call(KEY, ledger.run_id, expires_at=time.time() - 1))
    assert found(store) == []
    # The control: kept once more, it is found.
    done(store.keep_waiting_call(KEY, ledger.run_id, expires_at=time.time() + 60))
    assert found(store) == [(ledger.run_id, False)]
    done(done(store.reopen(ledger.run_id)).finish([]))
    assert found(store) == []
    assert done(store.claim_waiting_call(KEY, ledger.run_id)) is False


def test_calls_of_one_process_claim_a_run_one_after_the_other(store: Store) -> None:
    ledger, _ = suspended(store)
    claims = [store.claim_waiting_call(KEY, ledger.run_id) for _ in range(4)]
    assert sorted(done(claim) for claim in claims) == [False, False, False, True]
    assert found(store) == []
    assert done(store.claim_waiting_call("another key", ledger.run_id)) is False
    done(store.free_waiting_call(KEY, ledger.run_id))
    assert done(store.claim_waiting_call("another key", ledger.run_id)) is False
    assert done(store.claim_waiting_call(KEY, ledger.run_id)) is True
    done(store.forget_waiting_call(KEY, ledger.run_id))
    assert (found(store), done(store.claim_waiting_call(KEY, ledger.run_id))) == ([], False)


CLAIM = """
import sys
from toolwire import Store
store = Store.open(sys.argv[1])
print(store.claim_waiting_call(sys.argv[2], sys.argv[3]).result(), flush=True)
sys.stdin.read()
"""
"""Claims a run, and lives until its stdin ends."""


@contextmanager
def claiming(url: str, run_id: str, count: int) -> Generator[list[str]]:
    """Lets so many processes claim a run side by side, and yields what each was told. At the end they are killed."""
    command = [sys.executable, "-c", CLAIM, url, KEY, run_id]
    children = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    yield [cast("IO[str]", child.stdout).readline().strip() for child in children]
    for child in children:
        child.kill()
        child.communicate(timeout=PATIENCE_S)


def test_one_of_several_processes_continues_a_run_and_its_claim_ends_with_it(url: str, store: Store) -> None:
    ledger, _ = suspended(store)
    with claiming(url, ledger.run_id, 3) as told:
        assert sorted(told) == ["False", "False", "True"]
        assert (found(store), done(store.claim_waiting_call(KEY, ledger.run_id))) == ([], False)
    assert found(store) == [(ledger.run_id, False)]
    assert done(store.claim_waiting_call(KEY, ledger.run_id)) is True


def test_a_run_that_is_deleted_leaves_nothing(store: Store) -> None:
    ledger, _ = suspended(store)
    store.stop(ledger.run_id, by="ops")
    done(done(store.reopen(ledger.run_id)).finish([]))
    assert rows(store) == 1
    assert store.forget(before=time.time() + 1) == 1
    assert rows(store) == 0


@pytest.mark.usefixtures("is_new")
def test_an_older_store_is_upgraded_and_its_runs_wait_on(url: str) -> None:
    with Store.open(url) as store:
        ledger = started(store)
        asked = done(ledger.ask(request(ledger)))[0].id
        done(ledger.suspend())
        done(store._database.run(make_older))
    with Store.open(url) as store:
        assert [one.id for one in store.pending()] == [asked]
        assert found(store) == []
        done(store.keep_waiting_call(KEY, ledger.run_id, expires_at=time.time() + 60))
        assert found(store) == [(ledger.run_id, False)]


def make_older(connection: Connection) -> None:
    """Takes back the revision that added the table."""
    connection.exec_driver_sql("DROP TABLE waiting_calls")
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0014'")


def rows(store: Store) -> int:
    count = select(func.count()).select_from(WAITING_CALLS)
    return store._database.read(lambda connection: connection.execute(count).scalar_one())
