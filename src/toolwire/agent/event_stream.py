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
        self._events: asyncio.Queue[tuple[AgentEvent | None, asyncio.Future[None]]] = asyncio.Queue()
        self._reading: asyncio.Future[None] | None = None
        """Resolved when the reader asks for the next event."""
        self._is_left = False

    async def read(self) -> AsyncGenerator[AgentEvent]:
        """Yields the events. Closing the generator cancels the run, and waits until it has ended."""
        running = asyncio.create_task(self._run())
        try:
            while True:
                event, self._reading = await self._events.get()
                if event is None:
                    break
                yield event
                self._let_go()
            await running
        finally:
            self._is_left = True
            self._let_go()
            while not self._events.empty():
                self._reading = self._events.get_nowait()[1]
                self._let_go()
            running.cancel()
            await asyncio.wait((running,))

    async def _run(self) -> None:
        try:
            result = await self._start(self._put)
            await self._put(AgentEvent(type="stopped", agent=self._path, result=result))
        finally:
            self._events.put_nowait((None, asyncio.get_running_loop().create_future()))

    async def _put(self, event: AgentEvent) -> None:
        if not self._is_left:
            taken = asyncio.get_running_loop().create_future()
            self._events.put_nowait((event, taken))
            await taken

    def _let_go(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)
