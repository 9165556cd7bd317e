"""The writing connection of a database, and the outcome of each batch on it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolwire.journal.driver import begin, commit, is_begun
from toolwire.journal.engine import FILE_GONE, file_of
from toolwire.journal.forking import gate_of
from toolwire.journal.location import shown
from toolwire.journal.work import Work, answer, fail, write
from toolwire.vocabulary.errors import StoreUnavailable

TRIES = 4
"""Attempts at a batch that cannot get the write lock: 40 seconds in total, then its callers get an error."""


class Line:
    """A connection for one thread at a time.

    It stays open between transactions, because taking it from the pool costs as much as writing a record. After an
    error it goes back to the pool.
    """

    def __init__(self, engine: Engine) -> None:
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.has_committed = False
        """True if the last batch is durable. The next leader resets it before taking a batch: it may be interrupted
        before it writes that batch.
        """
        self.commits = 0
        """Transactions so far."""
        self.shown = shown(engine.url)
        """The URL of the store, for messages."""
        self._engine = engine
        self._gate = gate_of(engine)
        self._file = file_of(engine)
        self._kept: Connection | None = None

    def try_to_write(self, batch: Sequence[Work]) -> bool:
        """Writes the batch and resolves its futures.

        Returns True if all are resolved, False if `write` must take over.
        """
        try:
            with self._gate:
                self._commit(batch)
        except _NotCommitted as error:
            self._fail_all(batch, error)
        except Exception:  # noqa: BLE001 - `write` identifies the error and reports it
            return False
        else:
            answer(batch)
        return True

    def write(self, batch: Sequence[Work]) -> None:
        """Writes the batch and resolves its futures. Work that cannot be written gets an error."""
        try:
            self._patiently(batch)
        except _NotCommitted as error:
            self._fail_all(batch, error)
        except Exception as error:  # noqa: BLE001 - the caller receives whatever its job raises
            if len(batch) == 1:
                self._refuse(batch[0], error)
                return
            # One work is the cause. Written alone, the others succeed.
            for work in batch:
                self.write([work])
        else:
            answer(batch)

    def close(self) -> None:
        """Returns the connection to the pool. An open transaction is rolled back."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _patiently(self, batch: Sequence[Work]) -> None:
        for tries_left in reversed(range(TRIES)):
            try:
                with self._gate:
                    return self._commit(batch)
            except DBAPIError as error:
                if not _is_passing(error):
                    raise
                if not tries_left:
                    raise _NotCommitted from error.orig
        raise AssertionError("a batch is tried at least once")

    def _commit(self, batch: Sequence[Work]) -> None:
        self.has_committed = False
        if file_of(self._engine) != self._file:
            raise _NotCommitted from FileNotFoundError(FILE_GONE)
        if self._kept is None:
            try:
                self._kept = self._engine.connect()
            except PoolTimeout as error:
                raise _NotCommitted from error
            except DBAPIError as error:
                raise _NotCommitted from error.orig
        connection = self._kept
        try:
            begin(connection)
            write(connection, batch)
            self.has_committed = True
            try:
                commit(connection)
            except DBAPIError as error:
                # A server that disappeared may or may not have committed, so the batch must not be written again.
                raise _NotCommitted from error.orig
        except BaseException as error:
            # After an interrupt at the commit, SQLite knows whether the transaction is still open.
            is_known = self.is_sqlite and not isinstance(error, _NotCommitted)
            self.has_committed = self.has_committed and is_known and not is_begun(connection)
            self.close()
            raise
        self.commits += 1

    def _refuse(self, work: Work, error: Exception) -> None:
        if work.otherwise is None:
            fail(work, error, self.shown)
            return
        try:
            with self._gate, self._engine.begin() as connection:
                work.answer = work.otherwise(connection, error)
        except Exception as second:  # noqa: BLE001 - as above
            fail(work, second, self.shown)
        else:
            answer([work])

    def _fail_all(self, batch: Sequence[Work], error: _NotCommitted) -> None:
        for work in batch:
            unavailable = StoreUnavailable(f"the store {self.shown} could not be written: {error.__cause__}")
            fail(work, unavailable, self.shown)


class _NotCommitted(Exception):
    """The batch must not be retried: the database was not available, or the outcome of the commit is unknown."""


def _is_passing(error: DBAPIError) -> bool:
    """True if another process was in the way or the connection broke. The batch itself is not at fault."""
    name = getattr(error.orig, "sqlite_errorname", "")
    return error.connection_invalidated or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
