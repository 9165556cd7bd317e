"""The events of one run, for a reader that takes them one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from toolwire.agent.agent_run import Emit
from toolwire.agent.result import AgentEvent, AgentResult


async def stream_events(
    start: Callable[[Emit], Coroutine[Any, Any, AgentResult[Any]]], path: tuple[str, ...]
) -> AsyncGenerator[AgentEvent]:
    """Runs an agent, and yields its events. The run waits until an event is taken.

    Closing the generator cancels the run, and waits until it has ended.
    """
    loop, is_left = asyncio.get_running_loop(), False
    events: asyncio.Queue[tuple[AgentEvent | None, asyncio.Future[None]]] = asyncio.Queue()

    async def put(event: AgentEvent) -> None:
        if not is_left:
            taken = loop.create_future()
            events.put_nowait((event, taken))
            await taken

    async def run() -> None:
        try:
            await put(AgentEvent(type="stopped", agent=path, result=await start(put)))
        finally:
            events.put_nowait((None, loop.create_future()))

    running = asyncio.create_task(run())
    try:
        while True:
            event, taken = await events.get()
            _let_go(taken)
            if event is None:
                break
            yield event
        await running
    finally:
        is_left = True
        while not events.empty():
            _let_go(events.get_nowait()[1])
        running.cancel()
        await asyncio.wait((running,))


def _let_go(taken: asyncio.Future[None]) -> None:
    if not taken.done():
        taken.set_result(None)
