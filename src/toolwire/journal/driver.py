"""The database's own driver, for the statements that every record goes through: what SQLAlchemy does for each of them
costs more than the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def begin(connection: Connection) -> None:
    """Begins a transaction that takes the write lock at once. SQLAlchemy finds it begun when it is used itself."""
    if connection.dialect.name == "sqlite":
        run(connection, "BEGIN IMMEDIATE")
    else:
        connection.begin()


def commit(connection: Connection) -> None:
    """Ends it.

    Raises:
        DBAPIError: as SQLAlchemy would.
    """
    if connection.in_transaction():
        connection.commit()
    else:
        run(connection, "COMMIT")


def is_begun(connection: Connection) -> bool:
    """Whether SQLite is in a transaction, known to SQLAlchemy or not."""
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", False))


def run(connection: Connection, statement: str) -> None:
    """Runs a statement without values.

    Raises:
        DBAPIError: as SQLAlchemy would.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(statement)
        return
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute(statement)
    except driver.Error as error:
        raise _told(connection, statement, error) from error


def run_many(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Runs a statement with `?` for each value, once for each row; how many rows of the database it changed.

    Raises:
        DBAPIError: as SQLAlchemy would.
    """
    if connection.dialect.name != "sqlite":
        return connection.exec_driver_sql(statement.replace("?", "%s"), rows).rowcount
    driver: Any = connection.connection.dbapi_connection
    try:
        return driver.executemany(statement, rows).rowcount
    except driver.Error as error:
        raise _told(connection, statement, error) from error


def _told(connection: Connection, statement: str, error: Exception) -> BaseException:
    dialect: Any = connection.dialect
    return DBAPIError.instance(statement, None, error, dialect.dbapi.Error, dialect=dialect)
