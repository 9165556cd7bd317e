"""`Store`: a database in which runs, approvals and the log outlive the process."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from typing import Self, cast

from sqlalchemy import Connection, select

from toolwire.journal.database.location import LEASE_S, MEMORY, READERS, Location, location_of
from toolwire.journal.database.schema import require_store
from toolwire.journal.database.tables import RUNS
from toolwire.journal.growth.pruner import Pruner
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.approvals import RunStop, stop_run
from toolwire.journal.ledger.reopen import reopen_run
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.page import check_request_id, check_run_id
from toolwire.journal.queueing import wake_decided
from toolwire.journal.reading.selecting import check_caller, check_type
from toolwire.journal.retention import Retention, check_retention
from toolwire.journal.run import RunStart, RunStatus
from toolwire.journal.run_queue import RunQueue
from toolwire.journal.starting import is_on_record, start_run
from toolwire.journal.store_conversations import Conversations
from toolwire.journal.store_growth import StoreGrowth, keep_first_retention
from toolwire.journal.store_log import StoreLog
from toolwire.journal.store_queue import StoreQueue
from toolwire.journal.store_reading import StoreReading
from toolwire.journal.twins import async_twin
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused, decider_of
from toolwire.permission.policy import Rule
from toolwire.runtime.runtime import Runtime, default_runtime
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

_BEGINNING = threading.Lock()
"""Held while a thread that prunes is started, so that a database has one."""


class Store(StoreLog, StoreReading, StoreGrowth, StoreQueue, Conversations):
    """A database of runs, requests, decisions and the log. Usable from any thread and any event loop.

    Each method that waits for the database has a twin for callers that run an event loop. Its name has an `a` before
    it: `await store.asave_document(...)`, `await Store.aopen(url)`.

    Runs, their calls, requests and decisions are encrypted. The log is not. It holds the arguments and results of
    logged calls after redaction (`journal/log/redaction.py`). Anyone with access to the database can read them.

    Attributes:
        url: The URL of the store, without a password.
    """

    def __init__(self, location: Location, key: bytes | None = None, runtime: Runtime | None = None) -> None:
        if runtime is None:
            raise ConfigurationError("Store(...): write Store.open(url), such as Store.open('sqlite:///runs.db')")
        super().__init__()
        self.url = location.shown
        self._location = location
        self._key = key
        self._runtime = runtime
        self._retention: Retention | None = None
        self._memory: Database | None = None
        """The database in memory, which belongs to this object: closing the runtime must not empty it."""
        self._is_closed = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        key: bytes | None = None,
        prepared: bool = True,
        pool_size: int = READERS + 1,
        lease_s: float = LEASE_S,
        retention: Retention | None = None,
        create: bool = True,
        queue: RunQueue | None = None,
    ) -> Store:
        """Opens the store at `sqlite:///file.db` or `postgresql://user@host/database`.

        Creates or upgrades it if necessary. With `create=False` a store that is not there is an error. `memory:` is a
        new store in the memory of this process, for tests and notebooks: it ends with the `Store`, and a forked child
        cannot use it.

        `key` (32 bytes) encrypts the data of runs. None uses the environment variable `TOOLWIRE_KEY`, or else a key
        file. The key file is beside the database, or in the user's state folder for a server; a new store creates it.

        `prepared=False` is for a pooler that gives each transaction another connection, such as PgBouncer with
        `pool_mode = transaction`. The store then prepares no statements and leaves no settings at the server.

        `pool_size` is the number of connections that this process may have open, at least 2. All its stores of one URL
        share them.

        `lease_s` is the number of seconds without a renewal after which processes on other hosts take this process for
        dead and may continue its runs, 4 to 3,600. Leases are renewed four times in that time. A process on the same
        host is looked for instead. On PostgreSQL the server's clock counts, not that of a host.

        With a `retention`, a thread deletes what is older than it keeps: at once, and then on a clock, as long as this
        process has the store open. Of several processes with the store, one at a time does so. None keeps everything,
        or leaves it to them.

        With a `queue`, such as `toolwire.fleet.ProcrastinateQueue()`, workers are told of what this object submits and
        decides. Without one they find it when they next look at the store.

        Raises:
            ConfigurationError: The URL, the key, `pool_size`, `lease_s` or `retention` is invalid, or this process has
                the store open with other values of `prepared`, `pool_size`, `lease_s` and `retention`.
            StoreUnavailable: The store cannot be reached, is damaged, or was written with another key. With
                `create=False`: there is none.
            DecisionRefused: `schema_too_new`: a newer toolwire wrote it.
        """
        if key is not None and len(key) != 32:
            raise ConfigurationError("key: give 32 bytes, for example secrets.token_bytes(32)")
        if retention is not None:
            check_retention(retention)
        location = location_of(url, prepared=prepared, pool_size=pool_size, lease_s=lease_s)
        if not create:
            require_store(location)
        store = cls(location, key, default_runtime())
        if location.is_memory:
            store._memory = store._open()
        _refuse_other_settings(store._database, location, retention)
        # From here on, so that a refused opening prunes nothing.
        store._attach(retention, queue)
        store._database.handles.add(store)
        return store

    @classmethod
    async def aopen(
        cls,
        url: str,
        *,
        key: bytes | None = None,
        prepared: bool = True,
        pool_size: int = READERS + 1,
        lease_s: float = LEASE_S,
        retention: Retention | None = None,
        create: bool = True,
        queue: RunQueue | None = None,
    ) -> Store:
        """Works as `open`, and waits in a thread: it does not block the event loop."""
        return await asyncio.to_thread(
            cls.open,
            url,
            key=key,
            prepared=prepared,
            pool_size=pool_size,
            lease_s=lease_s,
            retention=retention,
            create=create,
            queue=queue,
        )

    def __repr__(self) -> str:
        return f"<Store {self.url!r}{' closed' if self._is_closed else ''}>"

    # -- runs -------------------------------------------------------------------------------------------------------

    def start(self, run: RunStart) -> Future[RunLedger]:
        """Opens a new run. Its ledger has read what its conversation read.

        The run is written together with its first record, and this process holds it from then on. A run that needs no
        record before it is at work uses `RunLedger.record_start`.

        The future raises `DecisionRefused`: `not_permitted` if the conversation is another principal's. The first
        record of the run raises that too, or `run_busy` if the id exists, or `conversation_busy` while another process
        works on the conversation, or `ConversationChanged` if another turn changed what the conversation has read.
        """
        return start_run(self._database, run)

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
            ledger = reopen_run(connection, database, row)
            return database.hold(ledger.run_id, ledger)

        return database.run(job, locks=(run_id,))

    def has_run(self, run_id: str) -> Future[bool]:
        """Returns whether a run is on record. An event loop may wait for the answer."""
        return self._database.read_soon(lambda connection: is_on_record(connection, run_id))

    def clock(self) -> float:
        """Returns the seconds since the epoch by which leases, requests and runs expire: by PostgreSQL's own clock."""
        return self._database.clock()

    @property
    def wire_key(self) -> bytes:
        """The key that signs the portable forms of this store's suspended runs."""
        return self._database.sealer.wire_key

    # -- approvals --------------------------------------------------------------------------------------------------

    def decide(self, request_id: str, decision: Decision) -> Decision:
        """Decides a request from any process and returns the recorded decision. Blocks until it is durable.

        Raises:
            DecisionRefused: `unknown_request`, `already_decided` (see its `decided`), `expired`, `approval_mismatch`,
                `not_permitted` or `invalid_edit`.
            ConfigurationError: `decision` is not a `Decision`, or `request_id` is not text.
        """
        check_request_id("decide", request_id)
        check_type("decide", decision, Decision, "request_id, Decision(verdict='approve')")
        database = self._database
        queue = self._queue

        def job(connection: Connection) -> Decision:
            now = database.clock()
            decided = approvals.decide(connection, database.sealer, request_id, decision, now)
            run = wake_decided(connection, request_id, now)
            if run is not None and queue is not None:
                queue.put(connection, run.run_id, conversation=run.conversation, priority=0)
            return decided

        return database.run(job, locks=(request_id,)).result()

    adecide = async_twin(decide)

    def stop(self, run_id: str, *, by: Decider | str, reason: str = "") -> RunStatus:
        """Stops a run from any process, and returns its status. Blocks until that is durable.

        A run that waits, or whose process died, is `stopped` at once: nobody can decide its requests any more, and
        resuming it runs nothing and gives the model `reason`. A run that a process works on stays `running` until that
        process makes its next record: then nothing more of it begins, its running calls are cancelled as by
        `Session.interrupt`, and it ends as stopped. In this process that happens at once.

        `by` is the author, or the name of the principal. The log has both.

        Raises:
            DecisionRefused: `unknown_run`, `run_ended`, or `bad_mac` if its record was changed in the database.
            ConfigurationError: `run_id`, `by` or `reason` has another type.
        """
        check_run_id("stop", run_id)
        author = decider_of(by, "stop")
        if not isinstance(cast("object", reason), str):
            raise ConfigurationError(f"stop(reason={reason!r:.80}): write text, reason='...'")
        database, stop = self._database, RunStop(by=author, reason=reason, at=self._database.clock())

        def job(connection: Connection) -> RunStatus:
            return stop_run(connection, database.sealer, run_id, stop)

        status = database.run(job, locks=(run_id,)).result()
        ledger = database.held.get(run_id)
        if ledger is not None:
            database.run(ledger.notice_stop).result()
        return status

    astop = async_twin(stop)

    def forget_rule(self, rule_id: str, *, by: Decider | str) -> None:
        """Removes a rule that a person chose to remember. Blocks until that is durable; the log has it, and `by`.

        `rule_id` is the `id` of a rule of `rules()`, or the id of the request with which it was remembered. Sessions
        that are made or resumed later do not have the rule. One that has it keeps it until it ends.

        Raises:
            DecisionRefused: `unknown_rule`.
            ConfigurationError: `by` has another type.
        """
        database, author = self._database, decider_of(by, "forget_rule")

        def job(connection: Connection) -> None:
            approvals.forget_rule(connection, database.sealer, rule_id, author, database.clock())

        database.run(job).result()

    aforget_rule = async_twin(forget_rule)

    def rules(self, run_id: str | None = None) -> list[Rule]:
        """Returns the rules that people chose to remember, oldest first; None selects all runs."""
        database = self._database
        return database.read(lambda connection: approvals.read_rules(connection, database.sealer, run_id))

    arules = async_twin(rules)

    def decisions_with_rules(
        self, *run_ids: str, caller: Caller | None = None
    ) -> list[tuple[ApprovalRequest, Decision]]:
        """Returns the decisions that carry a rule, each with its request, oldest first.

        They are those of these runs, or without any of all runs. `caller` selects those of these runs, and of other
        runs only those whose rule is for the workspace and for the principal and tenant of the caller. For rules of
        older stores that cannot be told, so they are all among them.

        A decision whose call has not started is left out: the rule takes effect together with that call, not in place
        of it.

        Raises:
            ConfigurationError: `caller` is not a `Caller`.
        """
        check_caller("decisions_with_rules", caller)
        database = self._database
        return database.read(
            lambda connection: approvals.decisions_with_rules(connection, database.sealer, run_ids, caller)
        )

    adecisions_with_rules = async_twin(decisions_with_rules)

    # -- lifecycle ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the store.

        The last open `Store` of this process also writes the queued work and closes the database.
        """
        if self._is_closed:
            return
        # First, so that no follower reads a closed store.
        self._end_following()
        self._is_closed = True
        if self._memory is not None:
            # In a forked child it is the parent's.
            if self._memory.owner.process_id == os.getpid():
                self._memory.close()
            return
        database = self._runtime.find(self._part)
        if isinstance(database, Database):
            database.handles.discard(self)
            if not database.handles:
                self._runtime.close_part(self._part)

    aclose = async_twin(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

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
        database = self._memory or self._runtime.own(self._part, self._open)
        if database is self._memory and database.owner.process_id != os.getpid():
            raise StoreUnavailable(
                f"the store {self.url} is in the memory of process {database.owner.process_id}, from which this one "
                f"was forked: write Store.open({MEMORY!r}) here, or open a file"
            )
        if self._retention is not None and database.pruner is None:
            self._begin_pruning(database, self._retention)
        return database

    def _attach(self, retention: Retention | None, queue: RunQueue | None) -> None:
        if queue is not None:
            queue.attach(self._location.url.render_as_string(hide_password=False))
        self._retention, self._queue = retention, queue

    def _begin_pruning(self, database: Database, retention: Retention) -> None:
        with _BEGINNING:
            if database.pruner is None and retention != Retention():
                keep_first_retention(database, retention)
                database.pruner = Pruner(database, retention)


def _refuse_other_settings(database: Database, location: Location, retention: Retention | None) -> None:
    """Refuses an opening with other settings than those with which this process has the database open.

    Raises:
        ConfigurationError: A setting differs.
    """
    found, pruner = database.location, cast("Pruner | None", database.pruner)
    if found != location:
        raise ConfigurationError(
            f"the store {location.shown} is open with prepared={found.prepared}, pool_size={found.pool_size}, "
            f"lease_s={found.lease_s:g} in this process: open it with these values, or pass the store that is open"
        )
    if pruner is not None and retention not in (None, pruner.retention):
        raise ConfigurationError(
            f"the store {location.shown} is open with {pruner.retention} in this process: open it with this one, or "
            "without one"
        )
