"""Leases: a run belongs to one process at a time. A process without the lease cannot write to the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from toolwire.journal.driver import run_many
from toolwire.journal.owner import LEASE_S, Owner
from toolwire.journal.tables import RUNS
from toolwire.permission.approval import DecisionRefused


class LeaseLost(Exception):
    """This process does not hold the run any more. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lease:
    """The right to write one run, until another process takes the run over."""

    run_id: str
    owner: str
    number: int
    """Goes up with every owner of the run."""


_TOUCH = "UPDATE runs SET rev = rev + ?, updated_at = ?, lease_until = ? WHERE run_id = ? AND owner = ? AND lease = ?"


class Touch:
    """The record that precedes every other record of a run. It fails unless the lease still holds.

    It increments the run's revision and renews the lease.
    """

    rank = 0

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes one statement per run, however many of its records are in the transaction.

        Raises:
            LeaseLost: Another process holds one of the runs.
        """
        times = Counter[Lease](row["lease"] for row in rows)
        now = max(row["now"] for row in rows)
        until = now + LEASE_S
        values = [(more, now, until, lease.run_id, lease.owner, lease.number) for lease, more in times.items()]
        if run_many(connection, _TOUCH, values) != len(times):
            raise LeaseLost


TOUCH = Touch()


def touch(connection: Connection, lease: Lease, now: float) -> None:
    """Does the same for one run.

    Raises:
        LeaseLost: Another process holds the run.
    """
    TOUCH.write(connection, [{"lease": lease, "now": now}])


def take(connection: Connection, run_id: str, owner: Owner, now: float, *, is_ours: bool) -> Lease:
    """Takes the lease of a run that no living process holds.

    `is_ours`: no ledger in this process holds the run any more.

    Raises:
        DecisionRefused: `unknown_run`, or `run_busy` if another process may still hold the run.
    """
    # The row stays locked until the end of the transaction. SQLite has only one writer anyway.
    columns = select(RUNS.c.owner, RUNS.c.lease, RUNS.c.lease_until)
    row = connection.execute(columns.where(RUNS.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    if row.owner and not (row.owner == str(owner) and is_ours):
        holder = Owner.read(row.owner)
        if holder.is_alive(renewed_until=row.lease_until, now=now):
            raise DecisionRefused(
                "run_busy",
                f"run {run_id!r} is in use by process {holder.process_id} on {holder.host.split()[0]}",
            )
    lease = Lease(run_id=run_id, owner=str(owner), number=row.lease + 1)
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == run_id)
        .values(owner=lease.owner, lease=lease.number, lease_until=now + LEASE_S, rev=RUNS.c.rev + 1, updated_at=now)
    )
    return lease


def give_up(connection: Connection, lease: Lease) -> None:
    """Releases the run for any process. Does nothing if another process already holds it."""
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == lease.run_id, RUNS.c.owner == lease.owner, RUNS.c.lease == lease.number)
        .values(owner="", lease_until=0.0)
    )


def renew(connection: Connection, owner: Owner, now: float) -> None:
    """Extends every lease of this process."""
    connection.execute(update(RUNS).where(RUNS.c.owner == str(owner)).values(lease_until=now + LEASE_S))


def leave(connection: Connection, owner: Owner) -> None:
    """Releases every lease of an owner that exits normally."""
    connection.execute(update(RUNS).where(RUNS.c.owner == str(owner)).values(owner="", lease_until=0.0))
