"""Writes and deletes the parts of large values through the writer of a store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from toolwire.journal.ledger import parts
from toolwire.journal.ledger.parts import Parts
from toolwire.journal.ledger.store_database import Database
from toolwire.vocabulary.errors import StoreUnavailable

_LOG = logging.getLogger("toolwire.store")


def write_parts(database: Database, value: Parts, texts: Sequence[bytes], now: float) -> None:
    """Writes the parts of a value, each in a transaction of its own, and returns when all are durable."""
    for number, text in enumerate(texts):
        sealed = database.sealer.seal(text, *value.place(number))
        job = partial(parts.write_part, parts=value, number=number, sealed=sealed, now=now)
        database.run(job).result()


def delete_parts(database: Database, owner: str, names: Sequence[str], now: float) -> None:
    """Deletes the parts of these names to which nothing refers, and abandoned ones.

    Whether the value was saved is decided before, so a failure is only logged.
    """
    try:
        while database.run(lambda connection: parts.delete_parts(connection, owner, names, now)).result():
            pass
    except StoreUnavailable:
        _LOG.warning("parts of an old value could not be deleted; a later save deletes them", exc_info=True)
