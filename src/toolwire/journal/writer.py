"""Group commit: one thread at a time writes all queued work in one transaction, and its futures resolve after the
commit.

A thread that waits for its answer leads unless another thread does, because a switch between threads costs more than
a record. It does so only in the good case. The writer's own thread handles errors, and work that no caller waits for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from toolwire.journal.answers import Answer
from toolwire.journal.line import Line
from toolwire.journal.work import Work, fail
from toolwire.vocabulary.errors import StoreUnavailable

T = TypeVar("T")

BATCH_LIMIT = 512
"""Work items per transaction. That is a few milliseconds, so that no caller waits long for the work of others."""

QUEUE_LIMIT = 10_000
"""Work items that may wait. A full queue refuses new calls, since an unlimited queue would use up the memory."""

CLOSE_LIMIT_S = 30.0
"""Seconds that `close` waits for queued work."""

UNASKED_S = 0.005
"""Seconds after which work is written that no caller waits for. An earlier record takes it along."""

GATHER_PART = 0.5
"""Fraction of the last transaction's duration. If no further caller arrives within it, gathering ends. Callers that
were answered together usually return together, and a transaction for each of them would make all wait longer.
"""

GATHER_LIMIT = 2.0
"""Maximum duration of gathering, as a multiple of the last transaction's duration."""


class Writer:
    """A queue of work and its leader. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[Work] = deque()
        # Reentrant: a signal handler may queue work while its own thread holds the lock.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        """Wakes the writer's own thread."""
        self._room = threading.Condition(self._lock)
        self._closed = False
        self._leader: int | None = None
        """Id of the thread that writes now."""
        self._line = Line(engine)
        """The leader's connection."""
        self._batch: Sequence[Work] = ()
        """The leader's batch."""
        self._is_called = False
        """True if the writer's own thread must write the queue."""
        self._is_asleep = False
        """True while that thread sleeps and must be notified of new work."""
        self._wanted = BATCH_LIMIT
        """Length of the queue at which `put` calls that thread."""
        self._guard: Future[Any] | None = None
        """The answer whose thread gathers further callers and then writes."""
        self._gathered = 0
        """Length of the queue when gathering last looked at it."""
        self._gather_end = 0.0
        self._expected = 1
        """Callers in the last batch plus the work queued during it: the number expected next."""
        self._took = 0.0
        """Seconds that the last batch took."""
        self._began = 0.0
        self._seen = 0
        """Number of transactions when the writer's own thread last looked."""
        self._thread: threading.Thread | None = None

    @property
    def shown(self) -> str:
        """The URL of the store, for messages."""
        return self._line.shown

    @property
    def commits(self) -> int:
        """Transactions so far."""
        return self._line.commits

    @property
    def is_full(self) -> bool:
        """True if new calls must be refused."""
        return len(self._waiting) >= QUEUE_LIMIT

    @property
    def is_idle(self) -> bool:
        """True if all queued work is written."""
        return not self._waiting and not self._batch and self._leader is None

    def run(
        self, job: Callable[[Connection], T], otherwise: Callable[[Connection, Exception], T] | None = None
    ) -> Future[T]:
        """Queues a job; the future resolves to its result after the commit. See `Work` for `otherwise`."""
        future = Answer[T]()
        self.put(Work(future=future, job=job, otherwise=otherwise))
        return future

    def put(self, work: Work) -> None:
        """Queues work. After `close`, its future raises `StoreUnavailable`."""
        with self._lock:
            refusal = self._refusal()
            if refusal is None:
                if work.future is not None:
                    work.future.source = self
                self._waiting.append(work)
                if len(self._waiting) == self._wanted:
                    self._call()
                elif self._is_asleep:
                    self._is_asleep = False
                    self._changed.notify()
                return
        fail(work, StoreUnavailable(f"the store {self.shown} {refusal}"), self.shown)

    def _refusal(self) -> str | None:
        """Returns why the writer takes no work, or None. Starts its thread if necessary, and retries a start that
        failed.
        """
        if self._closed:
            return "was closed"
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="toolwire-store", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:
                self._thread = None
                return f"cannot be written: {error}"
        return None

    def call(self) -> None:
        """Makes the writer's own thread write the queue, for a caller that must not block."""
        with self._lock:
            if self._waiting and not self._is_called:
                self._call()

    def help(self, wanted: Future[Any]) -> float | None:
        """Writes the queue in the calling thread, unless another thread does or further callers are expected.

        Returns the seconds after which to call again; None if the answer will come without a further call.

        Raises:
            StoreUnavailable: This thread is the leader and would wait for itself.
        """
        me = threading.get_ident()
        if self._leader == me:
            raise StoreUnavailable(
                "a job of the store, or a signal's handler that came in between, waits for the store"
            )
        if self._is_cared_for(wanted):
            return None
        try:
            pause = self._find_out(wanted)
            if self._leader == me:
                if self._line.try_to_write(self._batch):
                    self._batch = ()
                self._leave()
            return pause
        finally:
            # After an interrupt, clear the leader first: a call before it could be interrupted again. The writer's own
            # thread takes back the rest of `_batch`, called or not.
            if self._leader == me:
                self._leader = None
                with self._lock:
                    self._call()

    def wait_for_room(self) -> None:
        """Blocks while the queue is full. This slows down callers that do not wait for their answers."""
        if self.is_full and self._leader != threading.get_ident():
            with self._lock:
                self._room.wait_for(lambda: not self.is_full or self._closed)

    def close(self) -> None:
        """Writes the queued work and ends the thread."""
        with self._lock:
            self._closed = True
            self._room.notify_all()
            self._changed.notify()
            thread = self._thread
        if thread is not None and threading.get_ident() not in (thread.ident, self._leader):
            thread.join(CLOSE_LIMIT_S)

    def let_go(self) -> None:
        """Closes the connection. The caller makes sure that no thread writes."""
        self._line.close()

    def after_fork(self) -> None:
        """Resets the writer in a forked child: threads, queue and connection belong to the parent.

        A parent thread that was writing keeps the connection in a frame that never ends in the child.
        """
        self.__init__(self._engine)
        self._closed = True

    def _is_cared_for(self, wanted: Future[Any]) -> bool:
        # No lock needed: a leader takes work queued before, or sees it when it steps down.
        if self._leader is not None:
            return True
        return self._guard not in (None, wanted) and len(self._waiting) < self._expected

    def _find_out(self, wanted: Future[Any]) -> float | None:
        """Makes this thread the leader if it may write now. Returns the value for `help`."""
        with self._lock:
            if self._leader is not None or not self._waiting:
                return None
            if not self._may_lead(wanted):
                self._call()
                return None
            if len(self._waiting) < self._expected:
                # The first caller of a group that was answered together waits for the others. The last one writes.
                if self._guard is None:
                    self._guard = wanted
                    self._begin_to_gather()
                if self._guard is not wanted:
                    return None
                if self._goes_on_gathering():
                    return self._took * GATHER_PART
            self._lead()
            return None

    def _may_lead(self, wanted: Future[Any]) -> bool:
        if self._batch or self._closed or len(self._waiting) > BATCH_LIMIT or not self._line.is_sqlite:
            return False
        if threading.get_ident() != threading.main_thread().ident:
            return True
        # Exceptions of signal handlers occur in the main thread, even while futures resolve. They must not hit other
        # callers.
        return all(work.future is None or work.future is wanted for work in self._waiting)

    def _begin_to_gather(self) -> None:
        self._gathered, self._gather_end = 0, time.monotonic() + self._took * GATHER_LIMIT

    def _goes_on_gathering(self) -> bool:
        before, self._gathered = self._gathered, len(self._waiting)
        return before < self._gathered < self._expected and time.monotonic() < self._gather_end

    def _call(self) -> None:
        # The leader notifies when it steps down.
        if self._leader is None:
            self._is_called = True
            self._changed.notify()

    def _lead(self) -> None:
        """Makes this thread the leader and takes its batch. The caller holds the lock."""
        was_full = self.is_full
        self._line.has_committed = False
        self._leader = threading.get_ident()
        if len(self._waiting) <= BATCH_LIMIT:
            # A single assignment: an interrupt in the middle of a loop would lose work.
            self._batch, self._waiting = self._waiting, deque()
        else:
            self._batch = [self._waiting.popleft() for _ in range(BATCH_LIMIT)]
        self._is_called, self._guard, self._began = False, None, time.monotonic()
        self._expected = sum(work.future is not None for work in self._batch)
        if was_full:
            self._room.notify_all()

    def _leave(self) -> None:
        with self._lock:
            self._took = time.monotonic() - self._began
            # Work that was queued meanwhile counts as further callers.
            self._expected = min(BATCH_LIMIT, self._expected + len(self._waiting))
            self._leader = None
            if self._waiting or self._batch:
                self._call()

    def _work(self) -> None:
        while self._next():
            self._line.write(self._batch)
            # A waiting thread must not keep the objects of the last batch alive.
            self._batch = ()
            self._leave()
        self._line.close()

    def _next(self) -> bool:
        """Waits for due work and takes it. Returns False after `close` when the queue is empty."""
        with self._lock:
            while not self._is_due():
                if self._closed and self.is_idle:
                    return False
                self._rest()
            self._lead()
            return True

    def _is_due(self) -> bool:
        self._take_back()
        if self._leader is not None or not self._waiting or not (self._is_called or self._closed):
            return False
        self._wanted = self._expected
        self._begin_to_gather()
        while self._leader is None and not self._closed and self._goes_on_gathering():
            self._changed.wait(self._took * GATHER_PART)
        self._wanted = BATCH_LIMIT
        return self._leader is None and not self._batch and bool(self._waiting)

    def _take_back(self) -> None:
        """Returns the unfinished work of a leader that failed or was interrupted to the queue."""
        if self._leader is not None or not self._batch:
            return
        rest = [work for work in self._batch if work.future is None or not work.future.done()]
        if self._line.has_committed:
            rest = [work for work in rest if work.future is not None]
            for work in rest:
                work.job, work.records = None, ()
        self._batch = ()
        self._waiting.extendleft(reversed(rest))
        self._is_called = True

    def _rest(self) -> None:
        """Waits until a caller calls, or until work has waited too long for a caller."""
        oldest = self._waiting[0] if self._waiting else None
        was, self._seen = self._seen, self.commits
        if self.is_idle and was == self.commits:
            self._is_asleep = True
            self._changed.wait()
            self._is_asleep = False
            return
        self._changed.wait(UNASKED_S + self._took * GATHER_LIMIT)
        if oldest is not None and self._waiting and self._waiting[0] is oldest:
            self._is_called = True
