"""Handing things over one at a time, whatever waits: threads, or tasks of any event loop."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Rendezvous(Generic[T]):
    """Hands things from those who make them to one reader. Nothing is made ahead.

    `offer` gives a future that is done when the reader comes for the next thing: True, make it; or False, nobody wants
    it. `take` gives a future of the next thing; None when there will be no more.
    """

    def __init__(self) -> None:
        # Reentrant: collecting garbage in here may close what offers or takes.
        self._lock = threading.RLock()
        self._offered: deque[tuple[T, Future[bool]]] = deque()
        self._reader: Future[T | None] | None = None
        self._turn: Future[bool] | None = None
        """Of the thing that the reader has in hand."""
        self._is_closed = False

    def offer(self, thing: T) -> Future[bool]:
        """Hands a thing over; wait for the future before you make the next one."""
        turn: Future[bool] = Future()
        with self._lock:
            reader, self._reader = self._reader, None
            # A reader that was cancelled takes nothing any more.
            if reader is not None and reader.set_running_or_notify_cancel():
                self._turn = turn
                reader.set_result(thing)
            else:
                self._offered.append((thing, turn))
            if self._is_closed:
                turn.set_result(False)
        return turn

    def take(self) -> Future[T | None]:
        """The next thing, and leave to make the one after what was taken before."""
        found: Future[T | None] = Future()
        with self._lock:
            turn, self._turn = self._turn, None
            if self._offered:
                thing, self._turn = self._offered.popleft()
                found.set_result(thing)
            elif self._is_closed:
                found.set_result(None)
            else:
                self._reader = found
            if turn is not None and not turn.done():
                turn.set_result(True)
        return found

    def close(self) -> bool:
        """Nothing more is wanted; what was offered can still be taken. Says whether a maker was waiting."""
        with self._lock:
            self._is_closed = True
            waiting = [turn for turn in (self._turn, *(turn for _, turn in self._offered)) if turn and not turn.done()]
            reader, self._reader = self._reader, None
            if reader is not None and reader.set_running_or_notify_cancel():
                reader.set_result(None)
            for turn in waiting:
                turn.set_result(False)
            return bool(waiting)
