"""Moves work on large values to a thread, so that it does not block the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from toolwire.invocation.ports.ports import Ports

T = TypeVar("T")

OFFLOAD_BYTES = 65_536
"""Size in bytes above which work on a value leaves the event loop. Below it, a thread costs more than the work."""

_ITEM_BYTES = 8
"""Minimum number of bytes that each item of a container counts, because many small items take time as well."""


def is_large_value(value: Any) -> bool:
    """True if a value of JSON types has more than `OFFLOAD_BYTES`. The check stops as soon as it knows."""
    left, waiting = OFFLOAD_BYTES, [value]
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


def needs_thread(value: Any, ports: Ports) -> bool:
    """True if work on the value would hold an event loop up for too long."""
    return not ports.is_blocking and is_large_value(value)


async def offload_if(ports: Ports, is_large: bool, function: Callable[[], T]) -> T:
    """Returns the result of the function. It runs in a thread if its values are large and an event loop is running."""
    return await ports.offload(function) if is_large else function()
