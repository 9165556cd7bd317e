"""Answers that many threads wait for at once, and that come to all of them at once.

Woken together, these threads would get in each other's way: all want the interpreter, one has it. So each wakes the
next one, as the first thing that it does.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Turn:
    """One thread that waits."""

    __slots__ = ("_is_left", "_lock", "round")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_left = False
        self.round: deque[Turn] | None = None
        """Those that wait for the same commit, until they are woken."""

    def wait(self) -> None:
        """Returns when it is woken."""
        self._lock.acquire()

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
    """A future whose `result()` waits for its turn. Whoever sets it may say in which round that is."""

    round: deque[Turn] | None = None
    """Gets the turn of the thread that waits; without one that thread is woken at once."""

    def result(self, timeout: float | None = None) -> T:
        """As a future's."""
        if timeout is None:
            turn = Turn()
            self.add_done_callback(turn.come)
            try:
                # What is there already, or came in between, may have woken its round before it had this turn.
                if turn.round is None:
                    turn.wait()
            finally:
                turn.leave()
        return super().result(timeout)


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
