"""Finds rows of the log by a part of their text. An index of trigrams serves texts of three characters or more.

SQLite has its index in an FTS5 table, PostgreSQL by the extension `pg_trgm`. The first search makes the index, and
later ones in SQLite add the new rows, so that a logged call pays nothing for it there.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from toolwire.journal.database.tables import LOG, META

TRIGRAM = 3
"""Characters of the shortest text that the index can find."""

SCANNED = 20_000
"""Newest rows that are looked through for a shorter text, or without an index: about a tenth of a second."""

INDEXED_AT_ONCE = 5_000
"""Rows that one transaction adds to SQLite's index. Other records are written in between."""

_UPTO = "log_text_upto"
_LOG = logging.getLogger("toolwire.store")


def contains(connection: Connection, wanted: str) -> Any:
    """Returns the SQL condition for rows whose entry contains the text."""
    # The entry is JSON in ASCII.
    part = json.dumps(wanted)[1:-1]
    escaped = "".join(f"/{letter}" if letter in "/%_" else letter for letter in part)
    found = LOG.c.entry.ilike(f"%{escaped}%", escape="/")
    if len(part) < TRIGRAM or not _is_indexed(connection):
        newest = select(LOG.c.seq).order_by(LOG.c.seq.desc()).limit(1).offset(SCANNED - 1).scalar_subquery()
        return found & (LOG.c.seq >= func.coalesce(newest, 0))
    if connection.dialect.name != "sqlite":
        return found
    quoted = part.replace('"', '""')
    numbers = text("SELECT rowid AS seq FROM log_text WHERE log_text MATCH :part").bindparams(part=f'"{quoted}"')
    return LOG.c.seq.in_(numbers.columns(LOG.c.seq)) & found


def index_more(connection: Connection) -> bool:
    """Makes the index, or adds the next rows to it, inside the caller's transaction. Returns True if rows are left."""
    try:
        with connection.begin_nested():
            return _index_sqlite(connection) if connection.dialect.name == "sqlite" else _index_postgres(connection)
    except DBAPIError as error:
        _LOG.warning("the log has no index of its texts, so a search sees the newest %d rows: %s", SCANNED, error.orig)
        return False


def unindex(connection: Connection, last: int) -> None:
    """Takes the rows up to `last` out of SQLite's index, before they are deleted. PostgreSQL does so by itself."""
    if connection.dialect.name == "sqlite" and _is_indexed(connection):
        taken = "INSERT INTO log_text (log_text, rowid, entry) SELECT 'delete', seq, entry FROM log WHERE seq <= :last"
        connection.execute(text(taken), {"last": min(last, _read_index_end(connection))})


def _is_indexed(connection: Connection) -> bool:
    there = "sqlite_master WHERE name = 'log_text'"
    if connection.dialect.name != "sqlite":
        there = "pg_indexes WHERE indexname = 'log_text' AND schemaname = current_schema()"
    return connection.execute(text(f"SELECT 1 FROM {there}")).scalar() is not None  # noqa: S608 - two constants


def _index_sqlite(connection: Connection) -> bool:
    made = "USING fts5 (entry, content='log', content_rowid='seq', tokenize='trigram')"
    connection.execute(text(f"CREATE VIRTUAL TABLE IF NOT EXISTS log_text {made}"))
    before = _read_index_end(connection)
    rows = select(LOG.c.seq).where(LOG.c.seq > before).order_by(LOG.c.seq).limit(INDEXED_AT_ONCE)
    found = connection.execute(rows).scalars().all()
    if not found:
        return False
    more = "INSERT INTO log_text (rowid, entry) SELECT seq, entry FROM log WHERE seq > :before AND seq <= :last"
    connection.execute(text(more), {"before": before, "last": found[-1]})
    kept = {"name": _UPTO, "value": str(found[-1]).encode()}
    if not connection.execute(update(META).where(META.c.name == _UPTO).values(value=kept["value"])).rowcount:
        connection.execute(insert(META).values(kept))
    return len(found) == INDEXED_AT_ONCE


def _index_postgres(connection: Connection) -> bool:
    if not _is_indexed(connection):
        # An index of a long log may take longer than any other statement.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
        connection.execute(text("CREATE INDEX IF NOT EXISTS log_text ON log USING gin (entry gin_trgm_ops)"))
    return False


def _read_index_end(connection: Connection) -> int:
    return int(connection.execute(select(META.c.value).where(META.c.name == _UPTO)).scalar() or b"0")
