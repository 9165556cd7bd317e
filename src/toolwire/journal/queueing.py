"""Makes runs due for workers again: after a decision, or when a person puts a parked one back."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, exists, select, update

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import REQUESTS, RUNS
from toolwire.journal.ledger.approvals import waits
from toolwire.journal.ledger.forms import read_form, read_run
from toolwire.journal.ledger.leases import has_progress, set_ready_at
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import RunStart
from toolwire.permission.approval import Decider, DecisionRefused

TAKEOVERS = 3
"""Times that a run is taken over without a step in between before it is parked.

One death is a deployment, two may be a bad host. A run over which a fourth process would die is what kills them.
"""


def wake_decided(connection: Connection, request_id: str, now: float) -> Any:
    """Makes the run of a request due if none of its requests waits, or a person stopped it. Returns its row then."""
    of = select(REQUESTS.c.run_id).where(REQUESTS.c.request_id == request_id).scalar_subquery()
    still_waits = exists().where(REQUESTS.c.run_id == of, waits(now))
    is_stopped = exists().where(REQUESTS.c.run_id == of, REQUESTS.c.state == "stopped")
    is_free = (RUNS.c.owner == "") & (RUNS.c.status == "suspended")
    changed = update(RUNS).where(RUNS.c.run_id == of, is_free, ~still_waits | is_stopped).values(ready_at=now)
    return connection.execute(changed.returning(RUNS.c.run_id, RUNS.c.conversation)).one_or_none()


def park_stuck(connection: Connection, sealer: Sealer, run_id: str, now: float) -> bool:
    """Parks a run that was taken over too often without a step in between. Returns whether it is parked."""
    row = _lock_run(connection, run_id)
    if row.status != "parked":
        stuck = (RUNS.c.run_id == run_id) & (RUNS.c.taken_over >= TAKEOVERS) & ~has_progress()
        values = {"status": "parked", "owner": "", "lease": row.lease + 1, "ready_at": None, "updated_at": now}
        if not connection.execute(update(RUNS).where(stuck).values(**values, rev=RUNS.c.rev + 1)).rowcount:
            return False
        start = _read_start(sealer, row)
        append(connection, sealer, [run_event(start, "parked", lease=row.lease + 1, taken_over=row.taken_over)])
    return True


def requeue_run(connection: Connection, sealer: Sealer, run_id: str, by: Decider, now: float) -> RunStart:
    """Lets a parked run go on, and makes any other open run due now. Returns its start.

    Raises:
        DecisionRefused: `unknown_run`, or `run_ended`.
    """
    row = _lock_run(connection, run_id)
    if row.status in ("finished", "stopped", "diverged"):
        raise DecisionRefused("run_ended", f"run {run_id!r} has ended: it is {row.status}")
    start = _read_start(sealer, row)
    if row.status == "parked":
        values = {"status": "running", "lease": row.lease + 1, "taken_over": 0, "updated_at": now}
        connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(**values, rev=RUNS.c.rev + 1))
        append(connection, sealer, [run_event(start, "requeued", lease=row.lease + 1, by=by)])
    set_ready_at(connection, run_id, now)
    return start


def _lock_run(connection: Connection, run_id: str) -> Any:
    columns = (RUNS.c.run_id, RUNS.c.status, RUNS.c.lease, RUNS.c.taken_over, RUNS.c.start)
    row = connection.execute(select(*columns).where(RUNS.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    return row


def _read_start(sealer: Sealer, row: Any) -> RunStart:
    return read_form(sealer.open(row.start, "runs", row.run_id, "start"), read_run)
