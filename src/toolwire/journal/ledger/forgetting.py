"""Deletes runs that ended, with all their records, and finds those that are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, insert, select, tuple_

from toolwire.journal.database.locks import KEPT, lock_in_order
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import (
    DECISIONS,
    FORGOTTEN,
    KEPT_RESULTS,
    NOTES,
    OWNERS,
    REQUESTS,
    RULES,
    RUNS,
    STEPS,
    VARIABLES,
)
from toolwire.journal.ledger.forms import read_form, read_run
from toolwire.journal.ledger.leases import living_holder
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import KEYED, RunStart

ENDED = ("finished", "stopped", "diverged")

WITHOUT_RULES = ~exists().where(RULES.c.run_id == RUNS.c.run_id)
"""The condition of runs in which no person chose to remember a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run that ended before some time."""

    run_id: str
    created_at: float
    bytes: int
    """Bytes of its calls on record."""
    is_held: bool
    """True if a process still works on it: one that diverged, until the other calls of its reply have ended."""


def find_ended(
    connection: Connection, before: float, now: float, *, after: EndedRun | None, limit: int, has_results: bool = False
) -> list[EndedRun]:
    """Returns the next runs that ended before that time, the oldest first.

    With `has_results` they are those whose results are still whole. Without it, runs with a remembered rule are left
    out: they are never forgotten.
    """
    wanted = RUNS.c.has_results == 1 if has_results else WITHOUT_RULES
    size = func.sum(func.coalesce(func.length(STEPS.c.begun), 0) + func.coalesce(func.length(STEPS.c.ended), 0))
    bytes_of = select(func.coalesce(size, 0)).where(STEPS.c.run_id == RUNS.c.run_id).correlate(RUNS).scalar_subquery()
    query = _select_ended(RUNS.c.created_at, bytes_of.label("bytes"), before=before).where(wanted)
    if after is not None:
        query = query.where(tuple_(RUNS.c.created_at, RUNS.c.run_id) > tuple_(after.created_at, after.run_id))
    rows = connection.execute(query.order_by(RUNS.c.created_at, RUNS.c.run_id).limit(limit))
    return [
        EndedRun(run_id=row.run_id, created_at=row.created_at, bytes=row.bytes, is_held=_is_held(row, now))
        for row in rows
    ]


def lock_ended(connection: Connection, run_ids: Sequence[str], before: float, now: float) -> list[Any]:
    """Locks those of the runs that ended before that time and that no process holds, and returns their rows."""
    query = _select_ended(before=before).where(RUNS.c.run_id.in_(run_ids)).with_for_update(of=RUNS)
    return [row for row in connection.execute(query) if not _is_held(row, now)]


def read_starts(connection: Connection, sealer: Sealer, run_ids: Sequence[str]) -> dict[str, RunStart]:
    """Returns the starts of these runs, by run id. They never change.

    Raises:
        DecisionRefused: As `read_form`.
    """
    rows = connection.execute(select(RUNS.c.run_id, RUNS.c.start).where(RUNS.c.run_id.in_(run_ids)))
    return {row.run_id: read_form(sealer.open(row.start, "runs", row.run_id, "start"), read_run) for row in rows}


def forget(
    connection: Connection, sealer: Sealer, starts: Mapping[str, RunStart], before: float, now: float
) -> list[str]:
    """Deletes those of the runs that ended before that time, and returns their ids.

    The log says which runs were forgotten, so that `verify` tells them from runs that are missing. A run in which a
    person chose to remember a rule is kept, because the rule stays in force.
    """
    # As every transaction that drops long results, so that two never wait for each other.
    lock_in_order(connection, [KEPT])
    remembered = set(connection.execute(select(RULES.c.run_id).where(RULES.c.run_id.in_(starts))).scalars())
    due = lock_ended(connection, list(starts), before, now)
    ids = [row.run_id for row in due if row.run_id not in remembered]
    if not ids:
        return []
    asked = select(REQUESTS.c.request_id).where(REQUESTS.c.run_id.in_(ids))
    connection.execute(delete(DECISIONS).where(DECISIONS.c.request_id.in_(asked)))
    for table in (REQUESTS, NOTES, STEPS, KEPT_RESULTS, VARIABLES, RUNS):
        connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    if keyed := [{"run_id": run_id} for run_id in ids if run_id.startswith(KEYED)]:
        connection.execute(insert(FORGOTTEN), keyed)
    append(connection, sealer, [run_event(starts[run_id], "forgotten") for run_id in ids])
    return ids


def _select_ended(*columns: Any, before: float) -> Select[*tuple[Any, ...]]:
    held = (RUNS.c.owner, RUNS.c.lease_until, OWNERS.c.alive_until)
    query = select(RUNS.c.run_id, *columns, *held).select_from(RUNS.outerjoin(OWNERS, OWNERS.c.owner == RUNS.c.owner))
    # By the time of the start first, which has an index.
    return query.where(RUNS.c.created_at < before, RUNS.c.status.in_(ENDED), RUNS.c.updated_at < before)


def _is_held(row: Any, now: float) -> bool:
    owner: str = row.owner
    return bool(owner and living_holder(owner, lease_until=row.lease_until, alive_until=row.alive_until, now=now))
