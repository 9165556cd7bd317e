"""Waits of event loops for the futures of other threads. A thread that resolves many futures wakes each loop once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class _Gathered(threading.local):
    waiters: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] | None = None
    """The waits that end together, by loop; None: each one ends by itself."""


_gathered = _Gathered()


async def wait_for_future(future: Future[T]) -> T:
    """Returns the future's result or raises its error. A cancelled wait does not cancel the future."""
    if future.done():
        return future.result()
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    future.add_done_callback(lambda _: _end_wait(loop, waiter))
    await waiter
    if future.cancelled():
        raise asyncio.CancelledError
    return future.result()


@contextmanager
def one_wake_for_each_loop() -> Generator[None]:
    """Wakes each loop once at the end of the block, for all futures that this thread resolves in it."""
    waiters = _gathered.waiters = dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]]()
    try:
        yield
    finally:
        _gathered.waiters = None
        for loop, of_loop in waiters.items():
            _call_soon(loop, of_loop)


def _end_wait(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    if _gathered.waiters is None:
        _call_soon(loop, [waiter])
    else:
        _gathered.waiters.setdefault(loop, []).append(waiter)


def _call_soon(loop: asyncio.AbstractEventLoop, waiters: list[asyncio.Future[None]]) -> None:
    # A loop that was closed waits for nothing.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_end_all, waiters)


def _end_all(waiters: list[asyncio.Future[Any]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
