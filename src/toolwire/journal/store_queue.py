"""What processes share through a store: runs that workers take, and counts of calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeVar

from sqlalchemy import Connection, insert

from toolwire.journal.claims import waiting_calls
from toolwire.journal.claims.waiting_calls import WaitingCall
from toolwire.journal.database.run_news import send_news
from toolwire.journal.database.tables import RUNS
from toolwire.journal.ledger.conversations import join_conversation, lock_conversation, whose
from toolwire.journal.ledger.forms import encode_form, run_form, tools_text
from toolwire.journal.ledger.leases import set_ready_at
from toolwire.journal.ledger.reopen import look_at_suspended
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.page import check_limit, check_run_id
from toolwire.journal.queueing import park_stuck, requeue_run
from toolwire.journal.rates import lock_name, take_place, write_nothing
from toolwire.journal.reading.run_list import list_ready
from toolwire.journal.run import RunInfo, RunStart, SuspendedRun
from toolwire.journal.run_queue import RunQueue
from toolwire.journal.twins import async_twin
from toolwire.permission.approval import Decider, decider_of

T = TypeVar("T")

READY_LISTED = 100
"""Default number of due runs in a list: more than one process begins at once."""


class StoreQueue(ABC):
    """The part of a `Store` by which many processes work together."""

    _queue: RunQueue | None = None

    @property
    @abstractmethod
    def _database(self) -> Database: ...

    def submit(self, run: RunStart, *, priority: int = 0) -> Future[None]:
        """Records a run that nobody has begun, together with its job if the store has a queue. Nothing runs here.

        The future raises `DecisionRefused` (`not_permitted`) if the conversation is another principal's.
        """
        database, sealer, queue = self._database, self._database.sealer, self._queue
        # Sealed in this thread, since a reply may be large.
        sealed = sealer.seal(encode_form(run_form(run)), "runs", run.run_id, "start")

        def write(connection: Connection) -> None:
            now = database.clock()
            if run.conversation:
                state = lock_conversation(connection, sealer, run.conversation, run.caller, now)
                join_conversation(connection, sealer, run, state, now)
            values = {"run_id": run.run_id, "status": "queued", "rev": 1, "expires_at": run.expires_at}
            times = {"created_at": run.created_at or now, "updated_at": now, "lease_until": now, "ready_at": now}
            values |= {"owner": "", "lease": 0, "start": sealed, "tools": tools_text(run.tools), **whose(run), **times}
            connection.execute(insert(RUNS).values(values))
            append(connection, sealer, [run_event(run, "queued", caller=run.caller)])
            if queue is not None:
                queue.put(connection, run.run_id, conversation=run.conversation, priority=priority)

        return database.run(write, locks=(run.conversation,) if run.conversation else ())

    def suspended_run(self, run_id: str) -> SuspendedRun:
        """Returns a run that waits for people, without taking its lease.

        Raises:
            DecisionRefused: `unknown_run`, `bad_mac` or `schema_too_new`.
        """
        database = self._database
        return database.read(lambda connection: look_at_suspended(connection, database, run_id), is_one_state=True)

    asuspended_run = async_twin(suspended_run)

    def ready(self, limit: int = READY_LISTED) -> list[RunInfo]:
        """Returns at most `limit` runs that are due and that no living process holds, those due longest first.

        A run is due once it is submitted, decided or given up, when a request of it expires, or when its process died.
        `toolwire.fleet.go_on` goes on with it.

        Raises:
            ConfigurationError: `limit` is not a whole number from 1.
        """
        check_limit(limit)
        database = self._database
        return database.read(
            lambda connection: list_ready(connection, database.sealer, database.clock(), limit=limit),
            is_one_state=True,
        )

    aready = async_twin(ready)

    def park(self, run_id: str) -> bool:
        """Parks a run that was taken from a dead process 3 times without a step in between. True if it is parked.

        Raises:
            DecisionRefused: `unknown_run`.
        """
        database = self._database
        return database.run(
            lambda connection: park_stuck(connection, database.sealer, run_id, database.clock()), locks=(run_id,)
        ).result()

    apark = async_twin(park)

    def set_aside(self, run_id: str) -> None:
        """Takes a run that cannot go on, such as an expired one, from the list of due runs. It stays on record."""
        database = self._database
        database.run(lambda connection: set_ready_at(connection, run_id, None), locks=(run_id,)).result()

    aset_aside = async_twin(set_aside)

    def watch_run(self, run_id: str, wake: Callable[[], object]) -> AbstractContextManager[None]:
        """Calls `wake`, in another thread, when a worker has ended the run or it waits, until the block ends.

        Some news is lost, and all with SQLite: look at the run from time to time as well.
        """
        return self._database.run_news.watch(run_id, wake)

    def wake_watchers(self, run_id: str) -> Future[None]:
        """Wakes those who watch a run, in all processes."""
        return self._database.run(lambda connection: send_news(connection, run_id))

    def take_place(self, key: str, calls: int, per_s: float) -> Future[float]:
        """Counts a call under a key that all processes share. `RateLimit(across=store)` uses it.

        The future gives 0 if fewer than `calls` were counted in the last `per_s` seconds, else the seconds after which
        there may be room. It raises `StoreUnavailable` if the store is away.
        """
        database = self._database
        return database.run(
            lambda connection: take_place(connection, key, calls, per_s, database.clock()), locks=(lock_name(key),)
        )

    def waiting_calls(self, key: str) -> Future[list[WaitingCall]]:
        """Reads the runs that `keep_waiting_call` kept under a key and that no call continues, decided ones first."""
        database = self._database
        return database.read_soon(lambda connection: waiting_calls.list_waiting(connection, key, database.clock()))

    def claim_waiting_call(self, key: str, run_id: str) -> Future[bool]:
        """Lets the caller continue a kept run. False if another call in any process does, or the run has ended.

        The claim ends with `keep_waiting_call`, `free_waiting_call` or `forget_waiting_call`, or with this process.
        """
        database = self._database
        database.begin_renewal()

        def job(connection: Connection) -> bool:
            until, now = database.lease_until(), database.clock()
            return waiting_calls.claim_call(connection, key, run_id, str(database.owner), now, claimed_until=until)

        return self._run_for_call(key, run_id, job)

    def keep_waiting_call(self, key: str, run_id: str, *, expires_at: float) -> Future[None]:
        """Keeps a run for an equal call until that time, in seconds since the epoch."""
        return self._run_for_call(key, run_id, lambda it: waiting_calls.keep_call(it, key, run_id, expires_at))

    def free_waiting_call(self, key: str, run_id: str) -> Future[None]:
        """Lets another call continue a kept run that this one claimed and did not continue."""
        return self._run_for_call(key, run_id, lambda it: waiting_calls.free_call(it, run_id))

    def forget_waiting_call(self, key: str, run_id: str) -> Future[None]:
        """Forgets a kept run that has ended, so that an equal call is a new one."""
        return self._run_for_call(key, run_id, lambda it: waiting_calls.forget_call(it, run_id))

    def _run_for_call(self, key: str, run_id: str, job: Callable[[Connection], T]) -> Future[T]:
        return self._database.run(job, locks=(waiting_calls.lock_name(key), run_id))

    def try_write(self) -> None:
        """Writes a row and deletes it, in one transaction. Nothing of it stays.

        Raises:
            StoreUnavailable: The store cannot be written: the message says why.
        """
        self._database.run(write_nothing).result()

    atry_write = async_twin(try_write)

    def requeue(self, run_id: str, *, by: Decider | str) -> None:
        """Lets a parked run go on. Any other run that has not ended is due now. The log has who did it.

        Raises:
            DecisionRefused: `unknown_run`, or `run_ended`.
            ConfigurationError: `run_id` or `by` has another type.
        """
        check_run_id("requeue", run_id)
        author, database, queue = decider_of(by, "requeue"), self._database, self._queue

        def job(connection: Connection) -> None:
            run = requeue_run(connection, database.sealer, run_id, author, database.clock())
            if queue is not None:
                queue.put(connection, run_id, conversation=run.conversation, priority=0)

        database.run(job, locks=(run_id,)).result()

    arequeue = async_twin(requeue)
