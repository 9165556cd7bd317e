"""The log of one server: its own messages, its stderr and what toolwire notes about it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from toolwire.mcp.client_limits import LOG_LINES_PER_S

LINE_CHARACTERS = 2_000
"""Maximum characters of a line. A server can write a line of any length."""


class ServerLog:
    """The log `toolwire.mcp.<server>`, for 100 lines a second. Further lines are counted, and the count is logged."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = logging.getLogger(f"toolwire.mcp.{name}")
        self._clock = clock
        self._second, self._lines, self._left_out = 0, 0, 0

    def info(self, text: str) -> None:
        """Logs a line of the server."""
        self.line(logging.INFO, text)

    def warning(self, text: str) -> None:
        """Logs a warning about the server."""
        self.line(logging.WARNING, text)

    def line(self, level: int, text: str) -> None:
        """Logs a line at that level."""
        second = int(self._clock())
        if second != self._second:
            left_out, self._left_out = self._left_out, 0
            self._second, self._lines = second, 0
            if left_out:
                self._log.warning("%d lines were left out: more than %d a second", left_out, LOG_LINES_PER_S)
        self._lines += 1
        if self._lines > LOG_LINES_PER_S:
            self._left_out += 1
        else:
            self._log.log(level, "%s", printable(text[:LINE_CHARACTERS]))


def printable(text: str) -> str:
    """Returns the text with escapes in place of control codes. A terminal would obey them."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
