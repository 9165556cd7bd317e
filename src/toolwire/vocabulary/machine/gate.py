"""The counter of calls, jobs and requests: a limited number is inside, further ones wait in a queue or are refused."""

from __future__ import annotations

import math
import threading
import weakref
from collections import Counter, OrderedDict
from concurrent.futures import Future

from toolwire.vocabulary.machine.system import call_at_fork


class GateFull(Exception):
    """No place is free, and the caller cannot wait for one."""


class ShareTaken(GateFull):
    """The caller's owner has its share of the places."""


class GateClosed(Exception):
    """The gate was closed."""


class Gate:
    """Lets a limited number of callers in at a time, first come first served. Threads and event loops may share it.

    `enter()` returns None if the way is free, else a future that resolves when it is. `enter_now()` never waits. Each
    of them that succeeds needs one `leave`. A waiter that gives up calls `withdraw`, or cancels its future.
    """

    def __init__(self, room: int = 1, *, queue_limit: float = math.inf, share: float = math.inf) -> None:
        """`room` callers may be inside, `share` of them with one owner, and `queue_limit` callers may wait."""
        self.room = room
        self._queue_limit = queue_limit
        self._share = share
        self._is_closed = False
        self.after_fork()
        _GATES.add(self)

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return len(self._waiting)

    @property
    def inside(self) -> int:
        """The number of callers inside."""
        return self._inside

    def enter(self) -> Future[None] | None:
        """Returns None if the caller may go on, else a future to wait for.

        Raises:
            GateFull: `queue_limit` callers wait already.
            GateClosed: The gate was closed. The future raises it too, if that happens during the wait.
        """
        with self._lock:
            if self._is_closed:
                raise GateClosed
            if self._inside < self.room:
                self._inside += 1
                return None
            if len(self._waiting) >= self._queue_limit:
                raise GateFull
            turn: Future[None] = Future()
            self._waiting[turn] = None
        turn.add_done_callback(self._forget)
        return turn

    def enter_now(self, owner: str | None = None) -> None:
        """Enters without waiting. An owner of None takes no share.

        Raises:
            ShareTaken: The owner has its share.
            GateFull: No place is free.
            GateClosed: The gate was closed.
        """
        with self._lock:
            if self._is_closed:
                raise GateClosed
            if owner is not None and self._owned[owner] >= self._share:
                raise ShareTaken
            if self._inside >= self.room:
                raise GateFull
            self._inside += 1
            if owner is not None:
                self._owned[owner] += 1

    def leave(self, owner: str | None = None) -> None:
        """Lets the next waiter in. `owner` is the one that entered."""
        with self._lock:
            self.holder = None
            if owner is not None:
                self._owned[owner] -= 1
                if not self._owned[owner]:
                    del self._owned[owner]
            while self._waiting:
                turn, _ = self._waiting.popitem(last=False)
                # A waiter may cancel its future at this moment.
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._inside -= 1

    def withdraw(self, turn: Future[None]) -> None:
        """Gives up waiting. If the turn has come already, it goes to the next waiter."""
        if not turn.cancel():
            self.leave()

    def close(self) -> None:
        """Refuses all later callers. The futures of those that wait raise `GateClosed`."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, OrderedDict()
        for turn in waiting:
            if turn.set_running_or_notify_cancel():
                turn.set_exception(GateClosed())

    def after_fork(self) -> None:
        """Resets the gate in a forked child, because the threads inside and waiting do not exist there."""
        # Reentrant: a garbage collection in here may close a waiting coroutine, which calls `withdraw`.
        self._lock = threading.RLock()
        self._inside = 0
        self._owned = Counter[str]()
        self.holder: object | None = None
        """A mark that the call inside sets to be recognised; None without a mark."""
        self._waiting: OrderedDict[Future[None], None] = OrderedDict()

    def _forget(self, turn: Future[None]) -> None:
        if turn.cancelled():
            with self._lock:
                self._waiting.pop(turn, None)


_GATES: weakref.WeakSet[Gate] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for gate in list(_GATES):
        gate.after_fork()


call_at_fork(after_in_child=_after_fork_in_child)
