"""The world, once for each driver."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.invocation.world import World


@pytest.fixture(params=["blocking", "asyncio"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Tools and a driver, which is shut down afterwards."""
    found = World(driver=request.param)
    yield found
    found.runtime.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set it to let tools go that wait for it; it is set at the end in any case."""
    event = threading.Event()
    yield event
    event.set()
