"""One open database in one process: its engine, its writer, its key, and the process as an owner of leases."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, event, select
from sqlalchemy.pool import ConnectionPoolEntry

from toolwire.journal.database.driver import insert_new
from toolwire.journal.database.engine import FILE_GONE, engine_for_writes, file_of, make_engine, prepare
from toolwire.journal.database.forking import GATE, gate_of
from toolwire.journal.database.location import Location
from toolwire.journal.database.run_news import RunNews
from toolwire.journal.database.schema import is_current, upgrade
from toolwire.journal.database.sealing import Sealer, key_of
from toolwire.journal.database.server_clock import ServerClock
from toolwire.journal.database.store_errors import translate_errors
from toolwire.journal.database.tables import META, OWNERS
from toolwire.journal.database.work import RecordFuture, Work
from toolwire.journal.database.writer import Writer
from toolwire.journal.ledger.conversation_leases import ConversationLease, HeldConversations
from toolwire.journal.ledger.conversations import SeenStates
from toolwire.journal.ledger.leases import LeaseRenewal, Owner, give_up, leases_of, leave, living_holder, renew
from toolwire.journal.log.chain import CHAIN, Chain, LogRows, write_rows
from toolwire.journal.log.following import Tail
from toolwire.journal.log.heads import first_head_row
from toolwire.journal.log.text_search import TextIndex
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import StoreUnavailable

T = TypeVar("T")


READER_THREADS = 4
"""Threads that read a server for new runs: a read takes less than a tenth of a commit."""

_KEY_CHECK = "key_check"


class Database:
    """An open database.

    A runtime owns it: it is opened at first use, closed with the runtime, and opened anew after a fork.

    Raises:
        StoreUnavailable: The database cannot be reached, is damaged, or was written with another key.
        DecisionRefused: `schema_too_new`: a newer toolwire wrote it.
    """

    def __init__(self, location: Location, key: bytes | None = None) -> None:
        self.location = location
        self.owner = Owner.this()
        self.held: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        """The ledgers of this process by run id, held weakly."""
        self.handles: set[object] = set()
        """The `Store` objects that use this database."""
        self.clock = ServerClock()
        """Returns the seconds since the epoch by which leases, due times and expiry go."""
        self.closing = threading.Event()
        """Set when the database is being closed: what works in the background ends."""
        self.seen = SeenStates()
        """The states of conversations as this process saw them last."""
        self.run_news = RunNews(location)
        """Wakes those who wait for a run of another process."""
        self.pruning = threading.Lock()
        """Held while a thread of this process applies a retention."""
        self.pruner: Any = None
        """The thread that applies a retention on a clock; None without one."""
        self._has_held = False
        self._is_closed = False
        self._engine = make_engine(location)
        event.listen(self._engine, "checkin", self._drop_if_closed)
        self._gate = gate_of(self._engine)
        with self._gate:
            self._open(key)
            self._file = file_of(self._engine)
            self.log = LogRows(self.sealer)
            """The kind of record that goes to the log."""
            self._chain = Chain(self.sealer, None if self._engine.dialect.name == "sqlite" else OwnerOfChain(self))
            self.writer = Writer(engine_for_writes(self._engine).execution_options(**{CHAIN: self._chain}))
            self._conversations = HeldConversations(self.owner, self.sealer, self.run)
            self._renewal = LeaseRenewal(self._renew, location.lease_s)
            self.tail = Tail(self.read_one_state)
            """Reads new rows for those who follow the log."""
            self.text_index = TextIndex(self._engine, self.run)
            self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="toolwire-reader")
            if location.path is not None:
                GATE.add(self)

    def run(
        self,
        job: Callable[[Connection], T],
        otherwise: Callable[[Connection, Exception], T] | None = None,
        *,
        locks: Collection[str] = (),
        patience_s: float = 0.0,
    ) -> Future[T]:
        """Queues a job for the writer; the future resolves after the commit. See `Work` for the other arguments."""
        future = RecordFuture[T]()
        self.writer.put(Work(future=future, job=job, otherwise=otherwise, locks=locks, patience_s=patience_s))
        return future

    def put(self, *works: Work) -> None:
        """Queues works for the writer, one directly after the other."""
        self.writer.put(*works)

    def wait_for_writes(self) -> None:
        """Returns after all work that was queued before is written."""
        if not self.writer.is_idle:
            self.run(lambda _: None).result()

    def read(self, job: Callable[[Connection], T], *, is_one_state: bool = False) -> T:
        """Runs a reading job in this thread. With `is_one_state` the job sees one snapshot of the database.

        Raises:
            StoreUnavailable: The database failed, or its file was deleted or replaced.
        """
        what = f"the store {self.location.shown} could not be read"
        self._require_file(what)
        with translate_errors(what), self._gate, self._engine.connect() as connection:
            if is_one_state and connection.dialect.name != "sqlite":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            # A statement of the driver's own would begin one without the settings of this store.
            connection.begin()
            try:
                return job(connection)
            except BaseException:
                # The error may keep a statement of SQLite open, and with it the state that this connection reads.
                if self.location.path is not None:
                    connection.invalidate()
                raise

    def run_alone(self, job: Callable[[Connection], T]) -> T:
        """Runs a job in this thread that must not be in a transaction.

        Raises:
            StoreUnavailable: The database refused.
        """
        what = f"the store {self.location.shown} could not be compacted"
        self._require_file(what)
        with translate_errors(what), self._gate, self._engine.connect() as connection:
            return job(connection)

    def read_one_state(self, job: Callable[[Connection], T]) -> T:
        """Runs a reading job that sees one snapshot of the database."""
        return self.read(job, is_one_state=True)

    def read_soon(self, job: Callable[[Connection], T]) -> Future[T]:
        """Runs a reading job and returns its future. An event loop may wait for it.

        SQLite is read in this thread: a reader waits for no other process. A server is read in a thread.
        """
        future: Future[T] = Future()
        try:
            if self._engine.dialect.name != "sqlite":
                return self._readers.submit(self.read, job)
            future.set_result(self.read(job))
        except RuntimeError as error:
            unavailable = StoreUnavailable(f"the store {self.location.shown} could not be read: {error}")
            unavailable.__cause__ = error
            future.set_exception(unavailable)
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.set_exception(error)
        return future

    def hold(self, run_id: str, ledger: T) -> T:
        """Registers the ledger of a run and returns it. The process renews the lease as long as the ledger exists."""
        self.begin_renewal()
        self.held[run_id] = ledger
        return ledger

    def drop(self, run_id: str, ledger: object) -> None:
        """Forgets the ledger of a run whose pass has ended. If this process still has the run, a renewal releases it.

        The ledger itself may live on, for example in a traceback.
        """
        if self.held.get(run_id) is ledger:
            self.held.pop(run_id, None)

    def lease_until(self) -> float:
        """Returns the end of a lease that is taken or renewed now."""
        return self.clock() + self.location.lease_s

    def hold_conversation(self, conversation: str, caller: Caller) -> Future[ConversationLease]:
        """Takes the lease of a conversation; see `Store.hold_conversation`. It is renewed as those of runs are."""
        self.begin_renewal()
        return self._conversations.hold(conversation, caller, self.clock(), held_until=self.lease_until())

    def close(self) -> None:
        """Writes the queued work, releases the runs and conversations of this process, and closes the database."""
        self.closing.set()
        if self.pruner is not None:
            self.pruner.join()
        self._renewal.stop()
        self.text_index.stop()
        if self._has_held:
            self.run(self._leave)
        self.writer.close()
        self._conversations.clear()
        self._is_closed = True
        self._readers.shutdown(wait=False)
        self._engine.dispose()

    def let_go(self) -> None:
        """Closes the connections before a fork."""
        self.writer.let_go()
        self._engine.dispose()

    def after_fork(self) -> None:
        """Drops the connections in the child without closing them: they belong to the parent."""
        self.writer.after_fork()
        self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="toolwire-reader")
        self._engine.dispose(close=False)

    def _require_file(self, what: str) -> None:
        if file_of(self._engine) != self._file:
            raise StoreUnavailable(f"{what}: {FILE_GONE}")

    def _drop_if_closed(self, _: object, record: ConnectionPoolEntry) -> None:
        """Closes a connection whose reader was still busy when the database was closed: the pool has forgotten it."""
        if self._is_closed:
            record.invalidate()

    def _open(self, key: bytes | None) -> None:
        if self.location.path is not None:
            GATE.check(self.location.shown)
        try:
            with translate_errors(f"{self.location.shown} cannot be used"):
                prepare(self._engine, self.location)
                self._upgrade()
                self.sealer = self._sealer(key)
                with self._engine.connect() as connection:
                    self.clock.measure(connection)
        except BaseException:
            self._engine.dispose()
            raise

    def _upgrade(self) -> None:
        with self._engine.connect() as connection:
            if is_current(connection):
                return
        what = f"{self.location.shown} could not be upgraded"
        with translate_errors(what), engine_for_writes(self._engine).begin() as connection:
            upgrade(connection)

    def _sealer(self, key: bytes | None) -> Sealer:
        with self._engine.connect() as connection:
            kept = connection.execute(select(META.c.value).where(META.c.name == _KEY_CHECK)).scalar()
        sealer = Sealer(key or key_of(self.location, is_new=kept is None))
        check = sealer.mac(_KEY_CHECK)
        if kept is None:
            with engine_for_writes(self._engine).begin() as connection:
                rows = [{"name": _KEY_CHECK, "value": check}, first_head_row(sealer)]
                connection.execute(insert_new(connection, META), rows)
                kept = connection.execute(select(META.c.value).where(META.c.name == _KEY_CHECK)).scalar_one()
        if kept != check:
            raise StoreUnavailable(f"{self.location.shown} was written with another key than the one given")
        return sealer

    def begin_renewal(self) -> None:
        """Renews the leases of this process from now on."""
        self._has_held = True
        self._renewal.start()

    def _renew(self) -> None:
        """Renews the leases of this process, and releases the runs that it has and no longer works on.

        A release may have failed, or a commit may not have said whether it was made.
        """
        what = f"the store {self.location.shown} could not be used"
        self._require_file(what)
        with translate_errors(what):
            self._renew_and_release()
        self._conversations.free_the_rest()

    def _renew_and_release(self) -> None:
        with self._gate, self._engine.connect() as connection:
            self.clock.measure(connection)
            leases = leases_of(connection, self.owner)
        # Looked at after the leases were read: a run is held before the commit that makes it ours.
        left = [lease for lease in leases if lease.run_id not in self.held]
        if left or self.held or self._conversations or self._chain.is_held:
            with self._gate, engine_for_writes(self._engine).begin() as connection:
                renew(connection, self.owner, self.clock(), lease_until=self.lease_until())
                for lease in left:
                    give_up(connection, lease, self.clock())

    def _leave(self, connection: Connection) -> None:
        self._conversations.leave(connection)
        leave(connection, self.owner, self.clock())
        # Rows that wait for the end of the transaction would take a chain again.
        write_rows(connection)
        self._chain.release(connection)


class OwnerOfChain:
    """This opening of a store as the holder of its chain of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = str(database.owner)
        """The text that names it in a head."""

    def hold(self, connection: Connection) -> None:
        """Writes the row by which this process is known to be alive, and renews it from now on."""
        database = self._database
        renew(connection, database.owner, database.clock(), lease_until=database.lease_until())
        database.begin_renewal()

    def is_alive(self, connection: Connection, name: str) -> bool:
        """True if the opening of that name may still be at work."""
        until = connection.execute(select(OWNERS.c.alive_until).where(OWNERS.c.owner == name)).scalar()
        return bool(living_holder(name, lease_until=0.0, alive_until=until, now=self._database.clock()))
