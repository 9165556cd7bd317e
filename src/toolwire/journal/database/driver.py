"""Direct use of the database driver for the statements that every record needs.

SQLAlchemy's overhead for these statements costs more than the database itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from toolwire.journal.database.gathering import begin_gathering

ROWS_AT_ONCE = 16
"""Rows in one insert: a turn has one to three, and the driver keeps a statement for each number of rows."""


def begin(connection: Connection) -> None:
    """Begins a transaction that takes the write lock at once.

    SQLAlchemy, when used on it later, finds the transaction open.
    """
    if connection.dialect.name == "sqlite":
        run_statement(connection, "BEGIN IMMEDIATE")
    else:
        connection.begin()
    begin_gathering(connection)


def commit(connection: Connection) -> None:
    """Commits the transaction.

    Raises:
        DBAPIError: The commit failed; SQLAlchemy would raise the same error.
    """
    if connection.in_transaction():
        connection.commit()
    else:
        run_statement(connection, "COMMIT")


def is_begun(connection: Connection) -> bool:
    """True if SQLite is in a transaction, even one that SQLAlchemy did not begin."""
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", False))


def run_statement(connection: Connection, statement: str, *values: Any) -> Any:
    """Runs a statement and returns the driver's cursor. `?` marks each parameter.

    Raises:
        DBAPIError: The statement failed; SQLAlchemy would raise the same error.
    """
    driver, text = _driver_and_text(connection, statement)
    try:
        return driver.execute(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _database_error(connection, statement, error) from error


def run_many(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Runs a statement once for each row and returns how many database rows changed. `?` marks each parameter.

    Raises:
        DBAPIError: The statement failed; SQLAlchemy would raise the same error.
    """
    driver, text = _driver_and_text(connection, statement)
    try:
        if len(rows) == 1:
            return driver.execute(text, rows[0]).rowcount
        cursor = driver.cursor()
        cursor.executemany(text, rows)
        return cursor.rowcount
    except connection.dialect.loaded_dbapi.Error as error:
        raise _database_error(connection, statement, error) from error


def insert_rows(
    connection: Connection, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]], conflict: str = ""
) -> None:
    """Inserts rows. `conflict` is the clause `ON CONFLICT`.

    Raises:
        DBAPIError: A statement failed; SQLAlchemy would raise the same error.
    """
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        statement = _insert(table, columns, len(some), conflict)
        run_statement(connection, statement, *chain.from_iterable(some))


@cache
def _insert(table: str, columns: tuple[str, ...], rows: int, conflict: str) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)} {conflict}"  # noqa: S608


def insert_new(connection: Connection, table: Table) -> Any:
    """Returns an insert that leaves out the rows whose key the table has."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(table).on_conflict_do_nothing()


def _driver_and_text(connection: Connection, statement: str) -> tuple[Any, str]:
    is_sqlite = connection.dialect.name == "sqlite"
    return connection.connection.dbapi_connection, statement if is_sqlite else _text_for_psycopg(statement)


@cache
def _text_for_psycopg(statement: str) -> str:
    return statement.replace("?", "%s")


def _database_error(connection: Connection, statement: str, error: Exception) -> BaseException:
    dialect: Any = connection.dialect
    is_lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if is_lost:
        connection.invalidate(error)
    return DBAPIError.instance(
        statement, None, error, dialect.loaded_dbapi.Error, connection_invalidated=is_lost, dialect=dialect
    )
