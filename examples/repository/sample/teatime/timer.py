"""A timer that can be paused."""

import time


class Timer:
    """Counts seconds while it runs."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._counted = 0.0
        self._started = None

    def start(self):
        """Runs on from where it was paused."""
        self._started = self._clock()

    def pause(self):
        """Keeps what it has counted."""
        self._counted = self.seconds
        self._started = None

    @property
    def seconds(self):
        """Seconds counted so far."""
        running = 0.0 if self._started is None else self._clock() - self._started
        return self._counted + running
