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
        self._is_left = False

    async def read(self) -> AsyncGenerator[AgentEvent]:
        """Yields the events. Closing the generator cancels the run, and waits until it has ended."""
        running = asyncio.create_task(self._run())
        try:
            while True:
                event, taken = await self._events.get()
                _let_go(taken)
                if event is None:
                    break
                yield event
            await running
        finally:
            self._is_left = True
            while not self._events.empty():
                _let_go(self._events.get_nowait()[1])
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


def _let_go(taken: asyncio.Future[None]) -> None:
    if not taken.done():
        taken.set_result(None)
