"""Futures that many threads wait for, all resolved by one commit.

If all these threads woke at once, they would compete for the interpreter. Instead each thread wakes the next one as its
first action.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from toolwire.vocabulary.errors import StoreUnavailable

T = TypeVar("T")


RECORD_LIMIT_S = 120.0
"""Seconds that a thread waits for its answer: three times as long as the writer tries a store that another process
locks.
"""


class Source(Protocol):
    """The writer that will resolve an answer."""

    @property
    def shown(self) -> str:
        """The URL of the store, for messages."""
        ...

    def help(self, answer: Future[Any], /) -> float | None:
        """Called by a thread that waits for the answer and may block; the thread may have to write the batch itself.

        Returns the seconds after which to call again, or None if another call is not needed.
        """
        ...

    def call(self) -> None:
        """Called by a thread that wants the answer but must not block."""
        ...


class Turn:
    """One thread that waits."""

    __slots__ = ("_is_left", "_lock", "round")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_left = False
        self.round: deque[Turn] | None = None
        """The threads that wait for the same commit and are not yet awake."""

    def wait(self, seconds: float | None = None) -> bool:
        """Waits at most `seconds`; None waits without limit. Returns True if the thread was woken."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)

    def leave(self) -> None:
        """Ends the wait of this thread, woken or not, and wakes the next thread."""
        # This order matters: a waker that does not see the flag came before the next line, so this thread passes the
        # wake on.
        self._is_left = True
        if self.round is not None:
            wake(self.round)

    def come(self, answer: Future[Any]) -> None:
        """Callback of the future: wakes the thread in its round, or at once if the future has no round."""
        self.round = answer.round if isinstance(answer, Answer) else None
        if self.round is None:
            self.wake()
        else:
            self.round.append(self)

    def wake(self) -> bool:
        """Wakes the thread. Returns True if that thread will wake the next one."""
        self._lock.release()
        return not self._is_left


class Answer(Future[T], Generic[T]):
    """A future whose `result()` waits its turn and may write the batch itself. The writer can put it into a round."""

    round: deque[Turn] | None = None
    """Receives the turn of the waiting thread. None wakes that thread at once."""
    source: Source | None = None
    """The writer that will resolve the future; None if it needs no notice of waiting threads."""

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Same as for any future."""
        super().add_done_callback(fn)
        if self.source is not None and not self.done():
            self.source.call()

    def result(self, timeout: float | None = None) -> T:
        """Same as for any future.

        Raises:
            StoreUnavailable: Without a timeout, no answer came within `RECORD_LIMIT_S`. The record may still be
                written.
        """
        if timeout is None:
            self._wait()
        elif self.source is not None:
            # The time that helping takes is not known in advance, so a call with a timeout does not help.
            self.source.call()
        return super().result(timeout)

    def _wait(self) -> None:
        pause = None if self.source is None else self.source.help(self)
        if self.done():
            return
        turn, deadline = Turn(), time.monotonic() + RECORD_LIMIT_S
        self._expect(turn)
        try:
            # If the answer came before `_expect`, its round may be awake already. Then `round` is set and this thread
            # must not wait.
            while turn.round is None and not turn.wait(_shorter(pause, left_s := deadline - time.monotonic())):
                if left_s <= 0:
                    raise self._overdue()
                pause = None if self.source is None else self.source.help(self)
        finally:
            turn.leave()

    def _overdue(self) -> StoreUnavailable:
        store = "" if self.source is None else f" {self.source.shown}"
        return StoreUnavailable(f"the store{store} did not take a record within {RECORD_LIMIT_S:g} s")

    def _expect(self, turn: Turn) -> None:
        super().add_done_callback(turn.come)


def _shorter(pause: float | None, left_s: float) -> float:
    return max(0.0, left_s if pause is None else min(pause, left_s))


def wake(turns: deque[Turn]) -> None:
    """Wakes the first thread, which wakes the next."""
    while turns:
        try:
            turn = turns.popleft()
        except IndexError:
            # Another thread took the last turn.
            return
        if turn.wake():
            return
