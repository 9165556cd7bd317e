"""New SQLite stores. The migrations make the first one of a process; the others get the same tables at once.

The migrations take ten times as long as all else that opens an empty store.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from toolwire.journal.database import schema
from toolwire.journal.ledger import store_database as database

_statements: list[tuple[str, tuple[object, ...]]] = []
"""The statements that make the tables, each with its values."""


def copy_first_schema() -> None:
    """Lets every later new store of this process have the tables of its first one."""
    database.upgrade = _upgrade


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        schema.upgrade(connection)
    elif not _statements:
        schema.upgrade(connection)
        _statements.extend(_statements_of(connection))
    else:
        for statement, values in _statements:
            connection.exec_driver_sql(statement, values)


def _statements_of(connection: Connection) -> list[tuple[str, tuple[object, ...]]]:
    made = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
    statements = [(str(sql), ()) for sql in connection.exec_driver_sql(made).scalars()]
    for table in inspect(connection).get_table_names():
        for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"'):
            statements.append((f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', tuple(row)))
    return statements
