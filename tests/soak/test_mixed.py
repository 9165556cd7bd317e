"""The short forms of `python -m tests.soak.mixed`."""

from __future__ import annotations

import gc
import logging
import threading
import tracemalloc

import pytest

from tests.soak.mixed import Use, add, soak, use
from toolwire import ToolRegistry

CALLS, CALLS_WHOLE = 20_000, 100_000
LEAK_LIMIT_BYTES = 200_000
"""For 100,000 calls, two bytes each: a single object kept from each would be twenty times as much."""


def grown(registry: ToolRegistry, calls: int) -> int:
    """Bytes of Python objects that a number of calls left behind."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(calls):
        registry.invoke("add", {"a": number, "b": 2})
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


@pytest.mark.threat(64)
def test_many_calls_leave_nothing_behind(whole: bool) -> None:
    registry, threads = ToolRegistry(), threading.active_count()
    registry.register(add)
    for number in range(CALLS_WHOLE if whole else CALLS):
        assert registry.invoke("add", {"a": number, "b": 2}).data == number + 2
    # Other threads of this process keep objects too: what the calls themselves keep is in the smallest of three looks.
    assert min(grown(registry, 10_000) for _ in range(3)) <= LEAK_LIMIT_BYTES / 10
    # Threads that tests before this one left behind may end meanwhile.
    assert threading.active_count() <= threads
    # The control: the log keeps its entries, so a tenth of the calls is too much already.
    registry.enable_logging()
    assert grown(registry, 1_000) > LEAK_LIMIT_BYTES / 10


@pytest.mark.threat(64)
async def test_rounds_of_every_kind_of_call_leave_files_tasks_and_threads_as_they_were(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "toolwire")
    samples: list[Use] = []
    made = await soak(lambda made: made >= 6_400, lambda _: samples.append(use(0, 0)))
    assert made == 6_400
    assert samples
    assert {each.tasks for each in samples} == {samples[0].tasks}
    assert max(each.files for each in samples) <= samples[0].files + 4
