"""A host's wish that the running calls of a turn stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from toolwire.definition.tool import Tool
from toolwire.vocabulary.results import ToolResult


@dataclass(frozen=True, slots=True)
class CutOff:
    """Stands in place of the outcome of a call that was stopped."""

    is_still_running: bool
    """True if its tool did not end in the time for a clean-up."""


class Stopping:
    """Tells the calls of one turn to stop. Any thread may change it."""

    __slots__ = ("_cancels", "_lock", "begun", "ended", "reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancels: list[Callable[[], object]] = []
        self.reason: str | None = None
        """The reason to stop; None as long as the calls may go on."""
        self.begun: dict[str, Tool] = {}
        """The tools of the turn's calls that have begun, by the ids of the calls."""
        self.ended: dict[str, ToolResult] = {}
        """The results of calls that have ended, and whose events the reader of the turn has not taken."""

    def ask(self, reason: str) -> None:
        """Stops all calls that run. Those that have not begun do not begin. The first reason counts."""
        with self._lock:
            self.reason = self.reason or reason
            cancels = tuple(self._cancels)
        for cancel in cancels:
            cancel()

    def add(self, cancel: Callable[[], object]) -> None:
        """Takes what stops one call. It is called by `ask`, and at once after an earlier `ask`."""
        with self._lock:
            self._cancels.append(cancel)
            is_late = self.reason is not None
        if is_late:
            cancel()

    def remove(self, cancel: Callable[[], object]) -> None:
        """Forgets what stops a call, because the call has ended."""
        with self._lock:
            self._cancels.remove(cancel)
