"""Writes and deletes the parts of large values through the writer of a store."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from toolwire.journal.database.database import Database
from toolwire.journal.ledger import parts
from toolwire.journal.ledger.parts import Parts
from toolwire.vocabulary.errors import StoreUnavailable

_LOG = logging.getLogger("toolwire.store")


def write_parts(database: Database, value: Parts, texts: Sequence[bytes], now: float) -> None:
    """Writes the parts of a value, each in a transaction of its own, and returns when all are durable."""
    for number, text in enumerate(texts):
        sealed = database.sealer.seal(text, *value.place(number))
        _write(database, value, number, sealed, now)


def delete_parts(database: Database, owner: str, names: Sequence[str], now: float) -> None:
    """Deletes the parts of these names to which nothing refers, and abandoned ones.

    Whether the value was saved is decided before, so a failure is only logged.
    """
    try:
        while database.run(lambda connection: parts.delete_parts(connection, owner, names, now)).result():
            pass
    except StoreUnavailable:
        _LOG.warning("parts of an old value could not be deleted; a later save deletes them", exc_info=True)


def _write(database: Database, value: Parts, number: int, sealed: bytes, now: float) -> None:
    database.run(lambda connection: parts.write_part(connection, value, number, sealed, now)).result()
