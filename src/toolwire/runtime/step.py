"""Runs a colourless coroutine without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def step(core: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, by a single `send(None)` in this thread.

    The ports that `core` awaits must never suspend; one that does is a fault of ours, not of the caller's.
    """
    try:
        core.send(None)
    except StopIteration as done:
        return done.value
    core.close()
    raise AssertionError("a port waited for an event loop in a blocking call")
