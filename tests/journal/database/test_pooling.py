"""A store behind PgBouncer in transaction mode, where two transactions of a client may meet two connections."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from tests.journal.pgbouncer import pooling
from tests.journal.postgres import Server
from tests.journal.world import done
from tests.session.till import calls
from toolwire import ConfigurationError, Session, Store
from toolwire.journal.database.engine import STATEMENT_LIMIT_S
from toolwire.journal.ledger.parts import PART_BYTES
from toolwire.vocabulary.errors import StoreUnavailable

THREADS = 8

PREPARED_AFTER = 5
"""Times that psycopg runs a statement before it prepares it."""


@pytest.fixture
def database(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    yield name
    server.drop(name)


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def work(store: Store, turns: int) -> list[str]:
    """Makes turns in all threads, reads beside them, and returns what failed."""
    starting = threading.Barrier(THREADS)

    def turns_of_a_thread(_: int) -> list[str]:
        failed: list[str] = []
        session = Session([pay], protocol="openai", store=store)
        starting.wait()
        for number in range(turns // THREADS):
            try:
                turn = session.run_turn(calls(("pay", {"amount": number})))
                if [result.data for result in turn.results] != [f"paid {number}"]:
                    failed.append(f"{turn.results}")
                if number % 8 == 0:
                    store.runs(limit=3)
            except Exception as error:
                failed.append(f"{type(error).__name__}: {error}")
        return failed

    with ThreadPoolExecutor(THREADS) as threads:
        return [one for failed in threads.map(turns_of_a_thread, range(THREADS)) for one in failed]


def test_turns_behind_a_pooler_of_transactions_all_succeed(server: Server, database: str, whole: bool) -> None:
    turns = 600 if whole else 120
    with pooling(server) as pooler, Store.open(pooler.url(database), prepared=False, pool_size=6) as store:
        assert work(store, turns) == []
        assert len(store.runs(limit=1_000, status="finished")) == turns
        assert store.verify().is_whole
        # Its parts are written in several transactions.
        large = {"n": "x" * 3 * PART_BYTES}
        assert [store.save_document("c", large, version=version) for version in range(2)] == [1, 2]
        assert store.document("c").value == large


def repeats(store: Store) -> None:
    """Two connections of the store repeat a statement, each in its own transaction, until the driver may prepare it."""
    engine = store._database._engine
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            for _ in range(PREPARED_AFTER + 1):
                connection.execute(text("SELECT 1")).scalar_one()
            connection.commit()


def test_only_without_prepared_statements_may_two_clients_meet_one_connection(server: Server, database: str) -> None:
    with pooling(server, ignored="options", connections=1) as pooler:
        with Store.open(pooler.url(database), prepared=False) as store:
            repeats(store)
        with Store.open(pooler.url(database)) as store, pytest.raises(ProgrammingError, match="already exists"):
            repeats(store)


def test_a_pooler_that_refuses_our_settings_is_answered_with_what_to_write(server: Server, database: str) -> None:
    with pooling(server) as pooler, pytest.raises(StoreUnavailable, match=r"prepared=False"):
        Store.open(pooler.url(database))


def test_prepared_in_the_url_is_answered_with_what_to_write() -> None:
    with pytest.raises(ConfigurationError, match=r"write Store\.open\(url, prepared=False\)"):
        Store.open("postgresql://ann@/runs?prepared=false")


def test_every_transaction_has_its_time_limit_and_no_connection_keeps_it(server: Server, database: str) -> None:
    def limits(connection: Any) -> list[str]:
        return [str(connection.execute(text("SHOW statement_timeout")).scalar())]

    with pooling(server) as pooler, Store.open(pooler.url(database), prepared=False) as store:
        assert store._database.read(limits) == [f"{STATEMENT_LIMIT_S:g}s"]
        assert done(store._database.run(limits)) == [f"{STATEMENT_LIMIT_S:g}s"]
        with store._database._engine.connect() as connection:
            limit = connection.connection.dbapi_connection
            assert limit is not None
            limit.autocommit = True  # pyright: ignore[reportAttributeAccessIssue]
            # Another client of the pooler would meet a limit that stayed.
            assert [limit.execute("SHOW statement_timeout").fetchone() for _ in range(9)] == [("0",)] * 9  # pyright: ignore[reportAttributeAccessIssue]
            limit.autocommit = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("size", [2, 3])
def test_a_store_works_with_as_few_connections_as_it_may_have(url: str, size: int) -> None:
    with Store.open(url, pool_size=size) as store:
        assert work(store, 40) == []


@pytest.mark.parametrize("size", [1, 0, -1, True, 2.5, "9"])
def test_fewer_connections_are_refused(url: str, size: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"pool_size=.*: give a whole number from 2"):
        Store.open(url, pool_size=size)


def test_one_process_opens_a_store_in_one_way(url: str) -> None:
    several = pytest.raises(ConfigurationError, match=r"open with prepared=True, pool_size=4")
    with Store.open(url, pool_size=4), Store.open(url, pool_size=4), several:
        Store.open(url)
    with Store.open(url):
        pass
