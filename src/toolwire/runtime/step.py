"""Runs a colourless coroutine without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def step(core: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine with a single `send(None)` in this thread and returns its result.

    The ports that `core` awaits must never suspend. A port that suspends is a bug in toolwire, not in the caller.
    """
    try:
        core.send(None)
    except StopIteration as done:
        return done.value
    core.close()
    raise AssertionError("a port waited for an event loop in a blocking call")
