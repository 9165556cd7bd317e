"""`Concurrency`: limits the number of calls that run and wait at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero, failure_before_start
from toolwire.vocabulary.machine.gate import Gate, GateFull
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

WAIT_LIMIT_S = 30.0
"""Default number of seconds that a call waits for its turn, about as long as people wait for an answer."""
_NEWEST = 0.2
"""Weight of the latest call in the mean duration of calls."""


class Concurrency:
    """Runs at most `limit` calls at once and lets `queue_limit` more wait. Any other call fails as `overloaded`.

    The failure's `data["retry_after_s"]` is an estimate from the duration of earlier calls. Each tool has its own
    limit, unless `key` makes calls share one. A program does not count, but its calls do.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(
        self,
        limit: int,
        *,
        queue_limit: int | None = None,
        wait_limit_s: float = WAIT_LIMIT_S,
        key: Key = by_tool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`queue_limit` is `limit` by default, so that a call waits about as long as one other takes. 0: no call waits.

        `wait_limit_s` is the longest wait in seconds, 30 by default, within the call's deadline. `key` returns the
        group that a call belongs to, by default its tool. `clock` returns seconds.

        Raises:
            ConfigurationError: A number is not above 0.
        """
        check_above_zero("Concurrency", limit=limit, wait_limit_s=wait_limit_s)
        self._limit = limit
        self._queue_limit = limit if queue_limit is None else queue_limit
        self._wait_limit_s = wait_limit_s
        self._key = key
        self._clock = clock
        self._places = Keyed(lambda: _Places(limit, self._queue_limit), lambda places: not places.gate.inside)

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.is_composite:
            return await call_next(call)
        places = self._places.of(self._key(call))
        try:
            is_in = await call.pass_gate(places.gate, self._wait_limit_s)
        except GateFull:
            is_in = False
        if not is_in:
            running = f"{count_of(self._limit, 'call runs', 'calls run')}"
            return failure_before_start(
                call, "overloaded", f"{running} and {self._queue_limit} wait already", places.wait_s
            )
        started = self._clock()
        try:
            return await call_next(call)
        finally:
            places.took(self._clock() - started)
            places.gate.leave()


class _Places:
    """The calls of one key, and their mean duration."""

    def __init__(self, limit: int, queue_limit: int) -> None:
        self.gate = Gate(limit, queue_limit=queue_limit)
        self._mean_s = 0.0

    @property
    def wait_s(self) -> float:
        """Estimated seconds until all calls that wait now have had their turn."""
        return self._mean_s * (self.gate.waiting + 1) / self.gate.room

    def took(self, seconds: float) -> None:
        # Two threads may write at once, which is harmless for an estimate.
        self._mean_s = seconds if not self._mean_s else self._mean_s + _NEWEST * (seconds - self._mean_s)
