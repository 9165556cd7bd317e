"""Prunes the log in slices. Each slice is its own transaction, so other records are written in between."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, delete, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log.chain import keep_head, lock_end
from toolwire.journal.log.text_search import unindex

PRUNED_AT_ONCE = 1_000
"""Rows dropped per transaction. That takes some milliseconds, as long as another batch of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRequest:
    """Selects the rows to drop: the oldest rows, up to the first row that neither `before` nor `keep` drops.

    Attributes:
        before: Drops rows older than this time, in seconds since the epoch.
        keep: Drops all rows but this many, counted from the log's end at the first slice.
        end: The last row at the first slice, None before it. Later rows are not considered.
    """

    before: float | None = None
    keep: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSlice:
    """The outcome of one transaction."""

    dropped: int
    """Number of rows dropped."""
    rest: PruneRequest | None
    """The work that is left; None when the prune is complete."""


def prune_log(database: Database, wanted: PruneRequest) -> Future[int]:
    """Drops the rows and resolves to their number. Queues each slice after the one before is durable."""
    whole: Future[int] = Future()
    whole.set_running_or_notify_cancel()
    _queue(database, wanted, 0, whole)
    return whole


def _queue(database: Database, wanted: PruneRequest, dropped: int, whole: Future[int]) -> None:
    def go_on(done: Future[PruneSlice]) -> None:
        error = done.exception()
        if error is not None:
            whole.set_exception(error)
            return
        # The future is done. The timeout says that this never waits: it runs in the writer's own thread.
        found = done.result(timeout=0)
        if found.rest is None:
            whole.set_result(dropped + found.dropped)
        else:
            _queue(database, found.rest, dropped + found.dropped, whole)

    database.run(lambda connection: prune_slice(connection, database.sealer, wanted)).add_done_callback(go_on)


def prune_slice(connection: Connection, sealer: Sealer, wanted: PruneRequest) -> PruneSlice:
    """Drops one slice of the rows, inside the caller's transaction."""
    head = lock_end(connection, sealer)
    end = head.seq if wanted.end is None else wanted.end
    by_number = 0 if wanted.keep is None else end - wanted.keep

    def is_dropped(row: Any) -> bool:
        return row.seq <= by_number or (wanted.before is not None and row.at < wanted.before)

    query = select(LOG.c.seq, LOG.c.at, LOG.c.hash).where(LOG.c.seq > head.pruned, LOG.c.seq <= end)
    rows = connection.execute(query.order_by(LOG.c.seq).limit(PRUNED_AT_ONCE)).all()
    # Times need not increase with `seq`: the slice ends at the first row that stays.
    going = list(takewhile(is_dropped, rows))
    if going:
        last = going[-1]
        unindex(connection, last.seq)
        connection.execute(delete(LOG).where(LOG.c.seq <= last.seq))
        keep_head(connection, sealer, replace(head, pruned=last.seq, pruned_hash=last.hash))
    is_over = len(going) < PRUNED_AT_ONCE
    return PruneSlice(dropped=len(going), rest=None if is_over else replace(wanted, end=end))
