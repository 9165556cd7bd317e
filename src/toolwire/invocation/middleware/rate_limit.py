"""`RateLimit`: limits the number of calls in a period."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar, Protocol, cast

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero, failure_before_start
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

WAIT_LIMIT_S = 1.0
"""Default number of seconds that a call waits for its turn.

This smooths a burst without a delay that a model notices.
"""
CALLS_LIMIT = 100_000
"""Maximum value of `calls`. Each call in the period takes memory."""


class SharedCount(Protocol):
    """Counts calls for several processes, as a `Store` does."""

    def take_place(self, key: str, calls: int, per_s: float) -> Future[float]:
        """Counts a call and gives 0, or gives the seconds after which there may be room."""
        ...


class RateLimit:
    """Lets at most `calls` calls begin in any period of `per_s` seconds. Others wait briefly, or fail as `overloaded`.

    The failure's `data["retry_after_s"]` gives the time until the next free slot. Each tool has its own limit, unless
    `key` makes calls share one. It counts per process, unless `across` names a store in which all processes count.
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
        across: SharedCount | None = None,
    ) -> None:
        """`calls` may begin in any `per_s` seconds; more than 100,000 calls are refused.

        `wait_limit_s` is the longest wait in seconds, 1 by default, within the call's deadline. 0: no wait. `key`
        returns the group that a call belongs to, by default its tool. `clock` returns seconds.

        With `across`, a `Store`, the limit holds over all processes that use this store. A second is counted as a whole
        there, so that a call may wait up to a second longer. The groups of `key` are texts then. A call does not start
        while the store is away.

        Raises:
            ConfigurationError: A number is not above 0, `calls` is too large, or `across` is no store.
        """
        check_above_zero("RateLimit", calls=calls, per_s=per_s)
        if calls > CALLS_LIMIT:
            raise ConfigurationError(f"RateLimit(calls={calls}): give {CALLS_LIMIT:,} at most; count in shorter times")
        if across is not None and not callable(getattr(cast("object", across), "take_place", None)):
            raise ConfigurationError(f"RateLimit(across={across!r:.80}): give a store, Store.open(url)")
        self._across = across
        self._calls = calls
        self._per_s = per_s
        self._wait_limit_s = wait_limit_s
        self._key = key
        self._clock = clock
        self._begun: Keyed[_StartTimes] = Keyed(lambda: _StartTimes(calls, per_s), lambda begun: begun.is_idle(clock()))

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        now = self._clock()
        limit_s = self._wait_limit_s if call.deadline is None else min(self._wait_limit_s, call.deadline - now)
        if self._across is not None:
            wait_s = await self._take_across(self._across, call, max(limit_s, 0.0))
            return await call_next(call) if not wait_s else self._refuse(call, wait_s)
        wait_s, is_taken = self._begun.of(self._key(call)).take(now, max(limit_s, 0.0))
        if not is_taken:
            return self._refuse(call, wait_s)
        if wait_s:
            await call.sleep(wait_s)
        return await call_next(call)

    async def _take_across(self, count: SharedCount, call: PreparedCall, limit_s: float) -> float:
        """Waits for room in the shared count. Returns 0, or the seconds until there may be room."""
        group, until = self._key(call), self._clock() + limit_s
        if not isinstance(group, str):
            raise ConfigurationError(f"RateLimit(across=...): key= returned {group!r:.80}; return text, str(...)")
        while True:
            name = f"{self._calls}/{self._per_s:g} {group}"
            wait_s = await call.arrived(count.take_place(name, self._calls, self._per_s))
            if not wait_s or self._clock() + wait_s > until:
                return wait_s
            await call.sleep(wait_s)

    def _refuse(self, call: PreparedCall, wait_s: float) -> ToolResult:
        reason = f"it takes {count_of(self._calls, 'call')} in {self._per_s:g} s"
        return failure_before_start(call, "overloaded", reason, wait_s)


class _StartTimes:
    """The start times of the latest calls, including planned ones."""

    def __init__(self, calls: int, per_s: float) -> None:
        self._per_s = per_s
        self._times: deque[float] = deque(maxlen=calls)
        self._lock = threading.Lock()

    def take(self, now: float, limit_s: float) -> tuple[float, bool]:
        """Returns the seconds until the next call may begin, and True if the slot was taken.

        The slot is taken only if the wait is at most `limit_s`.
        """
        with self._lock:
            times = self._times
            # Old times are dropped, so that memory is needed only for the calls of one period.
            while times and times[0] + self._per_s <= now:
                times.popleft()
            turn = times[0] + self._per_s if len(times) == times.maxlen else now
            is_taken = turn - now <= limit_s
            if is_taken:
                times.append(turn)
            return turn - now, is_taken

    def is_idle(self, now: float) -> bool:
        return not self._times or self._times[-1] + self._per_s <= now
