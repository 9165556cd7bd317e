"""A handover of one item at a time between threads and tasks of any event loop."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Rendezvous(Generic[T]):
    """Passes items from producers to one reader. No item is produced in advance.

    `offer` returns a future: True when the reader wants the next item, False when it wants no more. `take` returns a
    future of the next item; None means that the producers are done.
    """

    def __init__(self) -> None:
        # Reentrant: a garbage collection in here may close a producer or the reader.
        self._lock = threading.RLock()
        self._offered: deque[tuple[T, Future[bool]]] = deque()
        self._reader: Future[T | None] | None = None
        self._turn: Future[bool] | None = None
        """The future of the item that the reader holds now."""
        self._is_closed = False

    def offer(self, thing: T) -> Future[bool]:
        """Passes an item. Wait for the future before producing the next one."""
        turn: Future[bool] = Future()
        with self._lock:
            reader, self._reader = self._reader, None
            # A cancelled reader takes no item.
            if reader is not None and reader.set_running_or_notify_cancel():
                self._turn = turn
                reader.set_result(thing)
            else:
                self._offered.append((thing, turn))
            if self._is_closed:
                turn.set_result(False)
        return turn

    def take(self) -> Future[T | None]:
        """Returns a future of the next item, and lets the producer of the previous item go on."""
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
        """Ends the handover; items already offered can still be taken. Returns True if a producer was waiting."""
        with self._lock:
            self._is_closed = True
            waiting = [turn for turn in (self._turn, *(turn for _, turn in self._offered)) if turn and not turn.done()]
            reader, self._reader = self._reader, None
            if reader is not None and reader.set_running_or_notify_cancel():
                reader.set_result(None)
            for turn in waiting:
                turn.set_result(False)
            return bool(waiting)
