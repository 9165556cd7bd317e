"""An event loop in a thread of its own, so that a blocking caller can run async tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """A home loop for coroutines that blocking code has to wait for.

    One loop serves all threads, so that connections which async tools keep stay usable from call to call.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="toolwire-portal", daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the coroutine returns. Blocks the calling thread until then.

        A tool that runs on the portal's own loop and calls back into a blocking method would wait for itself:
        that call gets a fresh loop in a fresh thread.
        """
        if threading.current_thread() is self._thread:
            return _run_elsewhere(function)
        future = asyncio.run_coroutine_threadsafe(function(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancels what still runs and ends the loop."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def after_fork(self) -> None:
        """In a forked child the thread is gone: nothing to stop, and the loop's files are not ours."""

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


def _run_elsewhere(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(function()))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            errors.append(error)

    thread = threading.Thread(target=work, name="toolwire-portal-nested", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
