"""The tables of a store in memory, without threads: each work is written at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, Table, create_engine, event, insert, select
from sqlalchemy.pool import StaticPool

from toolwire.journal.database.gathering import begin_gathering, write_gathered
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, METADATA, RUNS
from toolwire.journal.database.work import RecordFuture, Work, fail, resolve_futures, write_batch
from toolwire.journal.ledger.conversations import SeenStates

SEALER = Sealer(b"k" * 32)


@cache
def _tables() -> tuple[str, ...]:
    """The statements that make the tables. SQLAlchemy takes ten times as long as SQLite to make them."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    METADATA.create_all(engine)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars()
        return tuple(found)


class InMemory:
    """A database with the interface that ledgers use. `failure` makes it unusable."""

    def __init__(self) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool)
        for statement in _tables():
            self.now(lambda connection, statement=statement: connection.exec_driver_sql(statement))
        self.sealer = SEALER
        self.writer = SimpleNamespace(is_full=False)
        self.clock = time.time
        self.seen = SeenStates()
        self.failure: Exception | None = None
        self.statements: list[tuple[str, Any]] = []
        event.listen(self.engine, "before_cursor_execute", self._noted)

    def put(self, *works: Work) -> None:
        for work in works:
            self._write(work)

    def _write(self, work: Work) -> None:
        try:
            if self.failure is not None:
                raise self.failure
            with self._transaction() as connection:
                write_batch(connection, [work])
        except Exception as error:
            if work.otherwise is None or self.failure is not None:
                fail(work, error, "here")
                return
            try:
                with self._transaction() as connection:
                    work.answer = work.otherwise(connection, error)
            except Exception as second:
                fail(work, second, "here")
                return
        resolve_futures([work])

    def run(self, job: Callable[[Connection], Any], otherwise: Any = None) -> Future[Any]:
        future = RecordFuture[Any]()
        self.put(Work(future=future, job=job, otherwise=otherwise))
        return future

    def drop(self, run_id: str, ledger: object) -> None:
        """The ledger is not held by anything here."""

    def now(self, job: Callable[[Connection], Any]) -> Any:
        """What a job gives. An error leaves nothing written."""
        with self._transaction() as connection:
            return job(connection)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            begin_gathering(connection)
            yield connection
            write_gathered(connection)

    def add_run(self, run_id: str = "r_1", **columns: Any) -> None:
        """Adds a run that is held by `me` under number 1."""
        row = {
            "run_id": run_id,
            "status": "running",
            "rev": 1,
            "created_at": 1.0,
            "updated_at": 1.0,
            "expires_at": 0.0,
            "owner": "me",
            "lease": 1,
            "lease_until": 9e9,
            "start": b"",
            **columns,
        }
        self.now(lambda connection: connection.execute(insert(RUNS).values(row)))

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """All rows of a table, in the order of its primary key."""
        query = select(table).order_by(*table.primary_key.columns)
        return self.now(lambda connection: [dict(row) for row in connection.execute(query).mappings()])

    def log(self, *names: str) -> list[tuple[Any, ...]]:
        """These columns of the log's rows."""
        return [tuple(row[name] for name in names) for row in self.rows(LOG)]

    def opened(self, sealed: bytes, *place: str) -> str:
        return self.sealer.open(sealed, *place).decode()

    def _noted(self, _: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        self.statements.append((" ".join(statement.split()), parameters))
