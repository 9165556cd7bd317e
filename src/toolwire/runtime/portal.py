"""An event loop in its own thread, so that blocking callers can run async tools."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from toolwire.runtime.cleanup import cancel_once

T = TypeVar("T")

CLOSE_GRACE_S = 5.0
"""Seconds that `close` waits for cancelled tools to clean up. A tool that does not end is abandoned."""

_HELD_UP: contextvars.ContextVar[frozenset[Portal]] = contextvars.ContextVar("held_up", default=frozenset())
"""The portals whose thread waits for the current code, in any thread. They cannot run anything until it ends."""


class Portal:
    """An event loop in a thread of its own, for coroutines that blocking code waits for.

    One loop serves all threads, so that connections kept by async tools stay usable from call to call.
    """

    def __init__(self, name: str = "toolwire-portal") -> None:
        """`name` is that of the thread."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], Coroutine[Any, Any, T]], *, limit_s: float | None = None) -> T:
        """Runs the coroutine and returns its result.

        Blocks the calling thread, at most `limit_s` seconds; None sets no limit.

        A tool on the portal's own loop that calls a blocking method would wait for itself. Such a nested call gets a
        new loop in a new thread.

        Raises:
            RuntimeError: The portal was closed.
            TimeoutError: The limit passed; the coroutine was cancelled and has ended.
        """
        if limit_s is not None:
            unlimited, function = function, lambda: _run_within(unlimited, limit_s)
        if threading.current_thread() is self._thread or self in _HELD_UP.get():
            return _run_elsewhere(function, _HELD_UP.get() | {self})
        # Created first, so that an interrupt during the start can cancel it too.
        future: Future[T] = Future()
        try:
            self._start(function, future)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, function: Callable[[], Coroutine[Any, Any, T]], future: Future[T] | None = None) -> Future[T]:
        """Starts the coroutine and returns a future of its result, or the given future.

        Raises:
            RuntimeError: The portal was closed.
        """
        future = Future() if future is None else future
        self._start(function, future)
        return future

    def close(self) -> None:
        """Cancels running coroutines and stops the loop."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=CLOSE_GRACE_S)

    def after_fork(self) -> None:
        """Does nothing: in a forked child the thread does not exist, and the loop's files belong to the parent."""

    def _start(self, function: Callable[[], Coroutine[Any, Any, T]], future: Future[T]) -> None:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the portal was closed")
            self._loop.call_soon_threadsafe(_tie, function(), future)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._is_closed:
                # asyncio passes these two to the awaiting task and also raises them out of the loop.
                with suppress(KeyboardInterrupt, SystemExit):
                    self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                cancel_once(task)
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _run_within(function: Callable[[], Coroutine[Any, Any, T]], limit_s: float) -> T:
    async with asyncio.timeout(limit_s):
        return await function()


def _tie(coroutine: Coroutine[Any, Any, T], future: Future[T]) -> None:
    """Runs the coroutine on this loop and connects it with the future, both its result and its cancellation.

    `asyncio.run_coroutine_threadsafe` does the same, but it creates the future itself and returns it only afterwards.
    """
    if future.cancelled():
        coroutine.close()
        return
    loop = asyncio.get_running_loop()
    task = loop.create_task(coroutine)

    def end(_: asyncio.Task[T]) -> None:
        if task.cancelled():
            future.cancel()
        error = None if task.cancelled() else task.exception()
        # The waiting thread may have cancelled the future; then the outcome is dropped.
        if not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    def leave(left: Future[T]) -> None:
        if left.cancelled() and not task.done():
            loop.call_soon_threadsafe(cancel_once, task)

    task.add_done_callback(end)
    future.add_done_callback(leave)


def _run_elsewhere(function: Callable[[], Coroutine[Any, Any, T]], held_up: frozenset[Portal]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        _HELD_UP.set(held_up)
        try:
            results.append(asyncio.run(function()))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="toolwire-portal-nested", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results[0]
