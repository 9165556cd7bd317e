"""The bound that the fuzzers of schemas and arguments hold, and the command line of all fuzzers."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from tests.processor import milliseconds

T = TypeVar("T")

LIMIT_BYTES = 1_000_000
"""Bytes of the JSON text of one schema, or of one call's arguments."""

PROCESSOR_LIMIT_S = 1.0
"""Processor seconds of one step: a definition, a call, or one text."""

MEMORY_LIMIT_BYTES = 128 * 1024 * 1024
"""Bytes by which one step may raise the peak memory of the process."""


class Fuzzed(NamedTuple):
    """One run of a fuzzer."""

    tried: int
    seed: int
    found: int
    """The sum of the results of its rounds."""


def within_bound(do: Callable[[], T], *, limit_s: float, told: Callable[[], str]) -> T:
    """Returns the result of a step that costs no more than it may.

    Raises:
        AssertionError: The step costs more. `told` says which step it was.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    try:
        return do()
    finally:
        seconds = time.process_time() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024
        if seconds > limit_s:
            seconds = _at_rest_s(do, limit_s)
        if seconds > limit_s or grown > MEMORY_LIMIT_BYTES:
            raise AssertionError(f"{seconds:.2f} processor seconds and {grown:,} bytes: {told()}")


def _at_rest_s(do: Callable[[], object], limit_s: float) -> float:
    """Processor seconds of the step on a machine at rest: other work on the machine slows it two or three times."""

    def again() -> None:
        with suppress(Exception):
            do()

    return milliseconds(again, enough=limit_s * 1000) / 1000


def run(fuzz: Callable[[int, int], int], *, count: int, seconds: float) -> Fuzzed:
    """Fuzzes in rounds of `count` for the seconds, and from the seed, of the command line."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else seconds
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    until, rounds, found = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        found += fuzz(count, seed + rounds)
        rounds += 1
    return Fuzzed(rounds * count, seed, found)
