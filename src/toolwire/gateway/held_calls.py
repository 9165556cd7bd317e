"""Calls by protocol 2026-07-28 that wait in this process while their client answers a server behind.

Such a client answers with its next request. The call goes on then: its server still waits for the answer, and a second
call of the server would be another one. The state that the client sends back names the held call, and is sealed. A held
call may also become a task, which goes on without its client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import mcp_types as types

from toolwire.session.turn import Suspended
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.invisible import visible_text

Answer = ToolResult | types.InputRequiredResult | Suspended
"""Suspended: the call waits for a person, and is a task from then on."""

HELD_S = 600.0
"""Seconds that a held call waits for the client's next request, as long as a call of a server may take in all."""

_KEY = "question"
"""The beginning of the key of the one request in an answer. Its number follows: a task has no key twice."""

STATUS_CHARACTERS = 1_000
"""Characters of a tool's message about its progress. It is a line for a person."""

_LOG = logging.getLogger("toolwire.gateway")


class HeldCall:
    """One call, in a task of its own. All is used on the loop of the server."""

    def __init__(self, run_id: str = "") -> None:
        """`run_id` is that of a call that may become a task."""
        self.id, self.run_id = secrets.token_urlsafe(16), run_id
        self.is_left = False
        """True once the call is a task: it tells its client nothing by itself."""
        self.said = ""
        """The last word about its progress."""
        self._asks = 0
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
            self._asks += 1
            self._wanted = wanted
            self._asked.set()
            try:
                return await asyncio.wait_for(self._given, HELD_S)
            except TimeoutError:
                return None
            finally:
                self._asked.clear()
                self._wanted = None

    @property
    def wanted(self) -> dict[str, types.InputRequest]:
        """The request to the client that waits for an answer, by its key; empty without one."""
        return {} if self._wanted is None else {f"{_KEY} {self._asks}": self._wanted}

    def give(self, responses: types.InputResponses | None) -> None:
        """Gives the call the answer of the client's next request."""
        given = self._given
        if given is not None and not given.done():
            given.set_result((responses or {}).get(f"{_KEY} {self._asks}"))
            # Until the call asks again.
            self._asked.clear()

    def hear(self, message: str | None) -> None:
        """Keeps the last message about the progress."""
        self.said = visible_text(message or "")[:STATUS_CHARACTERS] or self.said

    def leave(self) -> None:
        """Lets the call go on as a task. Its exceptions are logged, and its record has its end."""
        assert self._task is not None
        self.is_left = True
        self._task.add_done_callback(_log_failure)

    async def next_answer(self, timeout_s: float | None = None) -> Answer | None:
        """Returns the result, or the next request to the client; None if neither is there after that time.

        The call ends if this is cancelled.
        """
        assert self._task is not None
        asked = asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait({self._task, asked}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            asked.cancel()
        if self._task.done():
            return await self._task
        wanted = self.wanted
        if not wanted or not self._asked.is_set():
            return None
        return types.InputRequiredResult(input_requests=wanted, request_state=json.dumps({"held": self.id}))


class HeldCalls:
    """The held calls of one server."""

    def __init__(self) -> None:
        self._calls: dict[str, HeldCall] = {}

    def start(self, held: HeldCall, work: Coroutine[Any, Any, Answer]) -> None:
        """Starts a call, which is held until its end."""
        self._calls[held.id] = held
        held.start(work, lambda: self._calls.pop(held.id, None))

    async def run(self, held: HeldCall, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Runs a call to its result, or to its first request to the client."""
        self.start(held, work)
        return await _require_answer(held)

    def find(self, id: str | None) -> HeldCall | None:
        """Returns the call with that id; None if this process does not hold it."""
        return None if id is None else self._calls.get(id)

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
        return await _require_answer(held)


async def _require_answer(held: HeldCall) -> Answer:
    while (answer := await held.next_answer()) is None:
        pass
    return answer


def _log_failure(task: asyncio.Task[Answer]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _LOG.warning("the work on a task ended with an error: %s", error)


def id_of_held(state: str | None) -> str | None:
    """Returns the id of the held call that a state names; None for any other state. The SDK has checked the seal."""
    return None if state is None else json.loads(state).get("held")
