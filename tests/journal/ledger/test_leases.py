"""A process keeps its leases whatever else it is busy with."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

import toolwire.journal.ledger.leases
from tests.journal.world import PAID, done, started, step
from tests.patience import PATIENCE_S, until
from toolwire.journal.database.location import LEASE_MIN_S, LEASE_S, location_of
from toolwire.journal.ledger.leases import RENEWALS, RETRY_S, Owner
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import StoreUnavailable


def lease_until(url: str, run_id: str) -> float:
    engine = create_engine(location_of(url).url)
    with engine.connect() as connection:
        query = "SELECT owner, lease_until FROM runs WHERE run_id = :id"
        owner, until = connection.execute(text(query), {"id": run_id}).one()
        query = "SELECT alive_until FROM owners WHERE owner = :owner"
        alive_until = connection.execute(text(query), {"owner": owner}).scalar()
    engine.dispose()
    return max(float(until), alive_until or 0.0)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases are renewed many times a second."""
    monkeypatch.setattr(toolwire.journal.ledger.leases, "RENEWALS", LEASE_S / 0.05)
    monkeypatch.setattr(toolwire.journal.ledger.leases, "RETRY_S", 0.05)


def test_several_renewals_may_fail_before_a_lease_ends() -> None:
    assert RENEWALS > 3
    assert RETRY_S <= LEASE_MIN_S / RENEWALS


@pytest.mark.usefixtures("often")
def test_a_lease_is_renewed_while_the_event_loop_stands_still(url: str, store: Store) -> None:
    async def stand_still() -> tuple[float, float]:
        ledger = started(store)
        first = lease_until(url, ledger.run_id)
        # It blocks the loop's own thread.
        until(lambda: lease_until(url, ledger.run_id) > first)
        return first, lease_until(url, ledger.run_id)

    first, later = asyncio.run(stand_still())
    assert later > first


@pytest.mark.usefixtures("often")
def test_a_lease_is_renewed_while_the_writer_is_busy(url: str, store: Store) -> None:
    ledger, release = started(store), threading.Event()
    first = lease_until(url, ledger.run_id)

    def stand_still(connection: Connection) -> bool:
        # SQLite has one writer: a transaction that goes on keeps out the renewal, and every other process too.
        if connection.dialect.name == "sqlite":
            driver: Any = connection.connection.dbapi_connection
            driver.rollback()
        return release.wait(PATIENCE_S)

    blocked = store._database.run(stand_still)
    blocked.add_done_callback(lambda _: None)
    until(lambda: lease_until(url, ledger.run_id) > first)
    assert not blocked.done()
    release.set()
    assert blocked.exception(PATIENCE_S) is None or url.startswith("sqlite")


@pytest.mark.usefixtures("often")
def test_a_renewal_that_failed_is_tried_again(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter(range(3))

    def fails(connection: Connection, owner: Owner, now: float, *, lease_until: float) -> None:
        if next(failures, None) is not None:
            raise StoreUnavailable("gone")
        renew(connection, owner, now, lease_until=lease_until)

    renew = toolwire.journal.ledger.leases.renew
    # Before the renewals fail: in PostgreSQL the first record takes a chain of the log, with the row of this process.
    ledger = started(store)
    monkeypatch.setattr("toolwire.journal.ledger.store_database.renew", fails)
    with caplog.at_level(logging.ERROR, "toolwire.store"):
        first = lease_until(url, ledger.run_id)
        until(lambda: lease_until(url, ledger.run_id) > first)
    told = [record.getMessage() for record in caplog.records if "leases" in record.getMessage()]
    assert told == ["renewing the leases of this process failed, and is tried again in 0.05 s: gone"] * 3


def test_a_record_of_a_run_leaves_the_lease_to_the_row_of_its_process(store: Store, url: str) -> None:
    ledger = started(store)
    first, revision = lease_until(url, ledger.run_id), store.run(ledger.run_id).rev
    done(ledger.settle(step(), PAID))
    assert (lease_until(url, ledger.run_id), store.run(ledger.run_id).rev) == (first, revision + 1)


@pytest.mark.usefixtures("often")
def test_the_thread_ends_with_the_store(store: Store) -> None:
    # Another test of the process may have left a store open.
    others = set(threading.enumerate())
    done(started(store).release())
    before = {thread for thread in set(threading.enumerate()) - others if thread.name == "toolwire-leases"}
    store.close()
    until(lambda: not any(thread.is_alive() for thread in before))
    assert before


@pytest.mark.parametrize(
    ("found", "now", "is_alive"),
    [("", 9.0, True), ("", 10.0, False), (None, 9.0, False), ("2", 9.0, False), ("1", 99.0, True)],
)
def test_the_lease_decides_where_the_system_does_not_tell_when_a_process_started(
    found: str | None, now: float, is_alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolwire.journal.ledger.leases, "process_start", lambda _: found)
    owner = Owner(host=toolwire.journal.ledger.leases.this_host(), process_id=1, started="1", opening="x")
    assert Owner.read(str(owner)) == owner
    assert owner.is_alive(renewed_until=10.0, now=now) is is_alive


def test_an_owner_whose_start_is_unknown_is_read_as_it_was_written() -> None:
    owner = Owner(host="h", process_id=1, started="", opening="x")
    assert Owner.read(str(owner)) == owner
