"""A run that its process has left is free, whatever kept the process from saying so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select, update
from sqlalchemy.exc import DBAPIError

from tests.journal.away import away
from tests.journal.ledger.conversation_holds import other as other
from tests.journal.ledger.test_leases import often as often
from tests.journal.world import PAID, done, start, started, step
from tests.patience import PATIENCE_S, until
from tests.session.till import calls, texts
from toolwire import ConfigurationError, Session, Store, StoreUnavailable
from toolwire.journal.database import transactions
from toolwire.journal.database.location import LEASE_MAX_S, LEASE_MIN_S, location_of
from toolwire.journal.database.tables import RUNS
from toolwire.journal.ledger import store_database
from toolwire.journal.ledger.leases import Lease, LeaseRenewal, Owner
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.ledger.store_database import Database


def renewals(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Waits for so many more looks at the runs of this process."""
    looks, look = list[int](), store_database.leases_of

    def count(connection: Connection, owner: Owner) -> list[Lease]:
        looks.append(1)
        return look(connection, owner)

    monkeypatch.setattr(store_database, "leases_of", count)

    def wait(times: int) -> None:
        wanted = len(looks) + times
        until(lambda: len(looks) >= wanted)

    return wait


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("is_on", [True, False], ids=["with the renewal", "without it"])
def test_a_run_whose_database_went_away_in_its_turn_is_free_when_it_is_back(
    store: Store, url: str, is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_on:
        monkeypatch.setattr(Database, "drop", lambda *_: None)
    with ExitStack() as gone:

        def stock(item: str) -> int:
            """Counts an item."""
            gone.enter_context(away(url))
            return len(item)

        session = Session([stock], protocol="openai", store=store)
        with pytest.raises(StoreUnavailable, match="could not be written") as kept:
            session.run_turn(calls(("stock", {"item": "nut"})))
        assert kept.traceback
    (run,) = store.runs()
    if is_on:
        until(lambda: not store.run(run.run_id).is_held)
        resumed = session.run_resume(run.run_id)
        assert resumed.suspended is not None or texts(resumed.messages) != []
    else:
        renewals(store, monkeypatch)(3)
        assert store.run(run.run_id).is_held


@pytest.mark.parametrize("is_made", [True, False], ids=["committed", "not committed"])
def test_a_run_whose_end_may_not_be_written_is_released(
    store: Store, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, commit = started(store), transactions.commit

    def fail(connection: Connection) -> None:
        if is_made:
            commit(connection)
        raise DBAPIError("COMMIT", None, OSError("the server went away"))

    with monkeypatch.context() as failing:
        failing.setattr(transactions, "commit", fail)
        assert isinstance(ledger.finish([PAID]).exception(PATIENCE_S), StoreUnavailable)
    assert store.run(ledger.run_id).is_held is not is_made
    done(ledger.release())
    assert not store.run(ledger.run_id).is_held


@pytest.mark.usefixtures("often")
def test_a_run_of_which_nothing_is_left_here_is_released_and_another_is_not(store: Store) -> None:
    kept, lost = started(store), started(store)
    lost_id = lost.run_id
    del lost
    until(lambda: not store.run(lost_id).is_held)
    assert isinstance(done(kept.begin(start(step()))), float)


@pytest.mark.usefixtures("often")
def test_a_run_that_starts_or_is_reopened_during_a_renewal_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, left = list[RunLedger](), [started(store).run_id, started(store).run_id]
    look, engine_for_writes = store_database.leases_of, store_database.engine_for_writes

    def look_slowly(connection: Connection, owner: Owner) -> list[Lease]:
        if found:
            return look(connection, owner)
        connection.rollback()
        # It is among the leases, and was not held when the renewal began.
        found.append(started(store))
        leases = look(connection, owner)
        connection.rollback()
        # This one is among the leases as a run that was left.
        found.append(done(store.reopen(left[0])))
        return leases

    def write_slowly(engine: Engine) -> Engine:
        if len(found) == 2:
            # And this one is about to be released.
            found.append(done(store.reopen(left[1])))
        return engine_for_writes(engine)

    monkeypatch.setattr(store_database, "leases_of", look_slowly)
    monkeypatch.setattr(store_database, "engine_for_writes", write_slowly)
    until(lambda: len(found) == 3)
    renewals(store, monkeypatch)(2)
    assert [isinstance(done(ledger.begin(start(step()))), float) for ledger in found] == [True, True, True]


@pytest.mark.usefixtures("often")
def test_a_run_that_was_taken_over_is_told_once(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = started(store)
    steps = [step(str(number)) for number in range(3)]
    for each in steps:
        done(ledger.begin(start(each)))
    taken = update(RUNS).where(RUNS.c.run_id == ledger.run_id).values(owner=str(other._database.owner), lease=2)
    done(other._database.run(lambda connection: connection.execute(taken)))
    with caplog.at_level(logging.DEBUG, "toolwire.store"):
        for number, each in enumerate(steps):
            ledger.note("p", {"number": number})
            assert done(ledger.settle(each, PAID)) == PAID
        ledger.note("p", {})
        done(ledger.release())
    assert [(one.levelname, one.getMessage(), one.exc_info) for one in caplog.records] == [
        ("ERROR", f"run {ledger.run_id} was taken over by another process; what runs of it here is not recorded", None)
    ]
    assert store.run(ledger.run_id).is_held


def test_a_lease_is_renewed_four_times_in_its_time() -> None:
    waits, renewed = list[float](), list[None]()

    class Ended(threading.Event):
        """Ends the renewal at its third wait."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return len(waits) == 3

    renewal = LeaseRenewal(lambda: renewed.append(None), 10.0)
    renewal._ended = Ended()
    renewal._go()
    assert (waits, len(renewed)) == ([2.5, 2.5, 2.5], 2)


def test_a_lease_lasts_as_long_as_the_store_was_opened_for(url: str) -> None:
    with Store.open(url, lease_s=LEASE_MIN_S) as store:
        before = store.clock()
        ledger = started(store)
        done(ledger.release())
        until = store._database.read(lambda connection: connection.execute(select(RUNS.c.lease_until)).scalar_one())
        assert before + LEASE_MIN_S <= until <= store.clock() + LEASE_MIN_S
        done(store.reopen(ledger.run_id))
        again = store._database.read(lambda connection: connection.execute(select(RUNS.c.lease_until)).scalar_one())
        assert until < again <= store.clock() + LEASE_MIN_S


@pytest.mark.parametrize("lease_s", [LEASE_MIN_S - 0.1, LEASE_MAX_S + 0.1, float("nan"), True, "60"])
def test_a_lease_that_is_too_short_or_too_long_is_refused(lease_s: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Store.open("sqlite:///runs.db", lease_s=lease_s)
    assert str(refused.value) == f"lease_s={lease_s!r}: give the seconds, from 5 to 3600"
    assert [location_of("sqlite:///runs.db", lease_s=fits).lease_s for fits in (5, 3600)] == [5.0, 3600.0]


def test_a_process_has_one_lease_time_for_a_store(url: str) -> None:
    with Store.open(url, lease_s=5), pytest.raises(ConfigurationError, match="lease_s=5 in this process"):
        Store.open(url)
