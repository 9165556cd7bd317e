"""Who writes a database: one thread at a time, and what waits together is committed together and answered after that.

A thread that waits for its answer and finds nobody writing does it itself: two threads that hand over to each other
cost more than the record. It does so if all goes well; whatever else happens is left to a thread of the writer's own,
and so is what nobody waits for.
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
"""Writes in one transaction: a few milliseconds' work, so that nobody waits long for others'."""

QUEUE_LIMIT = 10_000
"""Writes that may wait. Beyond that nothing new is begun: better refused than remembered until memory ends."""

CLOSE_LIMIT_S = 30.0
"""Seconds that closing waits for what is still to be written."""

UNASKED_S = 0.005
"""Seconds after which something is written that nobody has come for: it goes with the next record, if one comes."""

GATHER_PART = 0.5
"""Of the time that the last transaction took, the part in which another caller has to come for the next one to go on
waiting: those who were answered together come again together, and a transaction for each would make all wait longer."""

GATHER_LIMIT = 2.0
"""Times as long as the last transaction took, at which waiting for callers ends in any case."""


class Writer:
    """A queue, and who writes what is in it. Any thread may give it work."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[Work] = deque()
        # A signal's handler may give it work while this very thread holds it.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        """For the writer's own thread."""
        self._room = threading.Condition(self._lock)
        self._closed = False
        self._leader: int | None = None
        """The thread that writes."""
        self._line = Line(engine)
        """Its own."""
        self._batch: Sequence[Work] = ()
        """What it writes."""
        self._is_called = False
        """What waits is to be written by the writer's own thread."""
        self._is_asleep = False
        """That thread does not know that anything waits."""
        self._wanted = BATCH_LIMIT
        """How many have to wait for it to be called."""
        self._guard: Future[Any] | None = None
        """The answer whose thread waits a little for other callers, and then writes."""
        self._gathered = 0
        """How many waited when it looked last."""
        self._gather_end = 0.0
        self._expected = 1
        """Callers that wrote when the last batch was written."""
        self._took = 0.0
        """Seconds that it took."""
        self._began = 0.0
        self._seen = 0
        """Transactions when the writer's own thread looked last."""
        self._thread: threading.Thread | None = None

    @property
    def shown(self) -> str:
        """The store, for messages."""
        return self._line.shown

    @property
    def commits(self) -> int:
        """Transactions so far."""
        return self._line.commits

    @property
    def is_full(self) -> bool:
        """Whether nothing new should be begun."""
        return len(self._waiting) >= QUEUE_LIMIT

    @property
    def is_idle(self) -> bool:
        """Whether everything is written that was given to it."""
        return not self._waiting and not self._batch and self._leader is None

    def run(
        self, job: Callable[[Connection], T], otherwise: Callable[[Connection, Exception], T] | None = None
    ) -> Future[T]:
        """What the job gives, once it is durable; `otherwise` as `Work` says."""
        future = Answer[T]()
        self.put(Work(future=future, job=job, otherwise=otherwise))
        return future

    def put(self, work: Work) -> None:
        """Takes work. After `close` its future raises."""
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
        """Why the writer takes no work. Starts its thread if there is none; a start that failed is tried again."""
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
        """Says that somebody wants an answer and cannot be held up."""
        with self._lock:
            if self._waiting and not self._is_called:
                self._call()

    def help(self, wanted: Future[Any]) -> float | None:
        """Writes, in a thread that waits for that answer: if nobody does, and nobody more is expected. Seconds after
        which to come again; None: it will be answered.

        Raises:
            StoreUnavailable: this thread is in the middle of writing, and would wait for itself.
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
            # Interrupted: first what makes room for others, and no call before it, where it could be interrupted again.
            # What it leaves in `_batch` the writer's own thread takes back, called or not.
            if self._leader == me:
                self._leader = None
                with self._lock:
                    self._call()

    def wait_for_room(self) -> None:
        """Returns when the queue is not full: who writes without waiting is slowed down here."""
        if self.is_full and self._leader != threading.get_ident():
            with self._lock:
                self._room.wait_for(lambda: not self.is_full or self._closed)

    def close(self) -> None:
        """Writes what waits and ends the thread."""
        with self._lock:
            self._closed = True
            self._room.notify_all()
            self._changed.notify()
            thread = self._thread
        if thread is not None and threading.get_ident() not in (thread.ident, self._leader):
            thread.join(CLOSE_LIMIT_S)

    def let_go(self) -> None:
        """Closes the connection. The caller sees to it that no thread writes."""
        self._line.close()

    def after_fork(self) -> None:
        """In a forked child: the threads are the parent's, and so is what waited for them. So is the connection: a
        thread that was writing holds it for ever, in a frame that nobody has any more."""
        self.__init__(self._engine)
        self._closed = True

    def _is_cared_for(self, wanted: Future[Any]) -> bool:
        # Without the lock: what was put before is taken by whoever leads, or seen by them when they leave.
        if self._leader is not None:
            return True
        return self._guard not in (None, wanted) and len(self._waiting) < self._expected

    def _find_out(self, wanted: Future[Any]) -> float | None:
        """Makes this thread the leader, if it is to write now; else what `help` gives."""
        with self._lock:
            if self._leader is not None or not self._waiting:
                return None
            if not self._may_lead(wanted):
                self._call()
                return None
            if len(self._waiting) < self._expected:
                # The first of those who were answered together waits for the others. The last one writes.
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
        # What signals raise comes up here, even while answers are given: they must be nobody else's.
        return all(work.future is None or work.future is wanted for work in self._waiting)

    def _begin_to_gather(self) -> None:
        self._gathered, self._gather_end = 0, time.monotonic() + self._took * GATHER_LIMIT

    def _goes_on_gathering(self) -> bool:
        before, self._gathered = self._gathered, len(self._waiting)
        return before < self._gathered < self._expected and time.monotonic() < self._gather_end

    def _call(self) -> None:
        # Who leads calls when they leave.
        if self._leader is None:
            self._is_called = True
            self._changed.notify()

    def _lead(self) -> None:
        """Takes what is written at once; called with the lock held."""
        was_full = self.is_full
        self._line.has_committed = False
        self._leader = threading.get_ident()
        if len(self._waiting) <= BATCH_LIMIT:
            # In one go: who is interrupted in the middle of it would lose some.
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
            # Those that came meanwhile are as many callers more.
            self._expected = min(BATCH_LIMIT, self._expected + len(self._waiting))
            self._leader = None
            if self._waiting or self._batch:
                self._call()

    def _work(self) -> None:
        while self._next():
            self._line.write(self._batch)
            # A thread that waits must not keep the last batch's objects alive.
            self._batch = ()
            self._leave()
        self._line.close()

    def _next(self) -> bool:
        """Waits until there is something to write, and takes it; False at the end."""
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
        """What a caller did not bring to its end: it failed, or was interrupted."""
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
        """Waits until something is to be written: because somebody calls, or because nobody has come for it."""
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
