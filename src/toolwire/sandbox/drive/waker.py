"""A descriptor that wakes a thread which waits in `poll`."""

from __future__ import annotations

import os
import threading


class Waker:
    """Any thread wakes; one thread waits until `descriptor` can be read."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Reentrant: a garbage collection in here may end a call, and that wakes.
        self._lock = threading.RLock()
        self._is_closed = False

    def wake(self) -> None:
        """Wakes the waiting thread, or keeps it from its next wait."""
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self.descriptor, 1)

    def clear(self) -> None:
        """Lets the thread wait again. Call it when `descriptor` can be read."""
        os.eventfd_read(self.descriptor)

    def close(self) -> None:
        """Closes the descriptor; `wake` does nothing from then on."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self.descriptor)
