"""`Retry`: makes a call again that failed on the way, where that can do no harm."""

from __future__ import annotations

import random as _random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import ClassVar

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero, is_transport_failure, never_started
from toolwire.vocabulary.results import ToolResult

ATTEMPTS = 3
"""Times that a call is made at most: what fails three times in a row mostly fails a fourth time."""
FIRST_WAIT_S = 0.2
"""Seconds before the second attempt at most; each further one may wait twice as long."""
LONGEST_WAIT_S = 10.0
"""Seconds between two attempts at most: a model's turn should not stand still for longer."""
BUDGET = 0.1
"""Retries that each call which went through pays for: one in ten, so that an outage is not made worse by them."""
SPARE_RETRIES = 10
"""Retries that may be made ahead of such calls, and the most that are saved up."""


class Retry:
    """Makes a call again that failed on the way (`is_transport_failure`), after a random wait that doubles each time.

    Only calls of tools declared idempotent (`idempotent="natural"` or `"key"`), and calls that never reached their
    tool. None whose output somebody has seen a part of, and none that its deadline leaves no time for. A result of
    several attempts says so: `metadata["attempts"]`.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(
        self,
        attempts: int = ATTEMPTS,
        *,
        first_wait_s: float = FIRST_WAIT_S,
        longest_wait_s: float = LONGEST_WAIT_S,
        budget: float = BUDGET,
        spare_retries: int = SPARE_RETRIES,
        is_transient: Callable[[ToolResult], bool] = is_transport_failure,
        key: Key = by_tool,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = _random.random,
    ) -> None:
        """`budget` retries, at most, for each call that went through; `spare_retries` may be made ahead of them. Calls
        of one `key` share that budget: in an outage it is soon spent, and calls are then made once.

        `clock` is that of deadlines. `random` gives numbers from 0 to 1: the share of the longest wait that is waited.

        Raises:
            ConfigurationError: a number that is not above 0.
        """
        check_above_zero("Retry", attempts=attempts, first_wait_s=first_wait_s, longest_wait_s=longest_wait_s)
        check_above_zero("Retry", budget=budget, spare_retries=spare_retries)
        self._attempts = attempts
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._is_transient = is_transient
        self._key = key
        self._clock = clock
        self._random = random
        self._budgets = Keyed(lambda: _Budget(budget, spare_retries), _Budget.is_full)

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        budget = self._budgets.of(self._key(call))
        for attempt in count(1):
            result = await call_next(call)
            if not self._is_transient(result):
                budget.earn()
            wait_s = self._wait_s(call, result, attempt)
            if wait_s is None or not budget.spend():
                return result if attempt == 1 else result.with_metadata(attempts=attempt)
            await call.sleep(wait_s)
        raise AssertionError("the loop has no end of its own")

    def _wait_s(self, call: PreparedCall, result: ToolResult, attempt: int) -> float | None:
        """Seconds until the next attempt; None when there is to be none."""
        failure = result.failure
        if failure is None or attempt >= self._attempts or result.blocks or not self._is_transient(result):
            return None
        if call.effects.idempotent == "no" and not never_started(result):
            return None
        wait_s = self._random() * min(self._longest_wait_s, self._first_wait_s * 2 ** (attempt - 1))
        told_s = failure.data.get("retry_after_s")
        if isinstance(told_s, int | float):
            wait_s = max(wait_s, told_s)
        is_in_time = call.deadline is None or self._clock() + wait_s < call.deadline
        return wait_s if wait_s <= self._longest_wait_s and is_in_time else None


class _Budget:
    """Retries that may still be made."""

    def __init__(self, share: float, most: int) -> None:
        self._share = share
        self._most = most
        self._left = float(most)
        self._lock = threading.Lock()

    def earn(self) -> None:
        with self._lock:
            self._left = min(self._left + self._share, self._most)

    def spend(self) -> bool:
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True

    def is_full(self) -> bool:
        return self._left == self._most
