"""The one thread that writes a database: what waits together is committed together, and answered after that."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolwire.journal.answers import Answer, Turn, wake
from toolwire.vocabulary.errors import StoreUnavailable, ToolwireError

T = TypeVar("T")

BATCH_LIMIT = 512
"""Writes in one transaction: a few milliseconds' work, so that nobody waits long for others'."""

QUEUE_LIMIT = 10_000
"""Writes that may wait. Beyond that nothing new is begun: better refused than remembered until memory ends."""

CLOSE_LIMIT_S = 30.0
"""Seconds that closing waits for what is still to be written."""

TICK_S = 5.0
"""Seconds between two looks at what is to be done without being asked: leases to renew."""

TRIES = 4
"""Times that a batch is begun which never got the database to itself: 40 seconds, then its callers are told."""

GATHER_PART = 0.5
"""Of the time that the last transaction took, the part in which another caller has to come for the next one to go on
waiting: those who were answered together come again together, and a transaction for each would make all wait longer."""

GATHER_LIMIT = 2.0
"""Times as long as the last transaction took, at which waiting for callers ends in any case."""

_LOG = logging.getLogger("toolwire.store")


class Kind(Protocol):
    """A sort of record; many of one are written at once. Of one batch, lower ranks are written first."""

    @property
    def rank(self) -> int: ...
    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> object: ...


@dataclass(slots=True, kw_only=True)
class Work:
    """One thing to write. It is written whole or not at all, whatever becomes of others in its transaction."""

    future: Future[Any] | None
    """Answered after the commit; None when nobody waits."""
    job: Callable[[Connection], Any] | None = None
    """Writes it and gives the answer. May run twice: the first attempt is then undone."""
    records: Sequence[tuple[Kind, Mapping[str, Any]]] = ()
    """Without a job: rows that need no look at the database first."""
    answer: Any = None
    """What the future gives then."""
    otherwise: Callable[[Connection, Exception], Any] | None = None
    """Gives the answer when it was refused, in a transaction of its own; None: the future raises."""
    failed: Callable[[Exception], Any] | None = None
    """Gives the answer when the database failed; None: the future raises."""


class Writer:
    """A queue and a thread. Any thread may give it work."""

    def __init__(self, engine: Engine, tick: Callable[[], None]) -> None:
        self._engine = engine
        self._tick = tick
        self._waiting: deque[Work] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._is_busy = False
        self._wanted = 1
        """How many have to wait before the writer looks."""
        self._expected = 1
        """Callers that wrote when the last batch was written."""
        self._took = 0.0
        """Seconds that it took."""
        self._thread: threading.Thread | None = None
        self.commits = 0
        """Transactions so far."""

    @property
    def is_full(self) -> bool:
        """Whether nothing new should be begun."""
        return len(self._waiting) >= QUEUE_LIMIT

    @property
    def is_idle(self) -> bool:
        """Whether everything is written that was given to it."""
        return not self._waiting and not self._is_busy

    def run(self, job: Callable[[Connection], T]) -> Future[T]:
        """What the job gives, once it is durable."""
        future: Future[T] = Answer()
        self.put(Work(future=future, job=job))
        return future

    def put(self, work: Work) -> None:
        """Takes work. After `close` its future raises."""
        with self._changed:
            if not self._closed:
                self._waiting.append(work)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="toolwire-store", daemon=True)
                    self._thread.start()
                if len(self._waiting) >= self._wanted:
                    self._changed.notify()
                return
        _fail(work, StoreUnavailable("the store was closed"))

    def wait_for_room(self) -> None:
        """Returns when the queue is not full: who writes without waiting is slowed down here."""
        if self.is_full and threading.current_thread() is not self._thread:
            with self._changed:
                self._changed.wait_for(lambda: not self.is_full or self._closed)

    def close(self) -> None:
        """Writes what waits and ends the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_LIMIT_S)

    def after_fork(self) -> None:
        """In a forked child: the thread is the parent's, and so is what waited for it."""
        self._changed, self._waiting, self._closed, self._thread = threading.Condition(), deque(), True, None

    def _work(self) -> None:
        # Nowhere but in this frame: a forked child has no such frame, and must not say goodbye to the parent's server.
        line = _Line(self._engine)
        due = time.monotonic() + TICK_S
        while (batch := self._next(due)) is not None:
            if batch:
                began = time.monotonic()
                self._write(line, batch)
                self._took = time.monotonic() - began
                # Those that came meanwhile are as many callers more.
                self._expected = min(BATCH_LIMIT, _waited_for(batch) + len(self._waiting))
                self._is_busy = False
            # A thread that waits must not keep the last batch's objects alive.
            del batch
            if time.monotonic() >= due:
                self._on_tick()
                due = time.monotonic() + TICK_S
        line.close()

    def _next(self, due: float) -> list[Work] | None:
        """What waits, or so much of it as is written at once; nothing when it is time for a tick; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, max(0.0, due - time.monotonic()))
            if not self._waiting:
                return None if self._closed else []
            self._gather()
            # Before anything is taken from the queue: `is_idle` must not be true in between.
            was_full, self._is_busy = self.is_full, True
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_LIMIT))]
            if was_full:
                self._changed.notify_all()
            return batch

    def _gather(self) -> None:
        """Waits a little for those who were answered together; called with the lock held."""
        self._wanted = self._expected
        end, before = time.monotonic() + self._took * GATHER_LIMIT, 0
        while before < len(self._waiting) < self._wanted and not self._closed and time.monotonic() < end:
            before = len(self._waiting)
            self._changed.wait(self._took * GATHER_PART)
        self._wanted = 1

    def _on_tick(self) -> None:
        try:
            self._tick()
        except (SQLAlchemyError, ToolwireError):
            _LOG.exception("renewing what this process holds in the store failed; it is tried again")

    def _write(self, line: _Line, batch: Sequence[Work]) -> None:
        try:
            answers = self._patiently(line, batch)
        except _NotCommitted as error:
            for work in batch:
                _fail(work, StoreUnavailable(f"the store could not be written: {error.__cause__}"))
        except Exception as error:  # noqa: BLE001 - whatever a job raises is told to who waits for it
            if len(batch) == 1:
                self._refuse(batch[0], error)
                return
            # One of them is to blame; alone, the others succeed.
            for work in batch:
                self._write(line, [work])
        else:
            turns: deque[Turn] = deque()
            for work, answer in zip(batch, answers, strict=True):
                if isinstance(work.future, Answer):
                    work.future.round = turns
                _answer(work, answer)
            # When all have their answers: nobody takes the interpreter from this thread before.
            wake(turns)

    def _patiently(self, line: _Line, batch: Sequence[Work]) -> list[Any]:
        for tries_left in reversed(range(TRIES)):
            try:
                return self._commit(line, batch)
            except DBAPIError as error:
                if not _is_passing(error):
                    raise
                if not tries_left:
                    raise _NotCommitted from error.orig
        raise AssertionError("a batch is tried at least once")

    def _commit(self, line: _Line, batch: Sequence[Work]) -> list[Any]:
        with line.connection() as connection:
            transaction = connection.begin()
            try:
                answers = _written(connection, batch)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except DBAPIError as error:
                # Of a server that went away nobody knows whether it did it: it must not be done again.
                raise _NotCommitted from error.orig
        self.commits += 1
        return answers

    def _refuse(self, work: Work, error: Exception) -> None:
        if work.otherwise is None:
            _fail(work, error)
            return
        try:
            with self._engine.begin() as connection:
                answer = work.otherwise(connection, error)
        except Exception as second:  # noqa: BLE001 - as above
            _fail(work, second)
        else:
            _answer(work, answer)


class _Line:
    """The writer's connection: kept from one transaction to the next, since having it from the pool costs as much as
    writing a record; given back when something went wrong with it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: Connection | None = None

    @contextmanager
    def connection(self) -> Generator[Connection, None, None]:
        if self._kept is None:
            self._kept = self._engine.connect()
        try:
            yield self._kept
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


class _NotCommitted(Exception):
    """Nothing more is tried: the database could not be had, or did not say what became of the transaction."""


def _is_passing(error: DBAPIError) -> bool:
    """Whether another process was in the way, or the connection broke: not the fault of what was to be written."""
    name = getattr(error.orig, "sqlite_errorname", "")
    return error.connection_invalidated or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _waited_for(batch: Sequence[Work]) -> int:
    return sum(work.future is not None for work in batch)


def _written(connection: Connection, batch: Sequence[Work]) -> list[Any]:
    answers: list[Any] = []
    for is_job, group in groupby(batch, lambda work: work.job is not None):
        some = list(group)
        if is_job:
            answers += [work.job(connection) for work in some if work.job is not None]
        else:
            _write_records(connection, some)
            answers += [work.answer for work in some]
    return answers


def _write_records(connection: Connection, works: Sequence[Work]) -> None:
    rows: dict[Kind, list[Mapping[str, Any]]] = {}
    for work in works:
        for kind, row in work.records:
            rows.setdefault(kind, []).append(row)
    for kind in sorted(rows, key=lambda kind: kind.rank):
        kind.write(connection, rows[kind])


def _answer(work: Work, answer: Any) -> None:
    if work.future is not None and work.future.set_running_or_notify_cancel():
        work.future.set_result(answer)


def _fail(work: Work, error: Exception) -> None:
    if isinstance(error, DBAPIError):
        unavailable = StoreUnavailable(f"the store could not be written: {error.orig}")
        unavailable.__cause__ = error
        error = unavailable
    if work.future is None:
        _LOG.error("something could not be written to the store", exc_info=error)
    elif not work.future.set_running_or_notify_cancel():
        return
    elif work.failed is not None and isinstance(error, StoreUnavailable):
        work.future.set_result(work.failed(error))
    else:
        work.future.set_exception(error)
