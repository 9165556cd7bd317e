"""The clock of a retention: it never runs ahead."""

from __future__ import annotations

import time
from collections.abc import Callable


class PruneClock:
    """A clock that a jump of another clock can set back but not forward.

    After a jump forward it goes on as before, until the process ends: so nothing goes early, and some things go late.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` is that of the database, in seconds since the epoch."""
        self._clock = clock
        self._first, self._began = clock(), time.monotonic()

    def now(self) -> float:
        """Returns seconds since the epoch."""
        return min(self._clock(), self._first + time.monotonic() - self._began)
