"""The events of one turn, for a reader that holds the turn's calls up while it is slow."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from toolwire.facade.observing.event_observer import EventObserver
from toolwire.facade.observing.observation import is_async
from toolwire.vocabulary.call_events import ToolEvent

CLOSE_GRACE_S = 1.0
"""Seconds that a cancelled turn waits for its coroutine function to end: enough to close a connection."""

_LOG = logging.getLogger("toolwire.observers")


class TurnEvents(EventObserver):
    """Gives a function each event of one turn, in order and one at a time. Satisfies `invocation.scope.Events`.

    `async with` begins and ends it, on the turn's event loop. Calls of any thread may tell events meanwhile.
    """

    def __init__(self, function: Callable[[ToolEvent], Any]) -> None:
        """A coroutine function is awaited on the turn's loop. Any other function runs in a thread of its own, because
        it may block, and all workers may be waiting for it.
        """
        super().__init__(self._put)
        self._function = function
        self._thread = None if is_async(function) else ThreadPoolExecutor(1, "toolwire-events")
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._untaken: deque[tuple[ToolEvent, Future[bool]]] = deque()
        """The events that the function has not dealt with yet. The first of them is with it now."""
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._giver_task: asyncio.Task[None] | None = None

    def flush(self) -> Future[bool] | None:
        """Returns a future that resolves when the function has dealt with all events so far; None if it has."""
        with self._lock:
            if self._is_closed:
                return _NO_MORE
            return self._untaken[-1][1] if self._untaken else None

    async def __aenter__(self) -> Self:
        self._giver_task = self._loop.create_task(self._give_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # A cancelled turn must end now, but the events of a failed one are told to the last.
            while (error is None or isinstance(error, Exception)) and (waiting := self.flush()) is not None:
                await asyncio.shield(asyncio.wrap_future(waiting))
        finally:
            self._close()
            assert self._giver_task is not None
            self._giver_task.cancel()
            await asyncio.wait((self._giver_task,), timeout=CLOSE_GRACE_S)

    def _put(self, event: ToolEvent) -> None:
        with self._lock:
            if not self._is_closed:
                self._untaken.append((event, Future()))
                self._loop.call_soon_threadsafe(self._arrived.set)

    async def _give_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._untaken:
                event, taken = self._untaken[0]
                await self._give(event)
                with self._lock:
                    if self._is_closed:
                        return
                    self._untaken.popleft()
                taken.set_result(True)

    async def _give(self, event: ToolEvent) -> None:
        try:
            if self._thread is None:
                await self._function(event)
                return
            given = await self._loop.run_in_executor(self._thread, self._call_function, event)
            if inspect.isawaitable(given):
                # A lambda or decorator around a coroutine function.
                await given
        except Exception:  # noqa: BLE001 - a broken reader must not break the calls that it hears of
            self._log_failure()

    def _call_function(self, event: ToolEvent) -> Any:
        try:
            return self._function(event)
        except Exception:  # noqa: BLE001 - as above; some exceptions cannot pass through a future
            self._log_failure()

    def _log_failure(self) -> None:
        _LOG.exception("events=%.80r of a turn failed on an event", self._function)

    def _close(self) -> None:
        """Lets calls that wait for the reader go on. Their tools are asked to stop."""
        with self._lock:
            self._is_closed = True
            left = list(self._untaken)
            self._untaken.clear()
        for _, taken in left:
            taken.set_result(False)
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)


_NO_MORE: Future[bool] = Future()
_NO_MORE.set_result(False)
