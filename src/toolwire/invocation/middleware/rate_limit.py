"""`RateLimit`: no more than so many calls in any so many seconds."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero, refused
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

WAIT_LIMIT_S = 1.0
"""Seconds that a call waits for its turn: evens out a burst, and no model notices."""
CALLS_LIMIT = 100_000
"""The largest number of calls: each is remembered for as long as it counts."""


class RateLimit:
    """No more than `calls` calls begin in any `per_s` seconds; the next one waits a little, or fails as `overloaded`.

    That failure's `data["retry_after_s"]` says when there is room. Each tool has a limit of its own, unless `key`
    says what calls share one.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(
        self,
        calls: int,
        *,
        per_s: float,
        wait_limit_s: float = WAIT_LIMIT_S,
        key: Key = by_tool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wait_limit_s` is how long a call waits at most, within its deadline; 0: not at all.

        Raises:
            ConfigurationError: a number that is not above 0, or more calls than can be remembered.
        """
        check_above_zero("RateLimit", calls=calls, per_s=per_s)
        if calls > CALLS_LIMIT:
            raise ConfigurationError(f"RateLimit(calls={calls}): give {CALLS_LIMIT:,} at most; count in shorter times")
        self._calls = calls
        self._per_s = per_s
        self._wait_limit_s = wait_limit_s
        self._key = key
        self._clock = clock
        self._begun: Keyed[_Begun] = Keyed(lambda: _Begun(calls, per_s), lambda begun: begun.is_idle(clock()))

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        now = self._clock()
        limit_s = self._wait_limit_s if call.deadline is None else min(self._wait_limit_s, call.deadline - now)
        wait_s, is_taken = self._begun.of(self._key(call)).take(now, max(limit_s, 0.0))
        if not is_taken:
            many = "call" if self._calls == 1 else "calls"
            return refused(call, "overloaded", f"it takes {self._calls} {many} in {self._per_s:g} s", wait_s)
        if wait_s:
            await call.sleep(wait_s)
        return await call_next(call)


class _Begun:
    """When the latest calls began, or will."""

    def __init__(self, calls: int, per_s: float) -> None:
        self._per_s = per_s
        self._times: deque[float] = deque(maxlen=calls)
        self._lock = threading.Lock()

    def take(self, now: float, limit_s: float) -> tuple[float, bool]:
        """Seconds until the next call may begin, and whether it will: only one that waits `limit_s` at most does."""
        with self._lock:
            times = self._times
            # What counts no more is forgotten: memory is for the calls of one such stretch, not for all there may be.
            while times and times[0] + self._per_s <= now:
                times.popleft()
            turn = times[0] + self._per_s if len(times) == times.maxlen else now
            is_taken = turn - now <= limit_s
            if is_taken:
                times.append(turn)
            return turn - now, is_taken

    def is_idle(self, now: float) -> bool:
        return not self._times or self._times[-1] + self._per_s <= now

    def __len__(self) -> int:
        return len(self._times)
