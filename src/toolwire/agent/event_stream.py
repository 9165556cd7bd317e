"""The events of one run, for a reader that takes them one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from toolwire.agent.agent_run import Emit
from toolwire.agent.result import AgentEvent, AgentResult


class EventStream:
    """Runs an agent while its events are read. The run waits until an event is taken."""

    def __init__(self, start: Callable[[Emit], Coroutine[Any, Any, AgentResult[Any]]], path: tuple[str, ...]) -> None:
        self._start, self._path = start, path
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue(1)
        self._waiting = 0
        """Number of events that wait for a place in the queue."""
        self._is_left = False

    async def read(self) -> AsyncGenerator[AgentEvent]:
        """Yields the events. Closing the generator cancels the run, and waits until it has ended."""
        running = asyncio.create_task(self._run())
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await running
        finally:
            self._is_left = True
            running.cancel()
            while not running.done():
                await self._drop_events()
                await asyncio.wait((running,), timeout=0 if self._waiting else None)

    async def _run(self) -> None:
        try:
            result = await self._start(self._put)
            await self._put(AgentEvent(type="stopped", agent=self._path, result=result))
        finally:
            await self._put(None)

    async def _put(self, event: AgentEvent | None) -> None:
        if self._is_left:
            return
        self._waiting += 1
        try:
            await self._events.put(event)
        finally:
            self._waiting -= 1

    async def _drop_events(self) -> None:
        """Lets all go on that wait for the reader."""
        while self._waiting or not self._events.empty():
            while not self._events.empty():
                self._events.get_nowait()
            await asyncio.sleep(0)
