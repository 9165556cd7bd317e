"""Follows the log: new rows as they come, of this or another process. One thread of a process looks for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from toolwire.journal.log.rows import LogRow
from toolwire.vocabulary.errors import StoreUnavailable

FOLLOW_S = 0.25
"""Seconds between two queries for new rows, of this or another process. A person does not notice the delay."""


class Poller:
    """A thread that looks for new rows while anyone follows, and wakes the followers.

    Ten followers cost one small query per `FOLLOW_S`, as one follower does.
    """

    def __init__(self, newest: Callable[[], int]) -> None:
        """`newest` returns the number of the last row."""
        self._newest = newest
        self._changed = threading.Condition()
        self._followers: list[Callable[[], object]] = []
        self._thread: threading.Thread | None = None

    def add(self, wake: Callable[[], object]) -> None:
        """Calls `wake` after each change of the log, until `remove`."""
        with self._changed:
            self._followers.append(wake)
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, name="toolwire-follow", daemon=True)
                self._thread.start()

    def remove(self, wake: Callable[[], object]) -> None:
        """Calls it no more. The thread ends with its last follower."""
        with self._changed:
            if wake in self._followers:
                self._followers.remove(wake)
            self._changed.notify_all()

    def _go(self) -> None:
        last = -1
        while True:
            try:
                newest = self._newest()
            except StoreUnavailable:
                # Each follower reads for itself then, and raises this error.
                newest = -1
            with self._changed:
                woken = list(self._followers) if newest != last or newest < 0 else []
                last = newest
            for wake in woken:
                wake()
            with self._changed:
                if self._followers:
                    self._changed.wait_for(lambda: not self._followers, FOLLOW_S)
                if not self._followers:
                    self._thread = None
                    return


class Follow(Iterator[LogRow]):
    """The rows of a log and then new ones as they come. `close`, from any thread, ends it; so does its last reference.

    Raises:
        StoreUnavailable: At the next row, if the store cannot be read.
    """

    def __init__(self, poller: Poller, read: Callable[[int], Sequence[LogRow]], after: int) -> None:
        self._read, self._after = read, after
        self._rows: deque[LogRow] = deque()
        self._woken = woken = threading.Event()
        self._is_closed = False
        self._poller = poller
        # The poller must not hold this object, or it would never be dropped.
        self._wake = woken.set
        poller.add(self._wake)

    def __next__(self) -> LogRow:
        while not self._is_closed:
            if self._rows:
                row = self._rows.popleft()
                self._after = row.seq
                return row
            self._woken.clear()
            try:
                self._rows.extend(self._read(self._after))
            except StoreUnavailable:
                if self._is_closed:
                    break
                raise
            if not self._rows and not self._is_closed:
                self._woken.wait()
        raise StopIteration

    def close(self) -> None:
        """Ends the iterator. A thread that waits for its next row goes on."""
        self._is_closed = True
        self._poller.remove(self._wake)
        self._woken.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._poller.remove(self._wake)
