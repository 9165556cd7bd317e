"""Pruning of the log in slices: each is a transaction of its own, and other records are written in between."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, delete, select

from toolwire.journal.chain import keep_head, locked_head
from toolwire.journal.database import Database
from toolwire.journal.sealing import Sealer
from toolwire.journal.tables import LOG

PRUNED_AT_ONCE = 1_000
"""Rows that one transaction drops: some milliseconds' work, as long as another batch of records takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """The rows of the log that are to go: the oldest, as long as `before` or `keep` says so."""

    before: float | None = None
    """Rows from before these seconds since the epoch go."""
    keep: int | None = None
    """All rows but the last ones go, by the log's end at the first slice."""
    end: int | None = None
    """The last row at the first slice; None before it. Rows that come later are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The outcome of one transaction."""

    dropped: int
    """Rows."""
    rest: Prune | None
    """The work that is left; None when all is done."""


def pruned(database: Database, wanted: Prune) -> Future[int]:
    """The number of rows that were dropped, when all of them are. Queues each slice when the one before is durable."""
    whole: Future[int] = Future()
    whole.set_running_or_notify_cancel()
    _queue(database, wanted, 0, whole)
    return whole


def _queue(database: Database, wanted: Prune, dropped: int, whole: Future[int]) -> None:
    def go_on(done: Future[Slice]) -> None:
        error = done.exception()
        if error is not None:
            whole.set_exception(error)
            return
        # With a timeout: without one, the thread that writes would wait for itself.
        found = done.result(timeout=0)
        if found.rest is None:
            whole.set_result(dropped + found.dropped)
        else:
            _queue(database, found.rest, dropped + found.dropped, whole)

    database.run(lambda connection: prune(connection, database.sealer, wanted)).add_done_callback(go_on)


def prune(connection: Connection, sealer: Sealer, wanted: Prune) -> Slice:
    """Drops the first slice of the rows, inside of the caller's transaction."""
    head = locked_head(connection, sealer)
    end = head.seq if wanted.end is None else wanted.end
    by_number = 0 if wanted.keep is None else end - wanted.keep

    def goes(row: Any) -> bool:
        return row.seq <= by_number or (wanted.before is not None and row.at < wanted.before)

    query = select(LOG.c.seq, LOG.c.at, LOG.c.hash).where(LOG.c.seq > head.pruned, LOG.c.seq <= end)
    rows = connection.execute(query.order_by(LOG.c.seq).limit(PRUNED_AT_ONCE)).all()
    # Times need not go up with the rows: those before the first young one go.
    going = list(takewhile(goes, rows))
    if going:
        last = going[-1]
        connection.execute(delete(LOG).where(LOG.c.seq <= last.seq))
        keep_head(connection, sealer, replace(head, pruned=last.seq, pruned_hash=last.hash))
    is_over = len(going) < PRUNED_AT_ONCE
    return Slice(dropped=len(going), rest=None if is_over else replace(wanted, end=end))
