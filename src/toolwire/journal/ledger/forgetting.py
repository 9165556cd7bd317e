"""Deletes runs that ended, with all their records, in slices. Each slice is its own transaction."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import DECISIONS, KEPT_RESULTS, NOTES, REQUESTS, RULES, RUNS, STEPS, VARIABLES
from toolwire.journal.ledger.forms import read_form, read_run
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event

FORGOTTEN_AT_ONCE = 100
"""Runs deleted per transaction: some milliseconds, so that other records are written in between."""

ENDED = ("finished", "stopped", "diverged")


def forget(connection: Connection, sealer: Sealer, before: float) -> int:
    """Deletes one slice of the runs that ended before that time, and returns their number.

    The log says which runs were forgotten, so that `verify` tells them from runs that are missing. A run in which a
    person chose to remember a rule is kept, because the rule stays in force.
    """
    ended = select(RUNS.c.run_id, RUNS.c.start).where(
        RUNS.c.status.in_(ENDED),
        RUNS.c.updated_at < before,
        ~exists().where(RULES.c.run_id == RUNS.c.run_id),
    )
    rows = connection.execute(ended.order_by(RUNS.c.created_at).limit(FORGOTTEN_AT_ONCE).with_for_update()).all()
    if not rows:
        return 0
    ids = [row.run_id for row in rows]
    starts = [read_form(sealer.open(row.start, "runs", row.run_id, "start"), read_run) for row in rows]
    asked = select(REQUESTS.c.request_id).where(REQUESTS.c.run_id.in_(ids))
    connection.execute(delete(DECISIONS).where(DECISIONS.c.request_id.in_(asked)))
    for table in (REQUESTS, NOTES, STEPS, KEPT_RESULTS, VARIABLES, RUNS):
        connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    append(connection, sealer, [run_event(start, "forgotten") for start in starts])
    return len(rows)
