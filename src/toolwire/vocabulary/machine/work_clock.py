"""The clock of the work that a tool of toolwire does: the deadline of its call, and the processor time of its input."""

from __future__ import annotations

import time
from contextvars import ContextVar

from toolwire.vocabulary.errors import ToolwireError

WORK_S = 0.5
"""Processor seconds that a call may spend on each megabyte of its input. The rest of a call takes as much again."""
_MEGABYTE = 1_000_000

CALL_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
"""The deadline of the running call, as a value of `time.monotonic()`; None without a limit."""


class WorkLimit(ToolwireError):
    """The work of a call would take longer than it may. The message is fit for a model, and says what to narrow."""


class WorkClock:
    """Tells when the work of a call must end. Loops over text ask it; no thread can be stopped from outside.

    It counts the processor time of the thread that makes it.
    """

    __slots__ = ("_began", "_size", "_until")

    def __init__(self, size: int = 0, *, seconds: float | None = None) -> None:
        """Takes the characters or bytes of the input. `seconds` is a limit by the clock on the wall; None: without."""
        self._began = time.thread_time()
        self._size = size
        deadline = CALL_DEADLINE.get()
        ends = [end for end in (deadline, None if seconds is None else time.monotonic() + seconds) if end is not None]
        self._until = min(ends, default=None)

    def add(self, size: int) -> None:
        """Adds to the input, which allows more work."""
        self._size += size

    @property
    def is_over(self) -> bool:
        """True if the work has used its time, or the deadline of the call is over."""
        if time.thread_time() - self._began > WORK_S * max(self._size / _MEGABYTE, 1.0):
            return True
        return self._until is not None and time.monotonic() > self._until
