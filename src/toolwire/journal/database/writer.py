"""Group commit: one thread writes a database. All work that waits goes into one transaction, and its futures resolve
after the commit.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from sqlalchemy import Engine

from toolwire.journal.database.transactions import Transactions
from toolwire.journal.database.work import Work, fail
from toolwire.vocabulary.errors import StoreUnavailable

BATCH_LIMIT = 512
"""Works in one transaction: a few milliseconds' work, so that no caller waits long for the work of others."""

QUEUE_LIMIT = 10_000
"""Works that may wait. Beyond that no new call begins, so that a slow disk does not fill the memory."""

CLOSE_LIMIT_S = 30.0
"""Seconds that `close` waits for the rest of the queue to be written."""

UNASKED_S = 0.005
"""Seconds that work without a future waits for other work, to share its transaction."""

GATHER_PART = 0.5
"""A part of the last transaction's time: the pause without a new caller that ends gathering. Callers whose futures
resolved together tend to come again together, and a transaction for each of them would make all of them wait."""

GATHER_LIMIT = 2.0
"""Times the last transaction's time after which gathering ends in any case."""


class Writer:
    """The queue of a database and the thread that writes it. Any thread may add work."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transactions = Transactions(engine)
        self._waiting: deque[Work] = deque()
        # Reentrant: a signal's handler may add work while its own thread is inside.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_writing = False
        self._awaited = 0
        """Callers that wait for work in the queue."""
        self._wanted = 0
        """The number of them at which the thread is woken."""
        self._expected = 1
        """Callers that the last transaction answered, and those that came meanwhile."""
        self._took_s = 0.0
        """Time of the last transaction of callers alone."""

    @property
    def commits(self) -> int:
        """Transactions so far."""
        return self._transactions.count

    @property
    def is_full(self) -> bool:
        """True if `QUEUE_LIMIT` works wait."""
        return len(self._waiting) >= QUEUE_LIMIT

    @property
    def is_idle(self) -> bool:
        """True if all work that was added is written."""
        with self._changed:
            return not self._waiting and not self._is_writing

    def put(self, *works: Work) -> None:
        """Adds the works of one caller, one after the other. After `close`, or without a thread, each is refused.

        The future of a refused work raises `StoreUnavailable`.
        """
        with self._changed:
            refusal = self._refusal()
            if refusal is None:
                was_empty, before = not self._waiting, self._awaited
                self._waiting += works
                for work in works:
                    if work.future is not None:
                        work.future.shown, work.future.writer = self._transactions.shown, self._thread
                works[-1].is_caller = any(work.is_awaited for work in works)
                self._awaited += works[-1].is_caller
                if was_empty or before < self._wanted <= self._awaited:
                    self._changed.notify_all()
                return
        shown = self._transactions.shown
        for work in works:
            fail(work, StoreUnavailable(f"the store {shown} {refusal}"), shown)

    def wait_for_room(self) -> None:
        """Returns when the queue is not full. This is the back-pressure for work that no caller waits for."""
        if self.is_full and self._thread is not threading.current_thread():
            with self._changed:
                self._changed.wait_for(lambda: not self.is_full or self._is_closed)

    def close(self) -> None:
        """Writes the rest of the queue and ends the thread. Later work is refused."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread not in (None, threading.current_thread()):
            thread.join(CLOSE_LIMIT_S)

    def let_go(self) -> None:
        """Closes the connection. The caller ensures that the thread is not writing."""
        self._transactions.close()

    def after_fork(self) -> None:
        """Makes a forked child's copy refuse all work: the thread and the connection are the parent's."""
        self.__init__(self._engine)
        self._is_closed = True

    def _refusal(self) -> str | None:
        """The reason why work is refused, or None. Starts the thread at the first work."""
        if self._is_closed:
            return "was closed"
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="toolwire-store", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                return f"cannot be written: {error}"
            self._thread = thread
        return None

    def _work(self) -> None:
        while batch := self._next():
            began = time.monotonic()
            self._transactions.write(batch)
            self._expected = sum(work.is_caller for work in batch)
            if not any(work.patience_s for work in batch):
                self._took_s = time.monotonic() - began
            # The thread must not keep the last batch alive while it waits.
            del batch
        self._transactions.close()

    def _next(self) -> Sequence[Work]:
        """Waits for work and takes a batch of it; nothing when the writer is closed and all work is written."""
        with self._changed:
            self._is_writing = False
            # With those that came meanwhile. One caller alone comes after its commit, and waits for nobody.
            self._expected = min(BATCH_LIMIT, self._expected + self._awaited)
            while not self._waiting:
                if self._is_closed:
                    return ()
                self._changed.wait()
            if self._awaited:
                self._gather()
            else:
                self._wait(wanted=1, seconds=self._waiting[0].patience_s or UNASKED_S)
            return self._take()

    def _gather(self) -> None:
        """Waits while callers keep coming, until as many wait as are expected."""
        end, before = time.monotonic() + self._took_s * GATHER_LIMIT, 0
        while before < self._awaited < self._expected and time.monotonic() < end:
            before = self._awaited
            self._wait(wanted=self._expected, seconds=self._took_s * GATHER_PART)

    def _wait(self, *, wanted: int, seconds: float) -> None:
        if not self._is_closed:
            self._wanted = wanted
            self._changed.wait(seconds)
            self._wanted = 0

    def _take(self) -> Sequence[Work]:
        was_full = self.is_full
        batch = [self._waiting.popleft() for _ in range(min(BATCH_LIMIT, len(self._waiting)))]
        self._awaited -= sum(work.is_caller for work in batch)
        self._is_writing = True
        if was_full:
            self._changed.notify_all()
        return batch
