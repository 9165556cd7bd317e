"""The SQLAlchemy engine of a store: the settings of each connection, and how a writing transaction begins.

PostgreSQL is behind a network that may fail or hang: every wait for the server has a limit.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool

from toolwire.journal.database.driver import is_begun, run_statement
from toolwire.journal.database.location import Location
from toolwire.runtime.extras import install_command
from toolwire.vocabulary.errors import StoreUnavailable

BUSY_TIMEOUT_S = 10.0
"""Seconds that a write waits for another process to finish writing. One write takes about a thousandth of that."""

WAL_LIMIT_BYTES = 8 * 1024 * 1024
"""Bytes of write-ahead log kept on disk between checkpoints: twice the size at which SQLite makes a checkpoint."""

PAGE_BYTES = 1024
"""Bytes of a page in a new file. A turn changes some 30 pages, and each goes to the write-ahead log as a whole: 38 KB a
turn, and 109 KB with the usual 4,096 bytes."""

CONNECT_LIMIT_S = 10
"""Seconds allowed for connecting; libpq takes whole seconds only. A handshake takes three round trips."""

STATEMENT_LIMIT_S = 20.0
"""Seconds after which the server cancels a statement, lock waits included.

A record takes about a thousandth of that.
"""

_STATEMENT_LIMIT_MS = int(STATEMENT_LIMIT_S * 1000)

SILENCE_LIMIT_S = 25.0
"""Seconds without a byte from the server during a statement. It exceeds `STATEMENT_LIMIT_S`, so the server gives up
first.
"""

FILE_GONE = "its file was deleted or replaced while the store was open"
"""Reason why a store is unavailable. SQLite would go on writing to a file that vanishes when this process ends."""

_POOLED = (
    "\nThis is a pooler such as PgBouncer: open the store with Store.open(url, prepared=False). "
    "For a command, add prepared=false to the query of the URL."
)

_WRITES = "toolwire_writes"


def make_engine(location: Location) -> Engine:
    """Creates an engine for the location. It does not connect yet, but it creates a missing database file.

    One connection has a database in memory. Threads take turns at it by their gate (`forking.gate_of`).

    Raises:
        StoreUnavailable: The driver is not installed, or the file cannot be created.
    """
    if location.is_memory:
        return _sqlite(location, poolclass=StaticPool)
    if location.path is None:
        return _postgres(location)
    try:
        # SQLite gives its side files the mode of the database file.
        os.close(os.open(location.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnavailable(f"{location.path} cannot be made: {error.strerror}{_advice(location.path)}") from error
    return _sqlite(location, pool_size=location.pool_size, max_overflow=0)


def _sqlite(location: Location, **pool: Any) -> Engine:
    # Connecting makes no file: not in the place of one that was deleted or moved either.
    place = ":memory:" if location.path is None else f"{location.path.as_uri()}?mode=rw"
    connect_to_place = partial(
        sqlite3.connect, place, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    engine = create_engine(location.url, creator=connect_to_place, **pool)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _postgres(location: Location) -> Engine:
    try:
        engine = create_engine(
            location.url,
            connect_args=connect_arguments(location.url.query, prepared=location.prepared),
            pool_size=location.pool_size,
            max_overflow=0,
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise StoreUnavailable(f"PostgreSQL needs the driver psycopg\nRun: {install_command('postgres')}") from error
    event.listen(engine, "do_connect", connect)
    if not location.prepared:
        event.listen(engine, "begin", _limit)
    return engine


def file_of(engine: Engine) -> tuple[int, int] | None:
    """Returns the device and inode of the database file; None for a server, for memory and for a missing file."""
    if engine.dialect.name != "sqlite" or is_memory(engine):
        return None
    try:
        found = os.stat(str(engine.url.database))  # noqa: PTH116 - a microsecond faster per record
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_memory(engine: Engine) -> bool:
    """True for a database in memory."""
    return engine.url.database == ":memory:"


def engine_for_writes(engine: Engine) -> Engine:
    """Returns the engine for writing: its transactions take the write lock first, so that none fails halfway."""
    return engine.execution_options(**{_WRITES: True})


def prepare(engine: Engine, location: Location) -> None:
    """Checks that the database is intact, and turns on the write-ahead log of SQLite.

    Raises:
        StoreUnavailable: The database cannot be reached, or is damaged.
    """
    path = location.path
    # SQLite itself says so only when the first record is written.
    if path is not None and not os.access(path, os.W_OK):
        raise StoreUnavailable(f"{location.shown} cannot be used{_advice(path)}")
    try:
        with engine.connect() as connection:
            if path is not None:
                _set_page_size(connection)
                _use_wal(connection)
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
                if found != "ok":
                    raise StoreUnavailable(f"{location.shown} is damaged: {found}")
    except DBAPIError as error:
        raise unusable(location, error) from error


def unusable(location: Location, error: DBAPIError) -> StoreUnavailable:
    """Returns the error of a database that cannot be opened, with what to do if that is known."""
    advice = "" if location.path is None else _advice(location.path)
    if "unsupported startup parameter" in str(error.orig):
        advice = _POOLED
    return StoreUnavailable(f"{location.shown} cannot be used: {error.orig}{advice}")


def _advice(path: Path) -> str:
    """Returns why a store of this file cannot be written, and what to do; empty if its places are as they should be."""
    if not path.parent.is_dir():
        return f"\n{path.parent} is not a folder: make it, or name another in the URL"
    if path.is_dir():
        return f"\n{path} is a folder: name a file in it, such as sqlite:///{path / 'runs.db'}"
    for place in (path, path.parent):
        if place.exists() and not os.access(place, os.W_OK):
            return (
                f"\n{place} is read-only for this process. A store keeps three files in its folder: name a folder in "
                "the URL that this process may write to, or make this one writable"
            )
    return ""


def _set_page_size(connection: Connection) -> None:
    """Sets the page size of a file that is still empty. It has no effect on any other."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(f"PRAGMA page_size = {PAGE_BYTES}").close()


def _use_wal(connection: Connection) -> None:
    # SQLite calls no busy handler while it changes the mode, so it does not wait for other processes that open the
    # file.
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    driver: Any = connection.connection.dbapi_connection
    while True:
        try:
            driver.execute("COMMIT") if driver.in_transaction else None
            if driver.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",):
                return
        except driver.OperationalError as error:
            if time.monotonic() > deadline:
                raise OperationalError("PRAGMA journal_mode=WAL", None, error) from error
        time.sleep(0.01)


def _set_up(driver: Any, _: object) -> None:
    for pragma in (
        f"busy_timeout={int(BUSY_TIMEOUT_S * 1000)}",
        # FULL: a commit survives a power failure once it was reported.
        "synchronous=FULL",
        "foreign_keys=ON",
        f"journal_size_limit={WAL_LIMIT_BYTES}",
        "trusted_schema=OFF",
        # Otherwise each page of a deleted value is written once more, and 16 MB take 0.2 s.
        "secure_delete=FAST",
    ):
        driver.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    if not is_begun(connection):
        run_statement(connection, "BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")


def _limit(connection: Connection) -> None:
    # A pooler of transactions gives the next one another connection, so each sets its own limit.
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {_STATEMENT_LIMIT_MS}")


def connect_arguments(given: Any, *, prepared: bool = True) -> dict[str, Any]:
    """Returns the arguments for a new connection. Values in the URL's query (`given`) take precedence.

    Without `prepared` they leave nothing at the server that another client of a pooler would meet.
    """
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_LIMIT_S,
        # Ends the wait for data that the other end does not acknowledge. `SILENCE_LIMIT_S` ends every other wait.
        "tcp_user_timeout": _STATEMENT_LIMIT_MS,
    }
    arguments = {name: value for name, value in arguments.items() if name not in given}
    if not prepared:
        return {**arguments, "prepare_threshold": None}
    # If a setting occurs twice, the server uses the last one.
    arguments["options"] = f"-c statement_timeout={_STATEMENT_LIMIT_MS} {given.get('options', '')}".rstrip()
    return arguments


def connect(dialect: Any, _: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Handler for SQLAlchemy's `do_connect`: opens a connection whose statements fail when the server stays silent."""
    return _limiting_class(dialect.loaded_dbapi).connect(*arguments, **named)


@cache
def _limiting_class(psycopg: Any) -> Any:
    class Limited(psycopg.Connection):
        silence_limit_s: float | None = None
        """None means `SILENCE_LIMIT_S`."""

        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            return psycopg.Connection.wait(self, _fail_on_silence(self, gen), *more, **named)

    def _fail_on_silence(connection: Any, operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Wraps the operation. Each turn sends it the socket's readiness, or 0 if nothing arrived for a while."""
        heard_at, ready = time.monotonic(), None
        while True:
            try:
                wanted = operation.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if ready:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > (connection.silence_limit_s or SILENCE_LIMIT_S):
                operation.close()
                # A late reply must not be read as the reply to another statement.
                connection.close()
                raise psycopg.OperationalError(f"the server did not answer within {SILENCE_LIMIT_S:g} s")

    return Limited
