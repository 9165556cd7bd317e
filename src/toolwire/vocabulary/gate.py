"""One at a time, whatever waits: a thread, or a task of any event loop."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from concurrent.futures import Future


class Gate:
    """Lets one call in at a time, first come first served.

    `enter()` gives None when the way is free, else a future that is done when it is. Each `enter` that got through
    is followed by one `leave`; a waiter that gives up calls `withdraw` with its future.
    """

    def __init__(self) -> None:
        self.after_fork()
        _GATES.add(self)

    def enter(self) -> Future[None] | None:
        """None: go on. A future: wait for it first."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return None
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
            self._taken = False

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
        self._taken = False
        self.holder: object | None = None
        """Whatever the one inside puts here to be known by; None while there is none."""
        self._waiting: deque[Future[None]] = deque()


_GATES: weakref.WeakSet[Gate] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for gate in list(_GATES):
        gate.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
