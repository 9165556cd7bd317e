"""Frames on their way to a program. Writing never waits: a rest for which the pipe has no room is kept."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from toolwire.sandbox.processes import FrameWriter

CLOSED = (OSError, ValueError)
"""Exceptions of reading and writing when the child has ended or the host has closed the channel."""


class Outbox:
    """Writes frames in the order in which they come. Any thread may write; the drive's thread writes the rests."""

    def __init__(self, writer: FrameWriter, wake: Callable[[], None]) -> None:
        """`wake` is called when a rest is left, so that the drive's thread waits for room in the pipe."""
        self._writer = writer
        self._wake = wake
        # Reentrant: a garbage collection in here may end a call, and its answer is written.
        self._lock = threading.RLock()
        self._rests: deque[memoryview | bytes] = deque()

    @property
    def unread(self) -> int:
        """The number of frames that are not written whole, because the program does not read."""
        return len(self._rests)

    def write(self, data: bytes) -> int:
        """Writes a frame, or keeps it; returns `unread`."""
        with self._lock:
            # First in the queue, so that a frame which is written from within has its place after this one.
            self._rests.append(data)
            if len(self._rests) == 1:
                self.write_rests()
                if self._rests:
                    self._wake()
            return len(self._rests)

    def write_rests(self) -> None:
        """Writes as much as the pipe has room for."""
        with self._lock:
            while self._rests:
                rest = self._rests[0]
                written = self._written(rest)
                if written < len(rest):
                    self._rests[0] = memoryview(rest)[written:]
                    return
                self._rests.popleft()

    def _written(self, data: memoryview | bytes) -> int:
        try:
            return self._writer.write(data) or 0
        except CLOSED:
            # The child has ended; frames that it sent before are still to be read.
            return len(data)
