"""Tracing that is off costs nothing to speak of."""

from __future__ import annotations

from benchmarks.tracing import off_cost_us

GENEROUS_US = 2.0
"""Four times what `benchmarks/tracing.py` holds it to: the suite shares its machine."""


def test_a_call_that_nobody_follows_costs_no_more() -> None:
    # The best of three: another process's interrupts are not the call's cost.
    assert min(off_cost_us(rounds=9, number=500) for _ in range(3)) <= GENEROUS_US
