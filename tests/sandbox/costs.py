"""How much a piece of work costs the process: memory, processor time, and how long it keeps other threads waiting."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

from tests.processor import at_rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one piece of work."""

    memory_mb: float
    """The most memory that it held at once, above what there was before, in MB of 1,000,000 bytes."""
    processor_s: float
    """Seconds of processor time of the whole process."""
    held_up_s: float
    """The longest time that another thread, which always had work to do, stood still for it: in processor seconds
    of the process, so that other processes do not count."""


_ROUNDS = 40
"""Times that the work is done at most to find how long it keeps other threads waiting."""


def cost_of(work: Callable[[], object], *, enough_s: float = 0.0) -> Cost:
    """Does the work once for its memory, which slows it down, and then for its time.

    A busy machine takes the processor away from the thread that looks, and slows the work. So the work is done again
    until that thread waited for at most `enough_s`; the least time counts, as it would be on the machine at rest.
    """
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    times: list[float] = []
    # The garbage collector would look through the objects of all earlier tests, and hold up every thread for it.
    # They stay frozen: otherwise each full collection of the later tests would look through them again.
    gc.freeze()

    def held_up() -> float:
        processor_s, held_up_s = _times(work)
        times.append(processor_s)
        return held_up_s

    held_up_s = at_rest(held_up, enough=enough_s, rounds=_ROUNDS if enough_s else 1)
    return Cost(memory_mb=(peak - before) / 1e6, processor_s=min(times), held_up_s=held_up_s)


def _times(work: Callable[[], object]) -> tuple[float, float]:
    gaps = [0.0]
    is_over = threading.Event()
    began = threading.Event()

    def look() -> None:
        began.set()
        last, last_own = time.process_time(), time.thread_time()
        while not is_over.is_set():
            now, own = time.process_time(), time.thread_time()
            gaps[0] = max(gaps[0], (now - last) - (own - last_own))
            last, last_own = now, own

    looking = threading.Thread(target=look)
    looking.start()
    began.wait()
    started = time.thread_time()
    try:
        work()
        processor_s = time.thread_time() - started
    finally:
        is_over.set()
        looking.join()
    return processor_s, gaps[0]
