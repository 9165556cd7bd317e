"""Compares the processor time of two works, so that a busy machine gives the answer of a machine at rest."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ROUNDS = 25
LEAST_ROUNDS = 2
CLEAR = 1.5
"""A ratio that is so many times less than enough needs no second round: one disturbance does not hide that much."""
LINEAR = 7.3
"""Most growth for four times the input: 2.7 for each doubling. Linear work has 4, quadratic work 16.

Linear work has been seen at 6.5 on a slow machine.
"""
REFERENCE_MS = 4.5
"""Processor time of `reference` on the machine at rest for which limits in milliseconds were chosen."""
_FLOOR_S = 0.000_25
"""Below this the caches of the processor are measured, not the work."""


def ratio(
    cost: Callable[[], float],
    base: Callable[[], float],
    *,
    enough: float,
    floor: float = 0,
    least_rounds: int | None = None,
    rounds: int = ROUNDS,
) -> float:
    """The cost of a work as a multiple of the cost of another.

    Other work on the machine only ever adds to a cost. So each cost is measured in turns, the least one counts,
    and the measurement goes on until the ratio is `enough` or the rounds are used up.

    `least_rounds` is LEAST_ROUNDS if it is None, and 1 if the ratio is far below `enough`.
    """
    least_cost = least_base = float("inf")
    found = float("inf")
    for number in range(1, rounds + 1):
        least_base = min(least_base, base())
        least_cost = min(least_cost, cost())
        found = least_cost / max(least_base, floor)
        needed = least_rounds or (1 if found <= enough / CLEAR else LEAST_ROUNDS)
        if number >= needed and found <= enough:
            break
    return found


def growth(work: Callable[[T], object], small: T, large: T, *, enough: float = LINEAR, rounds: int = ROUNDS) -> float:
    """How many times longer the work takes for the large input, of four times the size, than for the small one.

    The small work is done four times in a row: a short measurement finds a quiet moment more often than a long one.
    """

    def small_s() -> float:
        return thread_s(lambda: [work(small) for _ in range(4)]) / 4

    return ratio(lambda: thread_s(lambda: work(large)), small_s, enough=enough, floor=_FLOOR_S, rounds=rounds)


def milliseconds(work: Callable[[], object], *, enough: float) -> float:
    """Processor time of the work on the machine of `REFERENCE_MS`, at rest.

    Machines have different strengths, so a limit is at least 1.5 times the cost of the work that it bounds.

    Neighbours on a processor slow all work on it alike, which a least cost cannot take away; the reference shows it.
    """
    multiple = ratio(lambda: thread_s(work), lambda: thread_s(reference), enough=enough / REFERENCE_MS)
    return multiple * REFERENCE_MS


def seconds(work: Callable[[], object], *, enough: float) -> float:
    """As `milliseconds`, in seconds, for long work: it is repeated only while it costs more than `enough`."""
    return at_rest(lambda: thread_s(work), enough=enough)


def at_rest(cost: Callable[[], float], *, enough: float, rounds: int = ROUNDS) -> float:
    """Seconds of a measured cost on the machine of `REFERENCE_MS`, at rest. Repeated while they exceed `enough`."""
    standard_s = REFERENCE_MS / 1000
    return standard_s * ratio(
        cost, lambda: thread_s(reference), enough=enough / standard_s, least_rounds=1, rounds=rounds
    )


def thread_s(work: Callable[[], object]) -> float:
    """Processor seconds of this thread for the work, without those of the garbage collector."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        started = time.thread_time()
        work()
        return time.thread_time() - started
    finally:
        if was_enabled:
            gc.enable()


def reference() -> dict[str, int]:
    words: dict[str, int] = {}
    for number in range(20_000):
        word = f"w{number % 97}"
        words[word] = words.get(word, 0) + 1
    return words
