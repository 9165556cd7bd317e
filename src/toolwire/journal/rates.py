"""Counts of calls that all processes of a store share: one row for each key and second."""

from __future__ import annotations

import math

from sqlalchemy import Connection

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.locks import lock_in_order
from toolwire.journal.database.tables import clear_text

_DROP = "DELETE FROM rates WHERE key = ? AND second < ?"
_SUM = "SELECT COALESCE(SUM(count), 0), MIN(second) FROM rates WHERE key = ?"
_COUNT = (
    "INSERT INTO rates (key, second, count) VALUES (?, ?, 1)"
    " ON CONFLICT (key, second) DO UPDATE SET count = rates.count + 1"
)


_PROBE = "probe"
"""The key of a row that a probe writes and deletes. Keys of counts begin with their kind."""


def lock_name(key: str) -> str:
    """Returns the name under which a key is locked."""
    return f"rate {key}"


def take_place(connection: Connection, key: str, calls: int, per_s: float, now: float) -> float:
    """Counts a call of this key and returns 0, or returns the seconds after which there may be room.

    A second counts as a whole, so that never more than `calls` begin in any `per_s` seconds.
    """
    lock_in_order(connection, [lock_name(key)])
    name, second = clear_text(key), math.floor(now)
    run_statement(connection, _DROP, name, math.floor(now - per_s))
    count, first = run_statement(connection, _SUM, name).fetchone()
    if count < calls:
        run_statement(connection, _COUNT, name, second)
        return 0.0
    return max(first + 1 + per_s - now, 0.001)


def write_nothing(connection: Connection) -> None:
    """Writes a row and deletes it, so that the database has to write, and is as it was."""
    lock_in_order(connection, [lock_name(_PROBE)])
    name = clear_text(_PROBE)
    run_statement(connection, _COUNT, name, 0)
    run_statement(connection, _DROP, name, 1)
