"""Fair timing on a noisy machine: the variants take turns, and medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ROUNDS = 31


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured thing beside its floor."""

    name: str
    ratio: float
    """The ratio to the floor; or seconds or milliseconds, as `unit` says."""
    limit: float | None
    """The bound of the figure; None for peers, which are only compared with."""
    unit: str = "x"
    is_least: bool = False
    """The limit is the least that must be reached."""

    @property
    def is_met(self) -> bool:
        if self.limit is None:
            return True
        return self.ratio >= self.limit if self.is_least else self.ratio <= self.limit


def medians(variants: Mapping[str, Callable[[], object]], *, number: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of one call of each variant; in each round every variant runs `number` times, one after another."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, variant in variants.items():
            started = time.perf_counter()
            for _ in range(number):
                variant()
            times[name].append((time.perf_counter() - started) / number)
    return {name: statistics.median(values) for name, values in times.items()}


def show(title: str, figures: list[Figure]) -> None:
    """A table that reads without colour."""
    print(f"\n{title}")
    for figure in figures:
        bound = "at least" if figure.is_least else "at most"
        limit = "" if figure.limit is None else f"  ({bound} {figure.limit:g} {figure.unit})"
        verdict = "" if figure.limit is None else "  ok" if figure.is_met else "  NOT MET"
        print(f"  {figure.name:<58} {figure.ratio:>9.2f} {figure.unit}{limit}{verdict}")
