"""`Store`: a database in which runs, approvals and the log outlive the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from toolwire.journal.database.database import Database
from toolwire.journal.database.location import Location, location_of
from toolwire.journal.database.tables import RUNS
from toolwire.journal.database.work import Work
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.forms import run_form, written
from toolwire.journal.ledger.history import ReplayHistory
from toolwire.journal.ledger.leases import LEASE_S, Lease
from toolwire.journal.ledger.reopen import info_of, reopened
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.log import rows as log_rows
from toolwire.journal.log.chain import LogCheck, append, verify
from toolwire.journal.log.compare import missing
from toolwire.journal.log.events import run_event
from toolwire.journal.log.pruning import Prune, pruned
from toolwire.journal.log.rows import LogFilter, LogRow
from toolwire.journal.run import RunInfo, RunStart, RunStatus
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.policy import Rule
from toolwire.runtime.runtime import Runtime, default_runtime
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

RUNS_LISTED = 100
"""Default number of runs in a list: more than a person looks through."""

FOLLOW_S = 0.25
"""Seconds between two queries for new rows, of this or another process. A person does not notice the delay."""

FOLLOWED_AT_ONCE = 500
"""Rows read per query when a log is followed."""


class Store:
    """A database of runs, requests, decisions and the log. Usable from any thread and any event loop.

    Runs, their calls, requests and decisions are encrypted. The log is not. It holds the arguments and results of
    logged calls after redaction (`journal/log/redaction.py`). Anyone with access to the database can read them.

    Attributes:
        url: The URL of the store, without a password.
    """

    def __init__(self, location: Location, key: bytes | None, runtime: Runtime) -> None:
        self.url = location.shown
        self._location = location
        self._key = key
        self._runtime = runtime
        self._is_closed = False
        self._closing = threading.Event()

    @classmethod
    def open(cls, url: str, *, key: bytes | None = None) -> Store:
        """Opens the store at `sqlite:///file.db` or `postgresql://user@host/database`.

        Creates or upgrades it if necessary.

        `key` (32 bytes) encrypts the data of runs. None uses the environment variable `TOOLWIRE_KEY`, or else a key
        file. The key file is beside the database, or in the user's state folder for a server; a new store creates it.

        Raises:
            ConfigurationError: The URL or the key is invalid.
            StoreUnavailable: The store cannot be reached, is damaged, or was written with another key.
            DecisionRefused: `schema_too_new`: a newer toolwire wrote it.
        """
        if key is not None and len(key) != 32:
            raise ConfigurationError("key: give 32 bytes, for example secrets.token_bytes(32)")
        store = cls(location_of(url), key, default_runtime())
        store._database.handles.add(store)
        return store

    def __repr__(self) -> str:
        return f"<Store {self.url!r}{' closed' if self._is_closed else ''}>"

    # -- runs -------------------------------------------------------------------------------------------------------

    def start(self, run: RunStart) -> Future[RunLedger]:
        """Records a new run; this process holds its lease.

        The future raises `DecisionRefused` (`run_busy`) if the id exists.
        """
        database, now = self._database, time.time()
        lease = Lease(run_id=run.run_id, owner=str(database.owner), number=1)
        sealed = database.sealer.seal(written(run_form(run)), "runs", run.run_id, "start")

        def job(connection: Connection) -> RunLedger:
            connection.execute(
                insert(RUNS).values(
                    run_id=run.run_id,
                    status="running",
                    rev=1,
                    created_at=run.created_at or now,
                    updated_at=now,
                    expires_at=run.expires_at,
                    owner=lease.owner,
                    lease=lease.number,
                    lease_until=now + LEASE_S,
                    start=sealed,
                )
            )
            append(connection, database.sealer, [run_event(run.run_id, "started", caller=run.caller)])
            return database.hold(
                RunLedger(
                    database,
                    run,
                    lease,
                    status="running",
                    rev=1,
                    history=ReplayHistory(size=len(sealed)),
                )
            )

        def refused(_: Connection, error: Exception) -> RunLedger:
            if isinstance(error, IntegrityError):
                raise DecisionRefused("run_busy", f"run {run.run_id!r} was started before") from error
            raise error

        return database.run(job, refused)

    def reopen(self, run_id: str) -> Future[RunLedger]:
        """Reopens a run as it stands, with the lease to continue it.

        A finished or diverged run is returned too, without a lease; nothing of it runs again. The future raises
        `DecisionRefused`: `unknown_run`, `run_busy` (a process that may be alive holds it), `expired`, `bad_mac` or
        `schema_too_new`.
        """
        database = self._database

        def job(connection: Connection) -> RunLedger:
            row = connection.execute(select(RUNS).where(RUNS.c.run_id == run_id)).one_or_none()
            if row is None:
                raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
            return database.hold(reopened(connection, database, row))

        return database.run(job)

    def runs(
        self, *, status: RunStatus | None = None, since: float | None = None, limit: int = RUNS_LISTED
    ) -> list[RunInfo]:
        """Returns runs, newest first.

        `since` selects runs created at that time or later, in seconds since the epoch.
        """
        database, now = self._database, time.time()
        query = select(RUNS).order_by(RUNS.c.created_at.desc(), RUNS.c.run_id.desc()).limit(limit)
        if status is not None:
            query = query.where(RUNS.c.status == status)
        if since is not None:
            query = query.where(RUNS.c.created_at >= since)
        return database.read(
            lambda connection: [info_of(connection, database, row, now) for row in connection.execute(query).all()]
        )

    def run(self, run_id: str) -> RunInfo:
        """Returns one run.

        Raises:
            DecisionRefused: `unknown_run`.
        """
        database, now = self._database, time.time()
        query = select(RUNS).where(RUNS.c.run_id == run_id)

        def read_one(connection: Connection) -> RunInfo:
            row = connection.execute(query).one_or_none()
            if row is None:
                raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
            return info_of(connection, database, row, now)

        return database.read(read_one)

    @property
    def wire_key(self) -> bytes:
        """The key that signs the portable forms of this store's suspended runs."""
        return self._database.sealer.wire_key

    # -- approvals --------------------------------------------------------------------------------------------------

    def pending(self, run_id: str | None = None) -> list[ApprovalRequest]:
        """Returns the requests that wait for a person, oldest first; None selects all runs."""
        database = self._database
        return database.read(lambda connection: approvals.pending(connection, database.sealer, run_id, time.time()))

    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]:
        """Returns a request, with the decision that counts if it has one.

        Raises:
            DecisionRefused: `unknown_request`.
        """
        database = self._database
        found = database.read(
            lambda connection: approvals.request_and_decision(connection, database.sealer, request_id)
        )
        if found is None:
            raise DecisionRefused("unknown_request", f"there is no request {request_id!r}", request_id=request_id)
        return found

    def decide(self, request_id: str, decision: Decision) -> Decision:
        """Decides a request from any process and returns the recorded decision. Blocks until it is durable.

        Raises:
            DecisionRefused: `unknown_request`, `already_decided` (see its `decided`), `expired`, `approval_mismatch`,
                `not_permitted` or `invalid_edit`.
        """
        database = self._database
        return database.run(
            lambda connection: approvals.decide(connection, database.sealer, request_id, decision)
        ).result()

    def rules(self, run_id: str | None = None) -> list[Rule]:
        """Returns the rules that people chose to remember, oldest first; None selects all runs."""
        database = self._database
        return database.read(lambda connection: approvals.remembered(connection, database.sealer, run_id))

    def remembered(self, run_id: str | None = None) -> list[tuple[ApprovalRequest, Decision]]:
        """Returns the decisions that carry a rule, each with its request, oldest first; None selects all runs.

        A decision whose call has not started is left out: the rule takes effect together with that call, not in place
        of it.
        """
        database = self._database
        return database.read(lambda connection: approvals.decided_to_remember(connection, database.sealer, run_id))

    # -- the log ----------------------------------------------------------------------------------------------------

    def log(
        self, wanted: LogFilter | None = None, *, limit: int | None = None, newest_first: bool = False
    ) -> list[LogRow]:
        """Returns the rows of the log that match. Events that this process recorded before are included."""
        database = self._database
        database.settled()
        return database.read(
            lambda connection: log_rows.rows(connection, wanted or LogFilter(), limit=limit, newest_first=newest_first)
        )

    def log_length(self, wanted: LogFilter | None = None) -> int:
        """Returns the number of rows that match."""
        database = self._database
        database.settled()
        return database.read(lambda connection: log_rows.count(connection, wanted or LogFilter()))

    def follow(self, after: int = 0) -> Iterator[LogRow]:
        """Yields the rows after `after` in order, then new rows as they come, until the store is closed."""
        while not self._closing.is_set():
            found = self._database.read(
                lambda connection, after=after: log_rows.rows(
                    connection, LogFilter(after=after), limit=FOLLOWED_AT_ONCE
                )
            )
            for row in found:
                yield row
                after = row.seq
            if not found:
                self._closing.wait(FOLLOW_S)

    def verify(self) -> LogCheck:
        """Checks the whole log and reports the first row that was changed, moved or removed.

        It also reports runs and steps that the log mentions and the store no longer has. It cannot detect that the
        whole database was restored to an earlier state.
        """
        database = self._database
        database.settled()

        def check(connection: Connection) -> LogCheck:
            return replace(verify(connection, database.sealer), missing=missing(connection))

        return database.read(check, is_one_state=True)

    def prune(self, *, before: float | None = None, keep: int | None = None) -> int:
        """Drops the oldest rows of the log and returns their number. The rest of the log can still be verified.

        `before` drops rows older than that time, in seconds since the epoch. `keep` drops all but the last `keep` rows.
        Other records are written between the slices of `PRUNED_AT_ONCE` rows. After a failure, earlier slices stay
        pruned.
        """
        return self.prune_later(before=before, keep=keep).result()

    def prune_later(self, *, before: float | None = None, keep: int | None = None) -> Future[int]:
        """Does the same without blocking; the future resolves to the number of rows."""
        return pruned(self._database, Prune(before=before, keep=keep))

    def tell(self, event: Mapping[str, Any]) -> None:
        """Queues an event (`journal/log/events.py`) for the end of the log.

        Blocks only while the writer's queue is full.
        """
        database = self._database
        database.writer.wait_for_room()
        database.put(Work(future=None, records=[(database.log, event)]))

    # -- lifecycle ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the store.

        The last open `Store` of this process also writes the queued work and closes the database.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._closing.set()
        database = self._runtime.find(self._part)
        if isinstance(database, Database):
            database.handles.discard(self)
            if not database.handles:
                self._runtime.close_part(self._part)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _part(self) -> str:
        return f"store {self._location.url.render_as_string(hide_password=False)}"

    def _open(self) -> Database:
        if self._runtime.has_ended:
            raise StoreUnavailable(f"the store {self.url} was closed: the interpreter is ending")
        return Database(self._location, self._key)

    @property
    def _database(self) -> Database:
        """Looked up on each use: a forked child has its own database, and a runtime that was closed makes a new one."""
        if self._is_closed:
            raise StoreUnavailable(f"the store {self.url} was closed")
        return self._runtime.own(self._part, self._open)
