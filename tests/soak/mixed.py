"""Calls of every kind, for as long as one likes: memory, files, tasks and threads stay flat.

Run: python -m tests.soak.mixed [seconds]. The suite runs a short form of it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolwire import CallContext, Rule, ToolRegistry, ToolResult, ToolSpec
from toolwire.middleware import Cache, CircuitBreaker, Concurrency, RateLimit, Retry, TimeLimit

SECONDS = 600.0
WARM_UP_SHARE = 0.25
"""The part of a run in which caches, pools and allocators fill."""
SLOPE_LIMIT_MB_H = 1.0
ROUND_CALLS = 16
SAMPLE_S = 1.0
LONG_SAMPLE_S = 5.0
"""Samples are kept in memory: one a second would take more than half of the permitted growth."""
NO_THREAD_CACHES = "glibc.malloc.tcache_count=0"
"""glibc keeps some freed blocks of each size for each thread. As rarer sizes turn up, that grows with the logarithm of
the calls, to a quarter of a megabyte a thread. For hours this is more than the leak that the test looks for."""
SPARE_THREADS = 4
"""Workers that a moment busier than all before may add: they stay, and are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The resources of the process."""

    at_s: float
    calls: int
    resident_mb: float
    files: int
    threads: int
    tasks: int


def registry_of(*, everything: bool = True) -> ToolRegistry:
    """Tools of every kind, under every middleware."""
    layers = [
        TimeLimit({"*": 30}),
        Cache(ttl_s=0.5, entries_limit=50),
        Retry(first_wait_s=0.0001),
        CircuitBreaker(open_s=0.05),
        RateLimit(100_000, per_s=0.001),
        Concurrency(32),
    ]
    registry = ToolRegistry(
        middleware=layers if everything else (),
        rules=[Rule(effect="deny", tool="forbidden")],
        result_limit_bytes=1_000,
    )
    for tool in (add, add_later, fail, parts, long, outer):
        registry.register(tool)
    registry.register(ToolSpec.from_function(look, effects=["read"], idempotent="natural"))
    registry.register(ToolSpec.from_function(flaky, idempotent="natural"))
    registry.register(lambda: None, name="forbidden")
    registry.register(lambda: None, name="alone", alone="printer")
    registry.configure(result_pages=True)
    registry.configure(background_calls=True)
    registry.enable_logging()
    return registry


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Adds, later."""
    await asyncio.sleep(0)
    return a + b


def fail() -> None:
    """Fails."""
    raise ValueError("as it must")


def flaky() -> None:
    """Cannot reach anything."""
    raise ConnectionRefusedError


def look(n: int) -> list[int]:
    """Looks."""
    return [n] * 10


def parts() -> Any:
    """Gives its output part by part."""
    yield from ("one", "two", "three")


def long() -> str:
    """Gives more than fits."""
    return "a line\n" * 500


async def outer(context: CallContext) -> str:
    """Calls another tool."""
    return (await context.call("add", a=1, b=2)).text


def calls_of(number: int) -> list[tuple[str, dict[str, Any]]]:
    """A round of calls; every round is like any other."""
    return [
        ("add", {"a": number, "b": 2}),
        ("add_later", {"a": 1, "b": number}),
        ("fail", {}),
        ("flaky", {}),
        ("look", {"n": number % 100}),
        ("look", {"n": number % 100}),
        ("parts", {}),
        ("long", {}),
        ("outer", {}),
        ("forbidden", {}),
        ("alone", {}),
        ("alone", {}),
        ("add", {"a": "no", "b": 2}),
        ("missing", {}),
        ("start_call", {"tool": "add", "arguments": {"a": 1, "b": 1}}),
        ("read_result", {"id": "0" * 32}),
    ]


async def soak(is_over: Callable[[int], bool], sample: Callable[[Use], None], *, every_s: float = SAMPLE_S) -> int:
    """Makes rounds of calls until it is over; gives how many calls were made."""
    registry, started, made, due = registry_of(), time.monotonic(), 0, 0.0
    try:
        while not is_over(made):
            results = await asyncio.gather(
                *(registry.ainvoke(name, arguments) for name, arguments in calls_of(made // ROUND_CALLS))
            )
            made += len(results)
            _check(results)
            if time.monotonic() >= due:
                gc.collect()
                sample(use(time.monotonic() - started, made))
                # Counted from here: in a process that holds much, a collection takes longer than a round.
                due = time.monotonic() + every_s
    finally:
        registry.close()
    return made


def _check(results: list[ToolResult]) -> None:
    kinds = [None if result.failure is None else result.failure.kind for result in results]
    expected = [None, None, "tool_error", kinds[3], *[None] * 5, "denied", None, None]
    assert kinds == [*expected, "invalid_arguments", "unknown_tool", None, "invalid_arguments"], kinds
    assert kinds[3] in ("tool_error", "unavailable")


def use(at_s: float, calls: int) -> Use:
    """The resources held now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return Use(
        at_s=at_s,
        calls=calls,
        resident_mb=pages * os.sysconf("SC_PAGE_SIZE") / 1_048_576,
        files=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        threads=threading.active_count(),
        tasks=len(asyncio.all_tasks()),
    )


def slope_mb_h(samples: list[Use]) -> float:
    """Megabytes an hour by which memory grew, by least squares."""
    n = len(samples)
    mean_s, mean_mb = sum(each.at_s for each in samples) / n, sum(each.resident_mb for each in samples) / n
    above = sum((each.at_s - mean_s) * (each.resident_mb - mean_mb) for each in samples)
    return 3600 * above / (sum((each.at_s - mean_s) ** 2 for each in samples) or 1.0)


def main() -> int:
    """Prints the resources held; exits 1 when one of them grew."""
    if "GLIBC_TUNABLES" not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "GLIBC_TUNABLES": NO_THREAD_CACHES})
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    logging.getLogger("toolwire").setLevel(logging.CRITICAL)
    samples: list[Use] = []
    until = time.monotonic() + seconds
    made = asyncio.run(soak(lambda _: time.monotonic() >= until, samples.append, every_s=LONG_SAMPLE_S))
    warm = [each for each in samples if each.at_s >= WARM_UP_SHARE * seconds]
    slope = slope_mb_h(warm)
    print(f"warm    {warm[0]}\nlast    {warm[-1]}\n{made:,} calls, {slope:+.2f} MB an hour")
    is_flat = all(
        max(getattr(each, what) for each in warm[len(warm) // 2 :])
        <= max(getattr(each, what) for each in warm[: len(warm) // 2 + 1]) + spare
        for what, spare in (("files", 0), ("threads", SPARE_THREADS), ("tasks", 0))
    )
    return 0 if is_flat and slope <= SLOPE_LIMIT_MB_H else 1


if __name__ == "__main__":
    sys.exit(main())
