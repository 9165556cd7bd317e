"""A clock that moves only when a test sleeps."""

from __future__ import annotations

import time


class Clock:
    """Time as a deadline sees it; `sleep` lets it go on at once."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds
