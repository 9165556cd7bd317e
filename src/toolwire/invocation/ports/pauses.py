"""The time in which a running tool waits for a person. It does not count towards the tool's time limit."""

from __future__ import annotations

import threading
import time

CHECK_S = 1.0
"""Seconds after which a time limit looks again whether its tool still waits. A tool gets at most so much too much."""


class PauseClock:
    """The waits of one call and of the calls that it makes. Waits side by side count once."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        """The end of the run as a value of `time.monotonic()`, which no wait moves; None without one."""
        self._lock = threading.Lock()
        self._open = 0
        self._since = self._ended_s = self._granted_s = 0.0

    def begin(self) -> None:
        """Begins a wait."""
        with self._lock:
            if not self._open:
                self._since = time.monotonic()
            self._open += 1

    def end(self) -> None:
        """Ends a wait."""
        with self._lock:
            self._open -= 1
            if not self._open:
                self._ended_s += time.monotonic() - self._since

    def extend_limit(self, limit: float) -> float:
        """Returns the end of a time limit after the waits so far."""
        with self._lock:
            later = limit + self._ended_s
        return later if self.deadline is None else min(later, self.deadline)

    def more_s(self) -> float:
        """Returns the seconds by which the tool's time limit grows since the last call of this method."""
        with self._lock:
            now = time.monotonic()
            more_s = self._ended_s - self._granted_s
            if self._open:
                more_s = max(more_s + now - self._since, CHECK_S)
            if self.deadline is not None:
                more_s = min(more_s, self.deadline - now)
            self._granted_s += max(more_s, 0.0)
            return more_s
