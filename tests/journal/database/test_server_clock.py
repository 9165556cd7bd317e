"""Leases and expiry go by the server's clock: processes whose own clocks differ agree."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from tests.journal.postgres import Server
from tests.journal.world import done, request, started
from toolwire import Store
from toolwire.journal.database import server_clock
from toolwire.journal.database.location import LEASE_S, location_of
from toolwire.journal.database.server_clock import SLOW_S, ServerClock
from toolwire.journal.ledger import leases
from toolwire.permission.approval import Decision, DecisionRefused
from toolwire.runtime.runtime import Runtime

APART_S = LEASE_S + 30
MARKS = pytest.mark.parametrize("is_on", [True, False], ids=["the server's clock", "the host's own"])


@contextmanager
def on_another_host(
    url: str, monkeypatch: pytest.MonkeyPatch, *, ahead_s: float, has_server_clock: bool
) -> Generator[Store]:
    """An opening of the store as on a host whose clock is wrong, and where no process of this host can be seen."""
    now, runtime = time.time, Runtime()
    with monkeypatch.context() as there:
        there.setattr(time, "time", lambda: now() + ahead_s)
        there.setattr(leases, "this_host", lambda: "far boot names")
        if not has_server_clock:
            there.setattr(ServerClock, "measure", lambda *_: None)
        yield Store(location_of(url), bytes(32), runtime=runtime)
        runtime.close()


@pytest.fixture
def server_url(server: Server) -> Generator[str]:
    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    yield server.url(name)
    server.drop(name)


@pytest.mark.threat(19)
@MARKS
def test_a_run_at_work_is_not_taken_over_by_a_host_whose_clock_is_ahead(
    server_url: str, is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(server_url, key=bytes(32)) as store:
        ledger = started(store)
        with on_another_host(server_url, monkeypatch, ahead_s=APART_S, has_server_clock=is_on) as far:
            if is_on:
                with pytest.raises(DecisionRefused, match="is in use by process") as refused:
                    done(far.reopen(ledger.run_id))
                assert (refused.value.code, far.run(ledger.run_id).is_held) == ("run_busy", True)
            else:
                done(far.reopen(ledger.run_id))


@MARKS
def test_a_host_whose_clock_is_behind_holds_its_run_until_its_lease_ends(
    server_url: str, is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = on_another_host(server_url, monkeypatch, ahead_s=-APART_S, has_server_clock=is_on)
    with Store.open(server_url, key=bytes(32)) as store, behind as far:
        ledger = started(far)
        with monkeypatch.context() as here:
            here.setattr(leases, "this_host", lambda: "near boot names")
            assert store.run(ledger.run_id).is_held is is_on
        done(ledger.release())


@MARKS
def test_a_request_expires_by_the_servers_clock(server_url: str, is_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(server_url, key=bytes(32)) as store:
        ledger = started(store, expires_at=store.clock() + 3600)
        asked, _ = done(ledger.ask(request(ledger, expires_at=store.clock() + 3600)))
        done(ledger.suspend())
        with on_another_host(server_url, monkeypatch, ahead_s=7200, has_server_clock=is_on) as far:
            assert [one.id for one in far.pending()] == ([asked.id] if is_on else [])
            if is_on:
                assert far.decide(asked.id, Decision(verdict="deny")).verdict == "deny"
                done(done(far.reopen(ledger.run_id)).release())
            else:
                for late in (lambda: far.decide(asked.id, Decision(verdict="deny")), lambda: done(far.reopen("r"))):
                    with pytest.raises(DecisionRefused):
                        late()


@pytest.mark.parametrize(("took_s", "is_replaced"), [(SLOW_S, True), (SLOW_S + 0.01, False)])
def test_a_slow_measurement_replaces_none(took_s: float, is_replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 100.0, 100.0, 200.0, 200.0 + took_s, 300.0])
    answers = iter([5_000.0, 9_000.0])
    server = Mock(**{"dialect.name": "postgresql", "exec_driver_sql.return_value.scalar_one": lambda: next(answers)})
    monkeypatch.setattr(server_clock, "uptime_s", lambda: next(times))
    clock = ServerClock()
    clock.measure(server)
    assert clock() == 5_000
    clock.measure(server)
    assert clock() == pytest.approx(9_100 - took_s / 2 if is_replaced else 5_200)


def test_the_clock_of_a_store_is_its_servers_and_a_renewal_measures_it_again(url: str) -> None:
    with Store.open(url) as store:
        started(store)
        clock = store._database.clock
        assert abs(clock() - time.time()) < 5
        if url.startswith("sqlite"):
            assert clock._ahead_s is None
            return
        clock._ahead_s = 0.0
        store._database._renew()
        assert abs(clock() - time.time()) < 5


def test_a_turn_pays_no_statement_for_the_clock(server_url: str) -> None:
    from sqlalchemy import event

    asked = list[str]()
    with Store.open(server_url, key=bytes(32)) as store:

        def note(_: Any, __: Any, statement: str, *___: Any) -> None:
            asked.append(statement)

        event.listen(store._database._engine, "before_cursor_execute", note)
        done(started(store).release())
        assert asked
        assert not [one for one in asked if "clock_timestamp" in one]
