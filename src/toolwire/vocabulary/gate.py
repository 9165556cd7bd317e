"""So many at a time, whatever waits: a thread, or a task of any event loop."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from concurrent.futures import Future


class GateFull(Exception):
    """As many as may wait at a gate wait there already."""


class Gate:
    """Lets so many calls in at a time, first come first served.

    `enter()` gives None when the way is free, else a future that is done when it is. Each `enter` that got through
    is followed by one `leave`; a waiter that gives up calls `withdraw` with its future.
    """

    def __init__(self, room: int = 1, *, queue_limit: int | None = None) -> None:
        """`room` is how many may be inside at once, `queue_limit` how many may wait; None: any number."""
        self.room = room
        self.queue_limit = queue_limit
        self.after_fork()
        _GATES.add(self)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nobody is inside."""
        return not self._inside

    def enter(self) -> Future[None] | None:
        """None: go on. A future: wait for it first.

        Raises:
            GateFull: `queue_limit` are waiting already.
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
        """Lets the next one in."""
        with self._lock:
            self.holder = None
            while self._waiting:
                turn = self._waiting.popleft()
                # A task that was cancelled cancels its turn before it can withdraw it.
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._inside -= 1

    def withdraw(self, turn: Future[None]) -> None:
        """Gives up waiting; if the turn had come already, passes it on."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        if not turn.cancelled():
            self.leave()

    def after_fork(self) -> None:
        """Called in a forked child: opens, for none of the threads that were inside or waiting are there."""
        # Reentrant: collecting garbage in here may close a coroutine that waits, which withdraws.
        self._lock = threading.RLock()
        self._inside = 0
        self.holder: object | None = None
        """Whatever the one inside puts here to be known by; None while there is none."""
        self._waiting: deque[Future[None]] = deque()


_GATES: weakref.WeakSet[Gate] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for gate in list(_GATES):
        gate.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
