"""One at a time, whatever waits: a thread, or a task of any event loop."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future


class Gate:
    """Lets one call in at a time, first come first served.

    `enter()` gives None when the way is free, else a future that is done when it is. Each `enter` that got through
    is followed by one `leave`; a waiter that gives up calls `withdraw` with its future.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

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
            if self._waiting:
                self._waiting.popleft().set_result(None)
            else:
                self._taken = False

    def withdraw(self, turn: Future[None]) -> None:
        """Gives up waiting; if the turn had come already, passes it on."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        self.leave()
