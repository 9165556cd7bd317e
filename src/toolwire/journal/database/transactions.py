"""The writer's transactions: one batch each, tried again while another process is in the way."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolwire.journal.database.driver import begin, commit
from toolwire.journal.database.engine import FILE_GONE, file_of
from toolwire.journal.database.forking import gate_of
from toolwire.journal.database.gathering import write_gathered
from toolwire.journal.database.location import url_text
from toolwire.journal.database.work import Work, fail, resolve_futures, write_batch
from toolwire.vocabulary.errors import StoreUnavailable

_DEADLOCK = "40P01"
"""PostgreSQL's code for a transaction that was rolled back because two waited for each other."""

TRIES = 4
"""Times that a batch is begun while another process holds the database: 40 seconds, then its futures raise."""


class Transactions:
    """Writes batches on one connection, for one thread.

    The connection stays open between transactions, since a checkout from the pool costs as much as writing a record.
    It is closed after a failure.
    """

    def __init__(self, engine: Engine) -> None:
        self.shown = url_text(engine.url)
        """The store, for messages."""
        self.count = 0
        """Transactions committed so far."""
        self._engine = engine
        self._gate = gate_of(engine)
        self._file = file_of(engine)
        self._connection: Connection | None = None

    def write(self, batch: Sequence[Work]) -> None:
        """Writes a batch and resolves its futures. If one work fails, the others are written without it."""
        if any(work.refusal is not None for work in batch):
            for work in batch:
                if isinstance(refusal := work.refusal, Exception):
                    self._refuse(work, refusal)
                else:
                    self.write([work])
            return
        try:
            self._commit_patiently(batch)
        except _Unavailable as error:
            for work in batch:
                fail(work, self._unavailable(error), self.shown)
        except Exception as error:  # noqa: BLE001 - a job's exception goes to the future of that job
            if len(batch) == 1:
                self._refuse(batch[0], error)
                return
            for work in batch:
                self.write([work])
        else:
            resolve_futures(batch)

    def close(self) -> None:
        """Closes the connection. An open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _commit_patiently(self, batch: Sequence[Work]) -> None:
        for tries_left in reversed(range(TRIES)):
            try:
                with self._gate:
                    return self._commit(batch)
            except DBAPIError as error:
                if not _is_passing(error):
                    raise
                if not tries_left:
                    raise _Unavailable from error.orig
        raise AssertionError("a batch is tried at least once")

    def _commit(self, batch: Sequence[Work]) -> None:
        if file_of(self._engine) != self._file:
            raise _Unavailable from FileNotFoundError(FILE_GONE)
        with self._begin() as connection:
            write_batch(connection, batch)
        self.count += 1

    @contextmanager
    def _begin(self) -> Generator[Connection]:
        """Commits at the end of the block, with what it has gathered. After a failure, the connection is closed."""
        connection = self._connect()
        try:
            begin(connection)
            yield connection
            write_gathered(connection)
            try:
                commit(connection)
            except DBAPIError as error:
                # A server that went away during COMMIT may have committed: the batch must not be written again.
                raise _Unavailable from error.orig
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = self._engine.connect()
            except PoolTimeout as error:
                raise _Unavailable from error
            except DBAPIError as error:
                raise _Unavailable from error.orig
        return self._connection

    def _refuse(self, work: Work, error: Exception) -> None:
        if work.otherwise is None:
            fail(work, error, self.shown)
            return
        try:
            with self._gate, self._begin() as connection:
                work.answer = work.otherwise(connection, error)
        except _Unavailable as second:
            fail(work, self._unavailable(second), self.shown)
        except Exception as second:  # noqa: BLE001 - as above
            fail(work, second, self.shown)
        else:
            resolve_futures([work])

    def _unavailable(self, error: _Unavailable) -> StoreUnavailable:
        return StoreUnavailable(f"the store {self.shown} could not be written: {error.__cause__}")


class _Unavailable(Exception):
    """The database could not be reached, or did not say whether it committed. The batch is not tried again."""


def _is_passing(error: DBAPIError) -> bool:
    """True if another process was in the way or the connection broke, so that the batch is not to blame."""
    if getattr(error.orig, "sqlstate", None) == _DEADLOCK:
        return True
    name = getattr(error.orig, "sqlite_errorname", "")
    return error.connection_invalidated or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
