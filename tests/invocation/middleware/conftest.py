"""The world of calls, once for each driver, and a clock without real waiting."""

from __future__ import annotations

import pytest

from tests.invocation.conftest import release, world
from tests.invocation.middleware.clock import Clock
from tests.invocation.world import World

__all__ = ["clock", "release", "world"]


@pytest.fixture
def clock(world: World) -> Clock:
    """The clock by which the world sleeps."""
    found = Clock()
    world.on_sleep = found.sleep
    return found
