"""Cancels tasks once, and waits for their clean-up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class StillRunning(asyncio.CancelledError):
    """A cancellation whose work did not end in time: a thread, or a tool that goes on with its clean-up."""


def cancel_once(task: asyncio.Task[Any]) -> None:
    """Cancels a task that was not cancelled before: a second cancellation would interrupt its clean-up."""
    if not task.cancelling():
        task.cancel()


async def have_ended(works: Iterable[asyncio.Future[Any]], limit_s: float) -> bool:
    """Returns True if all of them ended within the limit.

    Raises:
        asyncio.CancelledError: the wait was cancelled. It is raised when the wait is over, not before.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    left: set[asyncio.Future[Any]] = {work for work in works if not work.done()}
    cancelled: asyncio.CancelledError | None = None
    while left and (left_s := until - loop.time()) > 0:
        try:
            _, left = await asyncio.wait(left, timeout=left_s)
        except asyncio.CancelledError as error:
            cancelled = error
            left = {work for work in left if not work.done()}
    if cancelled is None:
        return not left
    if left:
        raise StillRunning from cancelled
    raise cancelled
