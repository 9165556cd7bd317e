"""Built-in tools with texts of twenty shapes in sizes of 1, 2, 4 and 8: eight times the size costs at most 16 times.

A call of at most 1 MB also takes no more than a processor second and 128 MB. Each tool meets each shape in a process
of its own. Run: python -m benchmarks.fuzz_tools [bytes of size 1] [start of a target's name]. The suite runs a short
form of it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processor import REFERENCE_MS, reference, thread_s

from benchmarks.fuzzing import MEMORY_LIMIT_BYTES, PROCESSOR_LIMIT_S
from benchmarks.tool_shapes import SHAPES, Shape
from benchmarks.tool_targets import TARGETS, Target, prepare_all

STEPS = (8, 4, 2, 1)
"""The largest size is first: memory that was freed would hide its peak."""
MOST_GROWTH = 16.0
"""Most times that the cost of the eightfold size may be that of the single one. Linear work has 8."""
FLOOR_S = 0.05
"""A cost below it counts as this: the call itself, the choice of an algorithm and noise make most of it."""
SIZE_BYTES = 125_000
"""Bytes of size 1, so that size 8 is 1 MB."""
ROUNDS = 4
"""How often a cost over the bound is measured: other work on the machine only ever adds to it."""
_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one: the processor is measured, and a disk only makes it wait."""
KILLED_S = 60
"""Processor seconds after which a process is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one call."""

    seconds: float
    """Processor seconds on the machine for which limits are chosen."""
    grown_bytes: int
    """By how much it raised the peak of the process."""
    kind: str
    """The kind of its failure; empty for a success."""


def costs_of(target: Target, shape: Shape, size: int, steps: Sequence[int] = STEPS) -> dict[int, Cost] | None:
    """Returns the cost of the target for each step, measured in another process. None if that was killed."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        code = 1
        try:
            signal.setitimer(signal.ITIMER_PROF, KILLED_S)
            found = {step: _measured(target, shape, size * step) for step in steps}
            os.write(writes, json.dumps([[step, *found[step]] for step in steps]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    if not answer:
        return None
    rows = json.loads(answer)
    return {row[0]: Cost(seconds=row[1], grown_bytes=row[2], kind=row[3]) for row in rows}


def _measured(target: Target, shape: Shape, size: int) -> tuple[float, int, str]:
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        call = target.prepare(shape.made(size), Path(folder))
        standard = min(thread_s(reference) for _ in range(2))
        gc.collect()
        # Sets the peak of the process to its present size.
        Path("/proc/self/clear_refs").write_text("5")
        before, started = _peak_bytes(), time.process_time()
        kind = call()
        seconds = time.process_time() - started
        grown = _peak_bytes() - before
        standard = min(standard, *(thread_s(reference) for _ in range(2)))
    return seconds / standard * REFERENCE_MS / 1_000, grown, kind


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def faults(target: Target, shape: Shape, size: int, steps: Sequence[int] = STEPS) -> list[str]:
    """Returns the faults of the target with texts of the shape: too slow, too much memory, or a wrong failure."""
    least: dict[int, Cost] = {}
    found: list[str] = []
    for _ in range(ROUNDS):
        costs = costs_of(target, shape, size, steps)
        if costs is None:
            return [f"it was killed after {KILLED_S} processor seconds"]
        for step, cost in costs.items():
            seconds = min(cost.seconds, least[step].seconds) if step in least else cost.seconds
            least[step] = Cost(seconds=seconds, grown_bytes=cost.grown_bytes, kind=cost.kind)
        found = list(_faults(least, target, size))
        if not found:
            break
    return found


def _faults(costs: dict[int, Cost], target: Target, size: int) -> Iterator[str]:
    small, large = costs[1], costs[8]
    growth = large.seconds / max(small.seconds, FLOOR_S)
    if growth > MOST_GROWTH:
        yield f"8 times the size costs {growth:.0f} times as much: {large.seconds:.2f} s"
    megabytes = max(size * 8 / 1_000_000, 1.0)
    if large.seconds > PROCESSOR_LIMIT_S * megabytes * target.share:
        yield f"it costs {large.seconds:.2f} processor seconds"
    if large.grown_bytes > MEMORY_LIMIT_BYTES * megabytes * target.share:
        yield f"it takes {large.grown_bytes / 1_000_000:.0f} MB"
    for step, cost in costs.items():
        if cost.kind not in ("", "limit", *target.failures):
            yield f"it failed with {cost.kind!r} at size {step}"


def main(size: int, *, start: str = "", is_short: bool = False) -> int:
    """Returns the number of faults, each of which is printed. Only targets are tried whose names begin with `start`.

    `is_short` tries one shape of each fourth target, in two sizes.
    """
    shapes_of_each, steps, every = (1, (8, 1), 4) if is_short else (len(SHAPES), STEPS, 1)
    prepare_all()
    count = wrong = 0
    for number, target in enumerate(TARGETS):
        if number % every or not target.name.startswith(start):
            continue
        began = time.monotonic()
        for place in range(shapes_of_each):
            shape = SHAPES[(number + place) % len(SHAPES)]
            for fault in faults(target, shape, size, steps):
                wrong += 1
                print(f"{target.name}, {shape.name}: {fault}", flush=True)
        count += shapes_of_each
        print(f"{target.name}: {shapes_of_each} shapes in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{count} pairs of a tool and a shape, size 1 is {size:,} bytes: {wrong} faults")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(int((sys.argv[1:2] or [SIZE_BYTES])[0]), start=" ".join(sys.argv[2:]))))
