"""Answers that many threads wait for at once, and that come to all of them at once.

Woken together, these threads would get in each other's way: all want the interpreter, one has it. So each wakes the
next one, as the first thing that it does.
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
"""Seconds that a thread waits for its answer: three times as long as a store that another process holds is tried."""


class Source(Protocol):
    """Where an answer comes from."""

    @property
    def shown(self) -> str:
        """The store, for messages."""
        ...

    def help(self, answer: Future[Any], /) -> float | None:
        """Told by a thread that waits for the answer and may be held up: it may be made to work for it. Seconds after
        which to tell it again; None when there is no need to."""
        ...

    def call(self) -> None:
        """Told by who wants the answer and cannot be held up."""
        ...


class Turn:
    """One thread that waits."""

    __slots__ = ("_is_left", "_lock", "round")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_left = False
        self.round: deque[Turn] | None = None
        """Those that wait for the same commit, until they are woken."""

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it was woken, in that time; None: returns when it is."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)

    def leave(self) -> None:
        """Says that nobody waits here any more, woken or not, and wakes the next one."""
        # In this order: whoever wakes it and does not see this was faster than the line below.
        self._is_left = True
        if self.round is not None:
            wake(self.round)

    def come(self, answer: Future[Any]) -> None:
        """Says that the answer is there: it is woken in its round, or else at once."""
        self.round = answer.round if isinstance(answer, Answer) else None
        if self.round is None:
            self.wake()
        else:
            self.round.append(self)

    def wake(self) -> bool:
        """Whether somebody is there who will wake the next one."""
        self._lock.release()
        return not self._is_left


class Answer(Future[T], Generic[T]):
    """A future whose `result()` waits for its turn, and helps. Whoever sets it may say in which round that is."""

    round: deque[Turn] | None = None
    """Gets the turn of the thread that waits; without one that thread is woken at once."""
    source: Source | None = None
    """Who will set it; None when that is nobody who has to be told that it is waited for."""

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """As a future's."""
        super().add_done_callback(fn)
        if self.source is not None and not self.done():
            self.source.call()

    def result(self, timeout: float | None = None) -> T:
        """As a future's.

        Raises:
            StoreUnavailable: without a timeout, if there is no answer after `RECORD_LIMIT_S`. It may still be written.
        """
        if timeout is None:
            self._wait()
        elif self.source is not None:
            # What helping takes cannot be said before.
            self.source.call()
        return super().result(timeout)

    def _wait(self) -> None:
        pause = None if self.source is None else self.source.help(self)
        if self.done():
            return
        turn, deadline = Turn(), time.monotonic() + RECORD_LIMIT_S
        self._expect(turn)
        try:
            # What is there already, or came in between, may have woken its round before it had this turn.
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
    """Wakes the first of them, who wakes the next."""
    while turns:
        try:
            turn = turns.popleft()
        except IndexError:
            # Another thread was faster.
            return
        if turn.wake():
            return
