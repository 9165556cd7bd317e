"""Runs that wait for a person, by the call that they make. An equal call finds them, and one at a time continues each.

The key of a call says for whom it is made and what it calls. The store does not know how it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, exists, insert, or_, select, update

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.tables import OWNERS, REQUESTS, RUNS, WAITING_CALLS
from toolwire.journal.ledger.approvals import waits
from toolwire.journal.ledger.leases import living_holder

CANDIDATES = 100
"""Waiting runs of one key that are looked at, those with a decision first. More are equal calls that were sent side by
side: too many for a person."""

_DECIDED = ("approved", "denied", "answered", "stopped")
"""States of a request with a decision that its run has not used."""

_HAS_KEY = "SELECT 1 FROM waiting_calls WHERE key = ? LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A run that an equal call finds.

    Attributes:
        run_id: The id of the run.
        is_decided: True if the run can go on: a person has decided, or nothing of it waits for one.
    """

    run_id: str
    is_decided: bool


def lock_name(key: str) -> str:
    """Returns the name under which a key is locked."""
    return f"waiting call {key}"


def list_waiting(connection: Connection, key: str, now: float) -> list[WaitingCall]:
    """Returns the runs of a key that no living process continues, those with a decision first, then the oldest."""
    # Most calls have no earlier run, and cost this statement alone.
    if run_statement(connection, _HAS_KEY, key).fetchone() is None:
        return []
    of_run = REQUESTS.c.run_id == WAITING_CALLS.c.run_id
    has_decision = exists().where(of_run, REQUESTS.c.state.in_(_DECIDED))
    is_decided = or_(has_decision, ~exists().where(of_run, waits(now))).label("is_decided")
    query = _ROWS.add_columns(is_decided).where(WAITING_CALLS.c.key == key, WAITING_CALLS.c.expires_at >= now)
    query = query.order_by(is_decided.desc(), RUNS.c.created_at, RUNS.c.run_id).limit(CANDIDATES)
    return [
        WaitingCall(run_id=row.run_id, is_decided=bool(row.is_decided))
        for row in connection.execute(query)
        if not _is_claimed(row, now)
    ]


def claim_call(connection: Connection, key: str, run_id: str, owner: str, now: float, *, claimed_until: float) -> bool:
    """Lets one call continue a run. False if another one does, or the run has ended.

    `claimed_until` is the end of the claim, unless the lease of its owner is renewed.
    """
    row = connection.execute(_ROWS.where(WAITING_CALLS.c.run_id == run_id)).one_or_none()
    if row is None or _is_claimed(row, now):
        return False
    # Between the two statements another process may have claimed it, or forgotten it.
    is_as_seen = (WAITING_CALLS.c.key == key, WAITING_CALLS.c.claimed_by == row.claimed_by)
    claimed = update(WAITING_CALLS).where(WAITING_CALLS.c.run_id == run_id, *is_as_seen)
    return connection.execute(claimed.values(claimed_by=owner, claimed_until=claimed_until)).rowcount == 1


def keep_call(connection: Connection, key: str, run_id: str, expires_at: float) -> None:
    """Keeps a run for the next equal call until that time, in seconds since the epoch, and ends the claim of it."""
    values = {"key": key, "expires_at": expires_at, "claimed_by": ""}
    if not connection.execute(update(WAITING_CALLS).where(WAITING_CALLS.c.run_id == run_id).values(values)).rowcount:
        connection.execute(insert(WAITING_CALLS).values(values | {"run_id": run_id}))


def free_call(connection: Connection, run_id: str) -> None:
    """Ends the claim of a run that was not continued."""
    connection.execute(update(WAITING_CALLS).where(WAITING_CALLS.c.run_id == run_id).values(claimed_by=""))


def forget_call(connection: Connection, run_id: str) -> None:
    """Forgets a run that has ended: an equal call is a new one."""
    connection.execute(delete(WAITING_CALLS).where(WAITING_CALLS.c.run_id == run_id))


def _is_claimed(row: Any, now: float) -> bool:
    if not row.claimed_by:
        return False
    return bool(living_holder(row.claimed_by, lease_until=row.claimed_until, alive_until=row.alive_until, now=now))


_ROWS = (
    select(WAITING_CALLS.c.run_id, WAITING_CALLS.c.claimed_by, WAITING_CALLS.c.claimed_until, OWNERS.c.alive_until)
    .select_from(
        WAITING_CALLS.join(RUNS, RUNS.c.run_id == WAITING_CALLS.c.run_id).outerjoin(
            OWNERS, OWNERS.c.owner == WAITING_CALLS.c.claimed_by
        )
    )
    .where(RUNS.c.outcome.is_(None), RUNS.c.divergence.is_(None))
)
"""Selects kept runs that have not ended, with their claims."""
