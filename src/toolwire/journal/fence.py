"""Leases: a run belongs to one process at a time, and what another one wrote in its name would not count."""

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
    """The run belongs to somebody else by now: nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lease:
    """The right to write one run, until somebody else has it."""

    run_id: str
    owner: str
    number: int
    """Counts up with every owner of the run."""


_TOUCH = "UPDATE runs SET rev = rev + ?, updated_at = ?, lease_until = ? WHERE run_id = ? AND owner = ? AND lease = ?"


class Touch:
    """The record that comes before every other of a run, if its lease still holds.

    It counts the revision up and renews the lease.
    """

    rank = 0

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """One statement a run, however many of its records are in the transaction.

        Raises:
            LeaseLost: one of the runs belongs to somebody else.
        """
        times = Counter[Lease](row["lease"] for row in rows)
        now = max(row["now"] for row in rows)
        until = now + LEASE_S
        values = [(more, now, until, lease.run_id, lease.owner, lease.number) for lease, more in times.items()]
        if run_many(connection, _TOUCH, values) != len(times):
            raise LeaseLost


TOUCH = Touch()


def touch(connection: Connection, lease: Lease, now: float) -> None:
    """The same, for one run.

    Raises:
        LeaseLost: it belongs to somebody else.
    """
    TOUCH.write(connection, [{"lease": lease, "now": now}])


def take(connection: Connection, run_id: str, owner: Owner, now: float, *, is_ours: bool) -> Lease:
    """The lease of a run that nobody else may be working at. `is_ours`: who has it in this process has left it.

    Raises:
        DecisionRefused: `unknown_run`, or `run_busy`.
    """
    # Locked until the end of the transaction; SQLite has but one writer anyway.
    columns = select(RUNS.c.owner, RUNS.c.lease, RUNS.c.lease_until)
    row = connection.execute(columns.where(RUNS.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    if row.owner and not (row.owner == str(owner) and is_ours):
        holder = Owner.read(row.owner)
        if holder.is_alive(renewed_until=row.lease_until, now=now):
            raise DecisionRefused(
                "run_busy",
                f"run {run_id!r} is being worked at by process {holder.process_id} on {holder.host.split()[0]}",
            )
    lease = Lease(run_id=run_id, owner=str(owner), number=row.lease + 1)
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == run_id)
        .values(owner=lease.owner, lease=lease.number, lease_until=now + LEASE_S, rev=RUNS.c.rev + 1, updated_at=now)
    )
    return lease


def give_up(connection: Connection, lease: Lease) -> None:
    """Lets anybody take the run; nothing when it is somebody else's already."""
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == lease.run_id, RUNS.c.owner == lease.owner, RUNS.c.lease == lease.number)
        .values(owner="", lease_until=0.0)
    )


def renew(connection: Connection, owner: Owner, now: float) -> None:
    """Says that this process is still there."""
    connection.execute(update(RUNS).where(RUNS.c.owner == str(owner)).values(lease_until=now + LEASE_S))


def leave(connection: Connection, owner: Owner) -> None:
    """Gives up every lease of an owner that ends in good order."""
    connection.execute(update(RUNS).where(RUNS.c.owner == str(owner)).values(owner="", lease_until=0.0))
