"""A semaphore for threads and for tasks of any event loop."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from concurrent.futures import Future

from toolwire.vocabulary.system import call_at_fork


class GateFull(Exception):
    """The gate's queue is full."""


class Gate:
    """Lets a limited number of calls in at a time, first come first served.

    `enter()` returns None if the way is free, else a future that resolves when it is. Each successful `enter` needs one
    `leave`. A waiter that gives up calls `withdraw` with its future.
    """

    def __init__(self, room: int = 1, *, queue_limit: int | None = None) -> None:
        """`room` is the number of calls inside at once, `queue_limit` the number that may wait; None sets no limit."""
        self.room = room
        self.queue_limit = queue_limit
        self.after_fork()
        _GATES.add(self)

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """True if no call is inside."""
        return not self._inside

    def enter(self) -> Future[None] | None:
        """Returns None if the caller may go on, else a future to wait for.

        Raises:
            GateFull: `queue_limit` calls wait already.
        """
        with self._lock:
            if self._inside < self.room:
                self._inside += 1
                return None
            if self.queue_limit is not None and len(self._waiting) >= self.queue_limit:
                raise GateFull
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def leave(self) -> None:
        """Lets the next waiter in."""
        with self._lock:
            self.holder = None
            while self._waiting:
                turn = self._waiting.popleft()
                # A cancelled task cancels its future before it can withdraw it.
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._inside -= 1

    def withdraw(self, turn: Future[None]) -> None:
        """Gives up waiting. If the turn has come already, it goes to the next waiter."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        if not turn.cancelled():
            self.leave()

    def after_fork(self) -> None:
        """Resets the gate in a forked child, because the threads inside and waiting do not exist there."""
        # Reentrant: a garbage collection in here may close a waiting coroutine, which calls `withdraw`.
        self._lock = threading.RLock()
        self._inside = 0
        self.holder: object | None = None
        """A mark that the call inside sets to be recognised; None without a mark."""
        self._waiting: deque[Future[None]] = deque()


_GATES: weakref.WeakSet[Gate] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for gate in list(_GATES):
        gate.after_fork()


call_at_fork(after_in_child=_after_fork_in_child)
