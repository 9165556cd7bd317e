"""Calls of a program that run on the event loop of its own call, while its thread answers the other calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from toolwire.runtime.portal import tie
from toolwire.runtime.workers import PROGRAM_SHARE, program_share
from toolwire.vocabulary.gate import Gate

T = TypeVar("T")


class LoopCalls:
    """Starts coroutines on the current loop, from any thread. At the end of the block it cancels those that run.

    It does not wait for their clean-up: the owner of the calls does.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._share = Gate(PROGRAM_SHARE)
        self._running: dict[asyncio.Task[Any], Future[Any]] = {}
        self._is_over = False

    async def __aenter__(self) -> LoopCalls:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        for future in list(self._running.values()):
            future.cancel()

    def start(self, function: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Starts the coroutine and returns a future of its result. Cancelling the future cancels the coroutine."""
        future: Future[T] = Future()
        try:
            self._loop.call_soon_threadsafe(self._begin, function, future)
        except RuntimeError:
            # The loop was closed: the program has ended for its caller.
            future.cancel()
        return future

    def _begin(self, function: Callable[[], Coroutine[Any, Any, T]], future: Future[T]) -> None:
        if self._is_over:
            future.cancel()
            return
        task = tie(self._shared(function, future), future)
        if task is not None:
            self._running[task] = future
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._running[task]

    async def _shared(self, function: Callable[[], Coroutine[Any, Any, T]], future: Future[T]) -> T:
        if future.cancelled():
            # The program's thread gave the call up before this loop came to it.
            raise asyncio.CancelledError
        program_share.set(self._share)
        return await function()
