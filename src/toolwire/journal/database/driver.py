"""Direct use of the database driver for the statements that every record needs.

SQLAlchemy's overhead for these statements costs more than the database itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError


def begin(connection: Connection) -> None:
    """Begins a transaction that takes the write lock at once.

    SQLAlchemy, when used on it later, finds the transaction open.
    """
    if connection.dialect.name == "sqlite":
        run_statement(connection, "BEGIN IMMEDIATE")
    else:
        connection.begin()


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


def run_statement(connection: Connection, statement: str) -> None:
    """Runs a statement that has no parameters.

    Raises:
        DBAPIError: The statement failed; SQLAlchemy would raise the same error.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(statement)
        return
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute(statement)
    except driver.Error as error:
        raise _database_error(connection, statement, error) from error


def run_many(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Runs a statement once for each row and returns how many database rows changed. `?` marks each parameter.

    Raises:
        DBAPIError: The statement failed; SQLAlchemy would raise the same error.
    """
    if connection.dialect.name != "sqlite":
        return connection.exec_driver_sql(statement.replace("?", "%s"), rows).rowcount
    driver: Any = connection.connection.dbapi_connection
    try:
        return driver.executemany(statement, rows).rowcount
    except driver.Error as error:
        raise _database_error(connection, statement, error) from error


def insert_new(connection: Connection, table: Table) -> Any:
    """Returns an insert that leaves out the rows whose key the table has."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(table).on_conflict_do_nothing()


def _database_error(connection: Connection, statement: str, error: Exception) -> BaseException:
    dialect: Any = connection.dialect
    return DBAPIError.instance(statement, None, error, dialect.dbapi.Error, dialect=dialect)
