"""Calls by protocol 2026-07-28 that wait in this process while their client answers a server behind.

Such a client answers with its next request. The call goes on then: its server still waits for the answer, and a second
call of the server would be another one. The state that the client sends back names the held call, and is sealed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import mcp_types as types

from toolwire.vocabulary.results import ToolResult

Answer = ToolResult | types.InputRequiredResult

HELD_S = 600.0
"""Seconds that a held call waits for the client's next request, as long as a call of a server may take in all."""

_KEY = "question"
"""The key of the one request in an answer."""


class HeldCall:
    """One call, in a task of its own. All is used on the loop of the server."""

    def __init__(self) -> None:
        self.id = secrets.token_urlsafe(16)
        self._turn = asyncio.Lock()
        self._asked = asyncio.Event()
        self._wanted: types.InputRequest | None = None
        self._given: asyncio.Future[Any] | None = None
        self._task: asyncio.Task[Answer] | None = None

    def start(self, work: Coroutine[Any, Any, Answer], ended: Callable[[], object]) -> None:
        """Starts the call. `ended` is called at its end."""
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _: ended())

    async def ask(self, wanted: types.InputRequest) -> Any:
        """Asks the client. Returns its answer, as the SDK reads it; None if none came in time."""
        async with self._turn:
            self._given = asyncio.get_running_loop().create_future()
            self._wanted = wanted
            self._asked.set()
            try:
                return await asyncio.wait_for(self._given, HELD_S)
            except TimeoutError:
                return None
            finally:
                self._asked.clear()
                self._wanted = None

    def give(self, responses: types.InputResponses | None) -> None:
        """Gives the call the answer of the client's next request."""
        given = self._given
        if given is not None and not given.done():
            given.set_result((responses or {}).get(_KEY))
            # Until the call asks again.
            self._asked.clear()

    async def next_answer(self) -> Answer:
        """Returns the result, or the next request to the client. The call ends if this is cancelled."""
        assert self._task is not None
        asked = asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait({self._task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            asked.cancel()
        if self._task.done():
            return await self._task
        assert self._wanted is not None
        return types.InputRequiredResult(
            input_requests={_KEY: self._wanted}, request_state=json.dumps({"held": self.id})
        )


class HeldCalls:
    """The held calls of one server."""

    def __init__(self) -> None:
        self._calls: dict[str, HeldCall] = {}

    async def run(self, held: HeldCall, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Runs a call to its result, or to its first request to the client."""
        self._calls[held.id] = held
        held.start(work, lambda: self._calls.pop(held.id, None))
        return await held.next_answer()

    async def go_on(self, id: str, responses: types.InputResponses | None) -> Answer:
        """Goes on with a held call. A call that this process does not hold fails, and says so."""
        held = self._calls.get(id)
        if held is None:
            return ToolResult.failed(
                "unknown_outcome",
                "The call waited for this answer in a process that has ended, or for too long: its server never got it",
                hint="Check what has happened, and make the call again without the state.",
            )
        held.give(responses)
        return await held.next_answer()


def held_id(state: str | None) -> str | None:
    """Returns the id of the held call that a state names; None for any other state. The SDK has checked the seal."""
    return None if state is None else json.loads(state).get("held")
