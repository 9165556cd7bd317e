"""Counts the calls under way on one server."""

from __future__ import annotations

import threading

from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of


class Slots:
    """The calls that may be under way at a time. Clients may come from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit, self._taken, self._is_closed = limit, 0, False
        self._lock = threading.Lock()

    def take(self) -> ToolResult | None:
        """Takes a slot. Returns the result of a refused call; None if the call may run."""
        with self._lock:
            if self._is_closed:
                return ToolResult.failed("unavailable", "the server is shutting down and takes no new calls.")
            if self._taken >= self._limit:
                running = count_of(self._limit, "call is", "calls are")
                return ToolResult.failed("overloaded", f"{running} under way on this server already.")
            self._taken += 1
            return None

    def give_back(self) -> None:
        """Gives a slot back."""
        with self._lock:
            self._taken -= 1

    def close(self) -> None:
        """Refuses all later calls."""
        with self._lock:
            self._is_closed = True

    @property
    def taken(self) -> int:
        """The number of calls under way."""
        return self._taken
