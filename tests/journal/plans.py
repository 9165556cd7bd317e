"""The plans by which a database answers a question, in a store that is large enough for each index to be worth it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from tests.journal.world import done
from toolwire import Store

_COPIES = 3_000
_CHANGES = {
    # What people ask for is rare among what is there: runs that wait, requests that nobody has decided, decisions.
    "runs": {"run_id": "x.run_id || '/' || n", "status": "'finished'", "owner": "''", "principal": "'p' || n"},
    "steps": {"run_id": "x.run_id || '/' || n"},
    "requests": {
        "request_id": "x.request_id || '/' || n",
        "run_id": "x.run_id || '/' || n",
        "state": "'done'",
        "tool": "'tool' || n",
        "principal": "'p' || n",
    },
    "log": {"seq": "x.seq + n * 100000", "kind": "'call'", "run_id": "x.run_id || '/' || n", "parent": "''"},
}
_TIMES = {"runs": "created_at", "steps": "started_at", "requests": "created_at", "log": "at"}


def grow(store: Store) -> None:
    """Copies each row of the first four, thousands of times, and has PostgreSQL count them.

    SQLite chooses an index by its rules. PostgreSQL chooses by counting, and reads a small table whole.
    """
    if store.url.startswith("sqlite"):
        return

    def copy(connection: Any) -> None:
        for table, changes in _CHANGES.items():
            new = {**changes, _TIMES[table]: f"x.{_TIMES[table]} - n"}
            pairs = ", ".join(f"'{name}', {value}" for name, value in new.items())
            connection.exec_driver_sql(
                f"INSERT INTO {table} SELECT copied.* FROM {table} x "
                f"JOIN (SELECT ctid FROM {table} LIMIT 4) few ON x.ctid = few.ctid, generate_series(1, {_COPIES}) n, "
                f"LATERAL jsonb_populate_record(x, jsonb_build_object({pairs})) copied"
            )
            connection.exec_driver_sql(f"ANALYZE {table}")

    done(store._database.run(copy))  # pyright: ignore[reportPrivateUsage]


def plans_of(store: Store, read: Callable[[Store], Any]) -> list[str]:
    """Returns the plans of the queries with which something is read."""
    explain_word, found = "EXPLAIN QUERY PLAN" if store.url.startswith("sqlite") else "EXPLAIN", list[str]()

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            if explain_word == "EXPLAIN":
                # Tables that were not grown have a few rows, and would be read whole.
                cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"{explain_word} {statement}", parameters)
            found.append("\n".join(str(row) for row in cursor.fetchall()))

    engine = store._database._engine  # pyright: ignore[reportPrivateUsage]
    event.listen(engine, "before_cursor_execute", explain)
    try:
        read(store)
    finally:
        event.remove(engine, "before_cursor_execute", explain)
    return found
