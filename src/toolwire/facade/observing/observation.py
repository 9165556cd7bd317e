"""Observers that a host adds and removes while calls run: functions that receive each event of a call."""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from toolwire.invocation.scope import Observer
from toolwire.runtime.runtime import Runtime
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.vocabulary.call_events import ToolEvent

WAITING_LIMIT = 10_000
"""Events that may wait for one async observer; newer ones are dropped. About 100 turns of 30 calls with a few parts."""

STOP_WAIT_S = 5.0
"""Seconds that leaving `async with` waits for an async observer to receive the events that happened before."""

_LOG = logging.getLogger("toolwire.observers")
Start = Callable[[Callable[[], Coroutine[Any, Any, None]]], "Future[None]"]


class Watchers:
    """The observers of one registry, toolkit or session. Any thread may change and read them."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        """`on_change` is called after each change."""
        self._lock = threading.Lock()
        self._on_change = on_change
        self.now: tuple[Observer, ...] = ()
        """The observers, in the order in which they were added. Each change replaces the tuple."""

    def add(self, observer: Observer) -> None:
        """Adds one."""
        with self._lock:
            self.now = (*self.now, observer)
        self._on_change()

    def remove(self, observer: Observer) -> None:
        """Removes one; does nothing if it is not there."""
        with self._lock:
            self.now = tuple(one for one in self.now if one is not observer)
        self._on_change()


class Observable:
    """Calls that a host can observe."""

    def _watchers_and_runtime(self) -> tuple[Watchers, Runtime]:
        """Returns the observers, and the runtime whose event loop serves async ones."""
        raise NotImplementedError

    def observe(self, function: Callable[[ToolEvent], Any]) -> Observation:
        """Calls a function with each event of the calls made here, from now on until `stop()` of the handle.

        The events are `ToolStarted`, `ToolChunk`, `PermissionRequested`, `PermissionDecided` and `ToolCompleted`. Those
        of one call come in this order: start, permission, chunks, end. Their values are redacted as the durable log is.
        A registry's observers see the calls of its toolkits and sessions, and of programs.

        A plain function is called at once, in the thread of the event, and the call waits for it. A coroutine function
        is called later, one event after the other, on the event loop that runs now, else on a loop of its own; no call
        waits for it. `docs/observers.md` has an example.

        A function that raises is logged on `toolwire.observers` and called again with the next event.

        Raises:
            ConfigurationError: `function` cannot be called.
        """
        if not callable(function):
            raise ConfigurationError(f"observe({function!r:.80}): write a function that takes one event")
        watchers, runtime = self._watchers_and_runtime()
        return Observation(function, watchers, _starter(runtime))


class Observation:
    """The handle of one observer. `with` and `async with` stop it at their end."""

    def __init__(self, function: Callable[[ToolEvent], Any], watchers: Watchers, start: Start) -> None:
        """Adds `function` to the observers. `start` runs a coroutine for async functions."""
        from toolwire.facade.observing.event_observer import EventObserver

        self._function = function
        self._is_async = is_async(function)
        self._is_stopped = False
        self._async_delivery = _AsyncDelivery(start, repr(function)[:80])
        self._watchers = watchers
        self._observer = EventObserver(self._deliver)
        watchers.add(self._observer)

    @property
    def dropped(self) -> int:
        """Number of events that an async function did not get, because too many were waiting for it."""
        return self._async_delivery.dropped

    def stop(self) -> None:
        """Ends the observation. Events that happened before still reach an async function."""
        self._is_stopped = True
        self._watchers.remove(self._observer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        await self._async_delivery.done()

    def _deliver(self, event: ToolEvent) -> None:
        if self._is_stopped:
            return
        if self._is_async:
            self._async_delivery.add(partial(self._function, event))
            return
        given = self._function(event)
        if isinstance(given, Awaitable):
            # A decorator or lambda around a coroutine function.
            self._async_delivery.add(partial(_itself, cast("Awaitable[Any]", given)))


class _AsyncDelivery:
    """Awaits what one async observer does with its events, one after the other."""

    def __init__(self, start: Start, name: str) -> None:
        self._start = start
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], Awaitable[Any]]] = deque()
        self._running: Future[None] | None = None
        self._is_gone = False
        self.dropped = 0

    def add(self, make: Callable[[], Awaitable[Any]]) -> None:
        """Adds one event's work."""
        with self._lock:
            if self._is_gone or len(self._waiting) >= WAITING_LIMIT:
                self._drop()
                return
            self._waiting.append(make)
            if self._running is None or self._running.done():
                self._begin()

    def _drop(self) -> None:
        if self.dropped == 0 and not self._is_gone:
            _LOG.warning("the observer %s is too slow: events beyond %d are dropped", self._name, WAITING_LIMIT)
        self.dropped += 1

    def _begin(self) -> None:
        try:
            self._running = self._start(self._deliver)
        except RuntimeError as error:
            self._is_gone = True
            self.dropped += len(self._waiting)
            self._waiting.clear()
            _LOG.error("the observer %s gets no more events: its event loop has ended (%s)", self._name, error)

    async def done(self) -> None:
        """Waits until all events before are delivered, at most `STOP_WAIT_S` seconds."""
        import asyncio

        running = self._running
        if running is None or running.done():
            return
        done, _ = await asyncio.wait((asyncio.wrap_future(running),), timeout=STOP_WAIT_S)
        if not done:
            _LOG.warning("the observer %s did not take its events within %g s", self._name, STOP_WAIT_S)

    async def _deliver(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    # Under the lock, so that the next event starts a new delivery.
                    self._running = None
                    return
                make = self._waiting.popleft()
            try:
                await make()
            except Exception:  # noqa: BLE001 - an observer is its owner's code, and no call depends on it
                _LOG.exception("the observer %s failed on an event", self._name)


def _itself(given: Awaitable[Any]) -> Awaitable[Any]:
    return given


def is_async(function: Callable[..., Any]) -> bool:
    """Returns True for a coroutine function, and for an object whose `__call__` is one."""
    call = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _starter(runtime: Runtime) -> Start:
    """Returns a function that starts a coroutine on the event loop that runs now, else on the portal."""
    # Without asyncio in this process no loop runs: blocking programs need not import it.
    asyncio = sys.modules.get("asyncio")
    try:
        loop = None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if asyncio is None or loop is None:
        return lambda function: runtime.portal.start(function)

    def start(function: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
        coroutine = function()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            raise

    return start
