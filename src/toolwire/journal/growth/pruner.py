"""The thread that applies a retention to a store as long as the store is open."""

from __future__ import annotations

import logging
import threading
from dataclasses import fields

from sqlalchemy.exc import SQLAlchemyError

from toolwire.journal.growth.prune_lease import PruneLease
from toolwire.journal.growth.slices import Slices
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.retention import DAY_S, PruneReport, Retention
from toolwire.vocabulary.errors import StoreUnavailable, ToolwireError

PRUNE_EVERY_S = 3600.0
"""Seconds between two passes: a small part of a day. A shorter retention has a pass for each tenth of it."""

_LEAST_S = 1.0
_LOG = logging.getLogger("toolwire.store")


class Pruner:
    """Prunes a database at once, and then on a clock, until the database is closed."""

    def __init__(self, database: Database, retention: Retention) -> None:
        self.retention = retention
        """The retention that it applies."""
        self._database = database
        self._thread = threading.Thread(target=self._go, name="toolwire-pruner", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Returns when the slice that is under way has ended. The database is being closed."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _go(self) -> None:
        database, shown = self._database, self._database.location.shown
        slices = Slices(database, lease=PruneLease(owner=database.owner, shown=shown))
        while not database.closing.is_set():
            try:
                report = slices.apply(self.retention)
                if report != PruneReport():
                    _LOG.info("the store %s was pruned: %s", shown, report)
            except StoreUnavailable as error:
                # Another process prunes it, the database is away, or it is being closed: the next pass does it.
                _LOG.info("the store %s was not pruned: %s", shown, error)
            except (SQLAlchemyError, ToolwireError):
                _LOG.exception("the store %s could not be pruned; it is tried again later", shown)
            database.closing.wait(_pause_s(self.retention))


def _pause_s(retention: Retention) -> float:
    days = [value for field in fields(retention) if (value := getattr(retention, field.name)) is not None]
    return max(_LEAST_S, min([PRUNE_EVERY_S, *(value * DAY_S / 10 for value in days)]))
