"""`Session.wait` hears of a run's end from PostgreSQL, before it would look at the run again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.fleet.app import call, session_for, tools
from tests.patience import PATIENCE_S, until
from toolwire import Decision, Session
from toolwire.fleet import run_go_on
from toolwire.journal.store import Store
from toolwire.session.runs import run_waiting
from toolwire.session.turn import Turn


@pytest.fixture(autouse=True)
def _note_there(done_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DONE_FILE", str(done_file))


@pytest.fixture
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_waiting, "FIRST_LOOK_S", 10 * PATIENCE_S)
    monkeypatch.setattr(run_waiting, "LAST_LOOK_S", 10 * PATIENCE_S)


@pytest.fixture
def waiters() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def session(store: Store) -> Session:
    return Session(tools(), protocol="openai", store=store)


def listeners(url: str) -> int:
    with psycopg.connect(url) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()"
        found = connection.execute(asked).fetchone()
    assert found is not None
    return found[0]


def wait(waiters: ThreadPoolExecutor, made: Session, run_id: str) -> Future[Turn]:
    return waiters.submit(made.run_wait, run_id, timeout_s=PATIENCE_S)


@pytest.mark.usefixtures("no_second_look")
def test_an_end_and_a_question_wake_those_who_wait(store: Store, url: str, waiters: ThreadPoolExecutor) -> None:
    made = session(store)
    paid, noted = made.run_submit(call("pay", amount=1)), session(store).run_submit(call("note", name="a"))
    waiting, other, same = (wait(waiters, made, one) for one in (paid, noted, paid))
    until(lambda: listeners(url) == 1)
    run_go_on(store, paid, session_for)
    for one in (waiting, same):
        assert one.result(PATIENCE_S).suspended is not None
    assert not other.done()
    run_go_on(store, noted, session_for)
    assert [result.data for result in other.result(PATIENCE_S).results] == ["a"]
    until(lambda: listeners(url) == 0)
    store.decide(store.pending(paid)[0].id, Decision(verdict="approve"))
    ended = wait(waiters, made, paid)
    until(lambda: listeners(url) == 1)
    run_go_on(store, paid, session_for)
    assert [result.data for result in ended.result(PATIENCE_S).results] == [1]


def test_a_broken_connection_leaves_the_looks(store: Store, url: str, waiters: ThreadPoolExecutor) -> None:
    made = session(store)
    run_id = made.run_submit(call("note", name="a"))
    waiting = wait(waiters, made, run_id)
    until(lambda: listeners(url) == 1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'")
    until(lambda: listeners(url) == 0)
    run_go_on(store, run_id, session_for)
    assert waiting.result(PATIENCE_S).results[0].data == "a"


def test_a_pooler_of_transactions_gets_no_listener(url: str, waiters: ThreadPoolExecutor) -> None:
    with Store.open(url, prepared=False) as store:
        made = session(store)
        run_id = made.run_submit(call("note", name="a"))
        waiting = wait(waiters, made, run_id)
        run_go_on(store, run_id, session_for)
        assert waiting.result(PATIENCE_S).results[0].data == "a"
        assert not [thread for thread in threading.enumerate() if thread.name == "toolwire-run-news"]
