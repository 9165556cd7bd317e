"""Work on large values goes to a thread beside the event loop, which must not stand still for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from toolwire.invocation.ports import Ports

T = TypeVar("T")

ASIDE_BYTES = 65_536
"""Bytes of a value from which work on it leaves the event loop: below, a thread costs more than the work."""

_ITEM_BYTES = 8
"""Bytes that each item of a container counts at least: to go through many small ones takes time as well."""


def is_large(value: Any) -> bool:
    """Whether a value in JSON types has more than `ASIDE_BYTES`, seen without going through all of it."""
    left, waiting = ASIDE_BYTES, [value]
    while waiting and left >= 0:
        found = waiting.pop()
        kind = cast("object", type(found))
        if kind is str or kind is bytes:
            left -= len(found)
        elif kind is dict:
            left -= _ITEM_BYTES * len(found)
            if left >= 0:
                waiting += found.keys()
                waiting += found.values()
        elif kind is list or kind is tuple:
            left -= _ITEM_BYTES * len(found)
            if left >= 0:
                waiting += found
    return left < 0


async def beside(ports: Ports, is_large: bool, function: Callable[[], T]) -> T:
    """What the function gives: from a thread, if its values are large and an event loop waits for it."""
    return await ports.aside(function) if is_large else function()
