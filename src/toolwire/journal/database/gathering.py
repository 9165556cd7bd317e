"""What one transaction gathers, to write it once, just before its commit: the rows of the log."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Connection

_GATHERED = "toolwire_gathered"


class Gathered(Protocol):
    """A part of a transaction that is written just before its commit."""

    def write(self, connection: Connection) -> None:
        """Writes it. Called once."""
        ...


G = TypeVar("G", bound=Gathered)


def begin_gathering(connection: Connection) -> None:
    """Begins a transaction that has gathered nothing. What an earlier one had gathered was rolled back with it."""
    connection.info[_GATHERED] = {}


def find_part(connection: Connection, kind: type[G]) -> G:
    """Returns what the writer's open transaction has gathered of this kind: a new object the first time.

    Raises:
        KeyError: The connection is in no transaction of the writer (`driver.begin`), which would write it.
    """
    parts: dict[type[Any], Any] = connection.info[_GATHERED]
    if kind not in parts:
        parts[kind] = kind()
    return cast("G", parts[kind])


def write_gathered(connection: Connection) -> None:
    """Writes all that the transaction has gathered."""
    for part in connection.info.pop(_GATHERED, {}).values():
        part.write(connection)
