"""Answers of a program's calls that arrive as futures. Any thread may resolve one; the drive's thread takes it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from toolwire.sandbox.answers import Answer, Parked

_PIECE = 4096
"""Bytes of wake-ups to read at once. Each answer writes one byte, and a full pipe is a wake-up as well."""


class LaterAnswers:
    """The open calls of one program, and a descriptor that can be read when an answer has arrived."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called in the thread that resolves a future, for a drive that does not poll."""
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        self._wake = wake
        # Reentrant: cancelling a future calls its callback in the same thread.
        self._lock = threading.RLock()
        self._open: dict[int, Future[Answer | Parked]] = {}
        self._arrived: deque[int] = deque()
        self._is_closed = False

    def add(self, ordinal: int, future: Future[Answer | Parked]) -> None:
        """Waits for the answer of a call, without a thread."""
        self._open[ordinal] = future
        future.add_done_callback(lambda _: self._arrive(ordinal))

    def take(self) -> list[tuple[int, Future[Answer | Parked]]]:
        """Returns the calls that ended, in the order in which they ended. A dropped call is not among them."""
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self.reader, _PIECE)) == _PIECE:
                pass
        taken: list[tuple[int, Future[Answer | Parked]]] = []
        while self._arrived:
            ordinal = self._arrived.popleft()
            future = self._open.pop(ordinal, None)
            if future is not None:
                taken.append((ordinal, future))
        return taken

    def drop(self, ordinal: int) -> bool:
        """Cancels a call for which the program no longer waits. False if its answer is not awaited here."""
        future = self._open.pop(ordinal, None)
        if future is not None:
            future.cancel()
        return future is not None

    def close(self) -> None:
        """Cancels the open calls. Their answers are not wanted any more."""
        with self._lock:
            self._is_closed = True
            os.close(self.reader)
            os.close(self._writer)
        for future in list(self._open.values()):
            future.cancel()

    def _arrive(self, ordinal: int) -> None:
        self._arrived.append(ordinal)
        with self._lock:
            if self._is_closed:
                return
            with contextlib.suppress(BlockingIOError):
                os.write(self._writer, b".")
        self._wake()
