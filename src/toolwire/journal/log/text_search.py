"""Finds rows of the log by a part of their text. An index of trigrams serves texts of three characters or more.

SQLite has its index in an FTS5 table, PostgreSQL by the extension `pg_trgm`. The first search begins the index and does
not wait for it: a thread makes it while others write. SQLite's index gets new rows in the same way, so that a logged
call pays nothing for it.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, literal, select, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolwire.journal.database.tables import LOG, META
from toolwire.vocabulary.errors import StoreUnavailable

TRIGRAM = 3
"""Characters of the shortest text that the index can find."""

SCANNED = 20_000
"""Newest rows that are looked through for a shorter text, or for one that the index does not have yet: about a tenth
of a second."""

UNINDEXED = 1_000
"""Rows that wait until an index is made, or gets them. A search looks through so many in a few milliseconds."""

INDEXED_AT_ONCE = 200
"""Rows that one transaction adds to SQLite's index: about 15 ms, which other records wait for."""

INDEXED_BYTES = 256 * 1024
"""Bytes of entries after which such a transaction ends, for rows that are longer than most."""

PAUSE = 2.0
"""Times its own time that the thread rests after a transaction, so that other records wait for few of them."""

_OTHERS = LOG.alias("others")
_UPTO = "log_text_upto"
_LOG = logging.getLogger("toolwire.store")


def contains(connection: Connection, wanted: str) -> Any:
    """Returns the SQL condition for rows whose entry contains the text, in the part of the log that is searched."""
    # The entry is JSON in ASCII.
    part = json.dumps(wanted)[1:-1]
    escaped = "".join(f"/{letter}" if letter in "/%_" else letter for letter in part)
    found = LOG.c.entry.ilike(f"%{escaped}%", escape="/")
    if len(part) < TRIGRAM or not _is_indexed(connection):
        return found & (LOG.c.at >= func.coalesce(_find_scan_start_time(), 0.0))
    if connection.dialect.name != "sqlite":
        return found
    quoted = part.replace('"', '""')
    indexed = text("SELECT rowid AS seq FROM log_text WHERE log_text MATCH :part").bindparams(part=f'"{quoted}"')
    others = select(_OTHERS.c.seq).where(_OTHERS.c.seq > _find_scan_start_number(connection))
    return (LOG.c.seq.in_(indexed.columns(LOG.c.seq)) | LOG.c.seq.in_(others)) & found


def find_share(connection: Connection, wanted: str) -> float:
    """Returns the part of the log in which `contains` looks for the text, or how far PostgreSQL's index is."""
    if len(json.dumps(wanted)) - 2 < TRIGRAM:
        return 1.0
    if connection.dialect.name != "sqlite":
        is_all = _is_indexed(connection) or connection.execute(select(_find_scan_start_time())).scalar() is None
        return 1.0 if is_all else _read_postgres_progress(connection)
    first, last = connection.execute(select(func.min(LOG.c.seq), func.max(LOG.c.seq))).one()
    if first is None:
        return 1.0
    end = max(_read_index_end(connection), first - 1) if _is_indexed(connection) else first - 1
    return min(1.0, (end - first + 1 + min(SCANNED, last - end)) / (last - first + 1))


def unindex(connection: Connection, last: int) -> None:
    """Takes the rows up to `last` out of SQLite's index, before they are deleted. PostgreSQL does so by itself."""
    if connection.dialect.name == "sqlite" and _is_indexed(connection):
        taken = "INSERT INTO log_text (log_text, rowid, entry) SELECT 'delete', seq, entry FROM log WHERE seq <= :last"
        connection.execute(text(taken), {"last": min(last, _read_index_end(connection))})


class TextIndex:
    """Makes the index of the log's texts in a thread, from the first search for a text on."""

    def __init__(self, engine: Engine, run: Callable[[Callable[[Connection], bool]], Future[bool]]) -> None:
        """`run` queues a job for the writer of the database."""
        self._engine = engine
        self._run = run
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._cancel: Callable[[], object] | None = None

    def begin(self, connection: Connection) -> None:
        """Starts the thread unless it runs or has nothing to do. `connection` is any one that reads."""
        if self._ended.is_set() or not _is_unfinished(connection):
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._go, name="toolwire-index", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Returns when the thread has ended."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def stop(self) -> None:
        """Ends the thread. The next search for a text goes on with its work."""
        self._ended.set()
        with self._lock:
            cancel = self._cancel
        if cancel is not None:
            cancel()
        self.wait()

    def _go(self) -> None:
        try:
            self._index_sqlite() if self._engine.dialect.name == "sqlite" else self._index_postgres()
        except (SQLAlchemyError, StoreUnavailable) as error:
            why = error.orig if isinstance(error, DBAPIError) else error
            if not self._ended.is_set():
                _LOG.warning("the log has no index of its texts, so a search sees the newest %d rows: %s", SCANNED, why)

    def _index_sqlite(self) -> None:
        pause_s = 0.0
        while not self._ended.wait(pause_s):
            began = time.monotonic()
            if not self._run(index_slice).result():
                return
            pause_s = (time.monotonic() - began) * PAUSE

    def _index_postgres(self) -> None:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            driver: Any = connection.connection.dbapi_connection
            try:
                with self._lock:
                    self._cancel = driver.cancel
                if not self._ended.is_set():
                    _create_postgres_index(connection, driver)
            finally:
                with self._lock:
                    self._cancel = None
                # It has other limits than the rest.
                connection.invalidate()


def index_slice(connection: Connection) -> bool:
    """Adds the next rows to SQLite's index, inside the caller's transaction. Returns True if rows are left."""
    made = "USING fts5 (entry, content='log', content_rowid='seq', tokenize='trigram')"
    connection.execute(text(f"CREATE VIRTUAL TABLE IF NOT EXISTS log_text {made}"))
    before = _read_index_end(connection)
    rows = select(LOG.c.seq, func.length(LOG.c.entry)).where(LOG.c.seq > before).order_by(LOG.c.seq)
    found = connection.execute(rows.limit(INDEXED_AT_ONCE)).all()
    if not found:
        return False
    size, last = 0, 0
    for seq, length in found:
        size, last = size + length, seq
        if size >= INDEXED_BYTES:
            break
    more = "INSERT INTO log_text (rowid, entry) SELECT seq, entry FROM log WHERE seq > :before AND seq <= :last"
    connection.execute(text(more), {"before": before, "last": last})
    kept = {"name": _UPTO, "value": str(last).encode()}
    if not connection.execute(update(META).where(META.c.name == _UPTO).values(value=kept["value"])).rowcount:
        connection.execute(insert(META).values(kept))
    return len(found) == INDEXED_AT_ONCE or size >= INDEXED_BYTES


def _create_postgres_index(connection: Connection, driver: Any) -> None:
    connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    if _read_postgres_progress(connection):
        return
    if connection.execute(text(f"SELECT 1 FROM {_POSTGRES_INDEX}")).scalar():  # noqa: S608 - a constant
        # A process ended while it made the index.
        connection.execute(text("DROP INDEX CONCURRENTLY IF EXISTS log_text"))
    # The index of a long log takes longer than any other statement, and the server is silent meanwhile.
    connection.execute(text("SET statement_timeout = 0"))
    driver.silence_limit_s = math.inf
    connection.execute(text("CREATE INDEX CONCURRENTLY IF NOT EXISTS log_text ON log USING gin (entry gin_trgm_ops)"))


def _is_unfinished(connection: Connection) -> bool:
    rows = select(LOG.c.seq).order_by(LOG.c.seq)
    if connection.dialect.name == "sqlite":
        rows = rows.where(LOG.c.seq > _read_index_end(connection))
    elif _is_indexed(connection):
        return False
    return connection.execute(rows.limit(1).offset(UNINDEXED)).scalar() is not None


def _is_indexed(connection: Connection) -> bool:
    there = "sqlite_master WHERE name = 'log_text'"
    if connection.dialect.name != "sqlite":
        there = f"{_POSTGRES_INDEX} AND indisvalid"
    return connection.execute(text(f"SELECT 1 FROM {there}")).scalar() is not None  # noqa: S608 - two constants


_POSTGRES_INDEX = "pg_index WHERE indexrelid = to_regclass('log_text')"


def _read_postgres_progress(connection: Connection) -> float:
    """Returns how far the index is that a process makes, above 0.0 and below 1.0; 0.0 if none does."""
    query = (
        "SELECT max(blocks_done::float / greatest(blocks_total, 1)) FROM pg_stat_progress_create_index"
        " WHERE relid = to_regclass('log')"
    )
    done = connection.execute(text(query)).scalar()
    return 0.0 if done is None else min(max(done, 0.01), 0.99)


def _find_scan_start_time() -> Any:
    """Returns the time of the oldest row that is looked through, as SQL; NULL if all are."""
    return select(LOG.c.at).order_by(LOG.c.at.desc()).limit(1).offset(SCANNED).scalar_subquery()


def _find_scan_start_number(connection: Connection) -> Any:
    """Returns the number after which SQLite's rows are looked through, because the index does not have them."""
    newest = select(func.max(LOG.c.seq) - SCANNED).scalar_subquery()
    return func.max(literal(_read_index_end(connection)), func.coalesce(newest, 0))


def _read_index_end(connection: Connection) -> int:
    return int(connection.execute(select(META.c.value).where(META.c.name == _UPTO)).scalar() or b"0")
