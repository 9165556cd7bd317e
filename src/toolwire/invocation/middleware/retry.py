"""`Retry`: repeats a call after a transport failure, if a second call does no harm."""

from __future__ import annotations

import random as _random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import ClassVar

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero, had_no_effect, is_transport_failure
from toolwire.vocabulary.results import ToolResult

ATTEMPTS = 3
"""Default maximum number of attempts. A call that fails three times in a row mostly fails a fourth time."""
FIRST_WAIT_S = 0.2
"""Default maximum wait before the second attempt in seconds. It doubles with each further attempt."""
LONGEST_WAIT_S = 10.0
"""Default maximum wait between two attempts in seconds. A model's turn should not pause for longer."""
BUDGET = 0.1
"""Default number of retries earned by each successful call. One in ten does not make an outage worse."""
SPARE_RETRIES = 10
"""Default number of retries available at the start, and the maximum that is saved up."""


class Retry:
    """Repeats a call after a transport failure (`is_transport_failure`). The wait is random, and its maximum doubles.

    It repeats calls of tools declared idempotent (`idempotent="natural"` or `"key"`), calls that never reached their
    tool, and calls that the tool did not send (`CallNotSent`). A call is not repeated if a part of its output was
    already shown, or if its deadline is too near. The result of several attempts has `metadata["attempts"]`.
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
        """`attempts` is the maximum number of attempts, 3 by default.

        `first_wait_s` and `longest_wait_s` bound the wait in seconds, 0.2 and 10 by default. Each call without a
        transport failure earns `budget` retries, 0.1 by default. `spare_retries` are available at the start and are the
        most that is saved up, 10 by default. Calls with the same `key` share a budget. In an outage it is soon spent,
        and each call is then made once.

        `is_transient` tells which results are repeated. `clock` must be the clock of deadlines. `random` returns a
        number from 0 to 1, the fraction of the maximum wait.

        Raises:
            ConfigurationError: A number is not above 0.
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
        """Returns the seconds until the next attempt. None if there is to be no further attempt."""
        failure = result.failure
        if failure is None or attempt >= self._attempts or result.blocks or not self._is_transient(result):
            return None
        if call.effects.idempotent == "no" and not had_no_effect(result):
            return None
        wait_s = self._random() * min(self._longest_wait_s, self._first_wait_s * 2 ** (attempt - 1))
        told_s = failure.data.get("retry_after_s")
        if isinstance(told_s, int | float):
            wait_s = max(wait_s, told_s)
        is_in_time = call.deadline is None or self._clock() + wait_s < call.deadline
        return wait_s if wait_s <= self._longest_wait_s and is_in_time else None


class _Budget:
    """The number of retries that are left."""

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
