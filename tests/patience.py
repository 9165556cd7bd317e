"""How long a test waits for a condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60
"""Seconds for a condition that comes at once on a machine at rest; only a test that fails waits for so long."""


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition that another process or thread fulfils in its own time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


async def eventually(look: Callable[[], Awaitable[T]], wanted: T) -> None:
    """Looks until the value is the wanted one, which a server gives in its own time."""
    found = await look()
    deadline = time.monotonic() + PATIENCE_S
    while found != wanted:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)
        found = await look()
