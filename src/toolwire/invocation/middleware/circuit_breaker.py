"""`CircuitBreaker`: stops calling a tool for a while if it cannot be reached."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from toolwire.invocation.middleware.keys import Key, Keyed, by_tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import (
    check_above_zero,
    failure_before_start,
    is_transport_failure,
    never_started,
)
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

FAILURES = 5
"""Default number of failures in a row that open a circuit. It is more than chance, and reached soon."""
OPEN_S = 30.0
"""Default number of seconds until an open circuit is probed, about the time a service takes to restart."""

_LOG = logging.getLogger("toolwire.middleware")


class CircuitBreaker:
    """Fails further calls at once as `unavailable` after `failures` transport failures in a row.

    After `open_s` seconds one call is let through. If it arrives, the circuit closes. A tool's own error counts as an
    arrival. Each tool has its own circuit, unless `key` makes calls share one. Programs have no circuit.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(
        self,
        failures: int = FAILURES,
        *,
        open_s: float = OPEN_S,
        trips: Callable[[ToolResult], bool] = is_transport_failure,
        key: Key = by_tool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`failures` is 5 and `open_s` is 30 by default. `trips` tells which results are transport failures.

        `key` returns the circuit that a call belongs to, by default its tool. `clock` returns seconds.

        Raises:
            ConfigurationError: A number is not above 0.
        """
        check_above_zero("CircuitBreaker", failures=failures, open_s=open_s)
        self._failures = failures
        self._open_s = open_s
        self._trips = trips
        self._key = key
        self._clock = clock
        self._lock = threading.Lock()
        self._circuits = Keyed(_Circuit, _Circuit.is_idle)

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.is_composite:
            return await call_next(call)
        circuit = self._circuits.of(self._key(call))
        with self._lock:
            wait_s = self._wait_s(circuit)
            epoch = circuit.epoch
        if wait_s is not None:
            return failure_before_start(
                call, "unavailable", f"it could not be reached {count_of(self._failures, 'time')} in a row", wait_s
            )
        try:
            result = await call_next(call)
        except BaseException:
            self._count_end(circuit, epoch, None, call)
            raise
        self._count_end(circuit, epoch, None if never_started(result) else not self._trips(result), call)
        return result

    def _wait_s(self, circuit: _Circuit) -> float | None:
        """Returns None if the call may pass, else the seconds until one may."""
        if circuit.opened_at is None:
            return None
        left_s = circuit.opened_at + self._open_s - self._clock()
        if left_s > 0 or circuit.is_probing:
            return max(left_s, 0.0)
        circuit.is_probing = True
        circuit.epoch += 1
        return None

    def _count_end(self, circuit: _Circuit, epoch: int, arrived: bool | None, call: PreparedCall) -> None:
        """Counts the end of a call. `arrived` is None if the call proves nothing about the tool's reachability."""
        with self._lock:
            # A call that began before the circuit opened proves nothing about the current state.
            if epoch != circuit.epoch:
                return
            was_probing, circuit.is_probing = circuit.is_probing, False
            if arrived is None:
                return
            if arrived:
                circuit.failures, circuit.opened_at = 0, None
            else:
                circuit.failures += 1
                if was_probing or circuit.failures >= self._failures:
                    circuit.opened_at = self._clock()
                    circuit.epoch += 1
            is_open = circuit.opened_at is not None
        if is_open:
            _LOG.warning("the circuit of %r is open for %g s: it cannot be reached", call.tool, self._open_s)
        elif was_probing:
            _LOG.warning("the circuit of %r is closed: it can be reached again", call.tool)


class _Circuit:
    """The state of the connection to one tool or server."""

    __slots__ = ("epoch", "failures", "is_probing", "opened_at")

    def __init__(self) -> None:
        self.failures = 0
        """Number of failures in a row."""
        self.opened_at: float | None = None
        """The time when the circuit opened; None while it is closed."""
        self.is_probing = False
        """True while the probe call through an open circuit is running."""
        self.epoch = 0
        """Counts openings and probes."""

    def is_idle(self) -> bool:
        return not self.failures and self.opened_at is None
