"""Leases: a run belongs to one process at a time. A process without the lease cannot write to the run.

A thread renews the leases of this process. The process that owns a run is checked for life before another takes over.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, case, delete, func, literal, or_, select, update

from toolwire.journal.database.driver import insert_new, run_many, run_statement
from toolwire.journal.database.gathering import find_part
from toolwire.journal.database.tables import IS_HELD, OWNERS, RUNS, STEPS
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.machine.system import process_start

RENEWALS = 4
"""Renewals in the time of a lease. Three may fail before another process takes over."""

FORGOTTEN_S = 86_400.0
"""Seconds after its lease for which the row of a dead process is kept: a day, far longer than any clock is wrong."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One opening of a store by one process."""

    host: str
    """The host with its boot id and its namespace of process ids."""
    process_id: int
    started: str
    """Start time of the process in kernel ticks, because process ids are reused."""
    opening: str
    """Random text that distinguishes two openings by the same process."""

    @classmethod
    def this(cls) -> Owner:
        """Returns a new owner for this process."""
        process_id = os.getpid()
        started = process_start(process_id) or ""
        return cls(host=this_host(), process_id=process_id, started=started, opening=secrets.token_hex(8))

    @classmethod
    def read(cls, text: str) -> Owner:
        """Parses the text that `str` returned."""
        host, process_id, started, opening = text.rsplit(" ", 3)
        return cls(host=host, process_id=int(process_id), started=started.strip("-"), opening=opening)

    def __str__(self) -> str:
        return f"{self.host} {self.process_id} {self.started or '-'} {self.opening}"

    def is_alive(self, *, renewed_until: float, now: float) -> bool:
        """True if the process may still be at work. For a process on another host only the lease tells."""
        if self.host != this_host():
            return now < renewed_until
        found = process_start(self.process_id)
        if found is None:
            return False
        # Without a start another process may have the number by now.
        return found == self.started if found and self.started else now < renewed_until


@cache
def this_host() -> str:
    """Identifies this machine since its boot, and this process's namespace of process ids.

    Two containers are two hosts.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        names = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        boot, names = "-", "-"
    return f"{socket.gethostname()} {boot} {names}"


def living_holder(owner: str, *, lease_until: float, alive_until: float | None, now: float) -> str:
    """Returns the process and the host of an owner that may still be at work, as "process 7 on host"; else ""."""
    holder = Owner.read(owner)
    is_alive = holder.is_alive(renewed_until=max(lease_until, alive_until or 0.0), now=now)
    return f"process {holder.process_id} on {holder.host.split()[0]}" if is_alive else ""


class LeaseLost(Exception):
    """This process does not hold the run any more. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lease:
    """The right to write one run, until another process takes the run over."""

    run_id: str
    owner: str
    number: int
    """Goes up with every owner of the run."""


_ADVANCE_REVISION = "UPDATE runs SET rev = rev + ?, updated_at = ? WHERE run_id = ? AND owner = ? AND lease = ?"


class NewLeases:
    """The leases that were made in the writer's transaction. They hold until its end, so that none is checked."""

    def __init__(self) -> None:
        self.leases = set[Lease]()

    def write(self, connection: Connection) -> None:
        """Does nothing: the leases are written."""


class LeaseCheck:
    """The record that precedes every other record of a run. It fails unless the lease still holds.

    It increments the run's revision. The process renews its leases by its row in `owners`.
    """

    rank = 0

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes one statement per run, however many of its records are in the transaction.

        Raises:
            LeaseLost: Another process holds one of the runs.
        """
        new = find_part(connection, NewLeases).leases
        times = Counter[Lease](row["lease"] for row in rows if row["lease"] not in new)
        if not times:
            return
        now = max(row["now"] for row in rows)
        values = [(more, now, lease.run_id, lease.owner, lease.number) for lease, more in times.items()]
        if run_many(connection, _ADVANCE_REVISION, values) != len(times):
            raise LeaseLost


LEASE_CHECK = LeaseCheck()


def check_lease(connection: Connection, lease: Lease, now: float) -> None:
    """Does the same for one run.

    Raises:
        LeaseLost: Another process holds the run.
    """
    LEASE_CHECK.write(connection, [{"lease": lease, "now": now}])


def take(connection: Connection, run_id: str, owner: Owner, now: float, *, lease_until: float, is_ours: bool) -> Lease:
    """Takes the lease of a run that no living process holds.

    `lease_until`: its end, unless it is renewed. `is_ours`: no ledger in this process holds the run any more.

    Raises:
        DecisionRefused: `unknown_run`, or `run_busy` if another process may still hold the run.
    """
    # The row stays locked until the end of the transaction. SQLite has only one writer anyway.
    columns = select(RUNS.c.owner, RUNS.c.lease, RUNS.c.lease_until, RUNS.c.taken_over)
    row = connection.execute(columns.where(RUNS.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    if row.owner and not (row.owner == str(owner) and is_ours):
        renewed = connection.execute(select(OWNERS.c.alive_until).where(OWNERS.c.owner == row.owner)).scalar()
        if holder := living_holder(row.owner, lease_until=row.lease_until, alive_until=renewed, now=now):
            raise DecisionRefused("run_busy", f"run {run_id!r} is in use by {holder}")
    lease = Lease(run_id=run_id, owner=str(owner), number=row.lease + 1)
    is_taken_over = row.owner not in ("", str(owner))
    times = {"lease_until": lease_until, "ready_at": lease_until, "taken_at": now, "updated_at": now}
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == run_id)
        .values(
            owner=lease.owner,
            lease=lease.number,
            rev=RUNS.c.rev + 1,
            status=case((RUNS.c.status == "queued", "running"), else_=RUNS.c.status),
            taken_over=case((has_progress(), 0), else_=RUNS.c.taken_over) + literal(int(is_taken_over)),
            **times,
        )
    )
    return lease


def has_progress() -> Any:
    """Returns the SQL condition for a run that has recorded a step since it was taken last."""
    since = func.coalesce(RUNS.c.taken_at, RUNS.c.created_at)
    of_run = (STEPS.c.run_id == RUNS.c.run_id) & or_(STEPS.c.started_at > since, STEPS.c.ended_at > since)
    return select(STEPS.c.key).where(of_run).correlate(RUNS).exists()


PARKED = (
    "run {run_id!r} is parked: process after process died over it. `toolwire runs requeue {run_id}` or "
    "Store.requeue({run_id!r}) puts it back"
)


def set_ready_at(connection: Connection, run_id: str, at: float | None) -> None:
    """Sets the time at which a worker is to look at a run that nobody holds; None: it need not."""
    connection.execute(update(RUNS).where(RUNS.c.run_id == run_id, RUNS.c.owner == "").values(ready_at=at))


def next_look(pending: Sequence[ApprovalRequest], now: float) -> float | None:
    """Returns when a suspended run is to be looked at: when its first request expires, or now if none waits."""
    if not pending:
        return now
    return min((request.expires_at for request in pending if request.expires_at), default=None)


def end_run(connection: Connection, lease: Lease, status: str, outcome: bytes | None, now: float) -> int:
    """Records that the run ended or waits, and releases it. Returns its revision. No worker is to look at it.

    Raises:
        LeaseLost: Another process holds the run.
    """
    held = (lease.run_id, lease.owner, lease.number)
    found = run_statement(connection, _END_RUN, status, outcome, now, *held).fetchall()
    if not found:
        raise LeaseLost
    return found[0][0]


_END_RUN = (
    "UPDATE runs SET status = ?, outcome = ?, updated_at = ?, owner = '', ready_at = NULL, rev = rev + 1"
    " WHERE run_id = ? AND owner = ? AND lease = ? RETURNING rev"
)


def give_up(connection: Connection, lease: Lease, now: float) -> None:
    """Releases the run for any process. Does nothing if another process already holds it."""
    connection.execute(
        update(RUNS)
        .where(RUNS.c.run_id == lease.run_id, RUNS.c.owner == lease.owner, RUNS.c.lease == lease.number)
        .values(owner="", ready_at=now)
    )


def leases_of(connection: Connection, owner: Owner) -> list[Lease]:
    """Returns the leases of the runs that the owner has by the database."""
    query = select(RUNS.c.run_id, RUNS.c.owner, RUNS.c.lease).where(RUNS.c.owner == str(owner), IS_HELD)
    return [Lease(run_id=row.run_id, owner=row.owner, number=row.lease) for row in connection.execute(query)]


def renew(connection: Connection, owner: Owner, now: float, *, lease_until: float) -> None:
    """Extends every lease of this process, by one row. Rows of processes that ended long ago are deleted."""
    changed = connection.execute(
        update(OWNERS).where(OWNERS.c.owner == str(owner)).values(alive_until=lease_until)
    ).rowcount
    if not changed:
        # A renewal on another connection may have been first.
        connection.execute(insert_new(connection, OWNERS).values(owner=str(owner), alive_until=lease_until))
        connection.execute(delete(OWNERS).where(OWNERS.c.alive_until < now - FORGOTTEN_S))


def leave(connection: Connection, owner: Owner, now: float) -> None:
    """Releases every lease of an owner that exits normally."""
    connection.execute(update(RUNS).where(RUNS.c.owner == str(owner), IS_HELD).values(owner="", ready_at=now))
    connection.execute(delete(OWNERS).where(OWNERS.c.owner == str(owner)))


RETRY_S = 1.0
"""Seconds before a failed renewal is tried again. That allows 45 attempts before a lease of 60 seconds ends."""

_LOG = logging.getLogger("toolwire.store")


class LeaseRenewal:
    """A thread that renews leases between `start` and `stop`.

    It uses its own connection and takes none of the writer's locks.
    """

    def __init__(self, renew: Callable[[], None], lease_s: float) -> None:
        self._renew = renew
        self._lease_s = lease_s
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread. The first run that is held starts it; later calls do nothing."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._go, name="toolwire-leases", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stops the thread and waits for a renewal that is in progress."""
        self._ended.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _go(self) -> None:
        pause_s = self._lease_s / RENEWALS
        while not self._ended.wait(pause_s):
            pause_s = self._lease_s / RENEWALS
            try:
                self._renew()
            except ToolwireError as error:
                text = "renewing the leases of this process failed, and is tried again in %g s: %s"
                _LOG.error(text, RETRY_S, error)
                pause_s = RETRY_S
