"""Locks by name for the transactions of a server, taken in one order, so that no two processes wait for each other.

A transaction writes the records of many callers, in the order in which they came. Two processes that lock the same two
conversations in different orders would wait for each other. So a batch first locks all that its works name.

A batch that names one thing alone needs no lock by name. It locks the row of a run before those of its requests, or one
conversation, and then waits for nothing that another holds. SQLite has one writer at a time and needs no such lock.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from toolwire.journal.database.tables import clear_text

LOG_PRUNING = "log pruning"
"""Held by the one transaction that drops rows of chains which other processes write."""

KEPT = "kept results"
"""Held by the one transaction that counts and drops long results."""


def lock_in_order(connection: Connection, names: Iterable[str]) -> None:
    """Locks these names until the end of the transaction: conversations, runs, requests and the names above.

    A request stands for its run too, and a run for its conversation.
    """
    wanted = sorted({clear_text(name) for name in names if name})
    if wanted and connection.dialect.name != "sqlite":
        connection.exec_driver_sql(_LOCK, (wanted,))


_LOCK = """
    WITH named(name) AS (SELECT unnest(%s::text[])),
    runs_too(name) AS (
        SELECT name FROM named UNION SELECT run_id FROM requests WHERE request_id IN (SELECT name FROM named)
    ),
    locked(name) AS (
        SELECT name FROM runs_too
        UNION SELECT conversation FROM runs WHERE run_id IN (SELECT name FROM runs_too) AND conversation <> ''
    )
    SELECT pg_advisory_xact_lock(key)
    FROM (SELECT DISTINCT hashtextextended(name, 7310) AS key FROM locked ORDER BY key) AS keys
"""
