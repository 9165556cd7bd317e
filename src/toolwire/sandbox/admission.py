"""Places for live programs: a cap, a short queue before it, and a typed refusal beyond. Works for threads and loops."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future

from toolwire.vocabulary.errors import ForOperator
from toolwire.vocabulary.texts.counting import count_of

LIVE_CAP = 32
"""Programs that run at the same time: half of the workers, so that their tools find some too."""
QUEUE_CAP = 64


class Overloaded(ForOperator):
    """Too many programs run or wait already; this one has not been started. A later attempt may succeed."""

    def __init__(self, message: str, *, live: int, waiting: int) -> None:
        super().__init__(message)
        self.live = live
        self.waiting = waiting


class Places:
    """Hands out `live_cap` places. A place is a future, so that a thread and a loop can both wait for it."""

    def __init__(self, live_cap: int = LIVE_CAP, queue_cap: int = QUEUE_CAP) -> None:
        self._live_cap = live_cap
        self._queue_cap = queue_cap
        self._lock = threading.Lock()
        self._live = 0
        self._waiting: deque[Future[None]] = deque()

    def take(self) -> Future[None]:
        """Returns a future that is done once there is a place; the caller must `give_back` it afterwards in every case.

        Raises:
            Overloaded: the queue is full.
        """
        future: Future[None] = Future()
        with self._lock:
            if self._live < self._live_cap:
                self._live += 1
                future.set_result(None)
            elif len(self._waiting) < self._queue_cap:
                self._waiting.append(future)
            else:
                raise self.overloaded()
        return future

    def give_back(self, place: Future[None]) -> None:
        """Frees the place for the next in the queue, or leaves the queue."""
        with self._lock:
            if place in self._waiting:
                self._waiting.remove(place)
            if not place.done() or place.cancelled():
                return
            while self._waiting:
                following = self._waiting.popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._live -= 1

    def overloaded(self) -> Overloaded:
        """Returns the error for a full queue, with the present figures."""
        waiting = len(self._waiting)
        return Overloaded(
            f"{count_of(self._live, 'program runs', 'programs run')}, "
            f"and {count_of(waiting, 'waits', 'wait')} for a place; try again later",
            live=self._live,
            waiting=waiting,
        )
