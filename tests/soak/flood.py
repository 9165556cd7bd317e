"""Ten times more calls than can be made, for a minute: memory stays, and those that are taken in take no longer.

Run: python -m tests.soak.flood [seconds]. `tests/invocation/test_flooding.py` is the short form of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

from tests.invocation.test_flooding import (
    GROWTH_LIMIT_MB,
    LIMIT,
    SLOWER_LIMIT,
    WORK_S,
    at_capacity,
    flood,
    p99,
    world_of,
)
from tests.invocation.world import Recording
from tests.soak.mixed import use
from toolwire.invocation.ports.ports import CallRecord

SECONDS = 60.0
CALLS_S = 10 * LIMIT / WORK_S


class Forgetting(Recording):
    """Remembers nothing."""

    def ended(self, record: CallRecord, /) -> None:
        """One call."""


async def soak(seconds: float) -> bool:
    """Prints the outcomes of the calls, and returns whether they are as expected."""
    normal = p99(await at_capacity(world_of(LIMIT), min(seconds, 10.0)))
    world = world_of(LIMIT)
    # The tests' own record of each call would dominate the growth.
    world.recording = Forgetting()
    before = use(0, 0).resident_mb
    found = await flood(world, seconds, CALLS_S)
    grown, slow = use(0, 0).resident_mb - before, p99(found)
    kinds = Counter(how for _, how in found)
    print(
        f"{sum(kinds.values()):,} calls: {dict(kinds)}; the slowest in a hundred of those made {slow * 1e3:.0f} ms, "
        f"{slow / normal:.2f} x as without the flood; {grown:+.1f} MB"
    )
    return grown <= GROWTH_LIMIT_MB and slow <= SLOWER_LIMIT * normal and set(kinds) == {"success", "overloaded"}


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(soak(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)) else 1)
