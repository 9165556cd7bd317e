"""The world of calls, once for each driver, and a clock that nobody waits for."""

from __future__ import annotations

import pytest

from tests.invocation.conftest import release, world
from tests.invocation.middleware.clock import Clock
from tests.invocation.world import World

__all__ = ["clock", "release", "world"]


@pytest.fixture
def clock(world: World) -> Clock:
    """What the world sleeps by."""
    found = Clock()
    world.on_sleep = found.sleep
    return found
