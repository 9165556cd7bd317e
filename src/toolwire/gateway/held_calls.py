"""Calls by protocol 2026-07-28 that wait in this process while their client answers a server behind.

Such a client answers with its next request. The call goes on then: its server still waits for the answer, and a second
call of the server would be another one. The state that the client sends back names the held call, and is sealed. A held
call may also become a task, which goes on without its client.

Forms of a server with 2026-07-28 wait in the store, and its other requests of the same round here. All go out in one
answer, whose state names the run and the held call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import mcp_types as types

from toolwire.session.turn import Suspended
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.invisible import visible_text

Answer = ToolResult | types.InputRequiredResult | Suspended
"""Suspended: the call waits for a person, and is a task from then on."""

MakeCall = Callable[[ToolCall], Coroutine[Any, Any, ToolResult]]

HELD_S = 600.0
"""Seconds that a held call waits for the client's next request, as long as a call of a server may take in all."""

SETTLE_S = 1.0
"""Seconds that the requests of an answer wait for others that were begun with them, and are still judged."""

IDLE_CALLS = 256
"""Held calls that wait along with the forms of their runs. A further one ends the oldest: its client is asked anew."""

_HELD, _ALONG = "held", "along"
"""Keys in a state: the call that is held, and the call that has further requests along with the forms of a run."""

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
        self._key, self._asks = secrets.token_hex(8), 0
        self._open: dict[str, tuple[types.InputRequest, asyncio.Future[Any]]] = {}
        self._begun = set[asyncio.Task[ToolResult]]()
        self._kept: list[tuple[ToolCall, asyncio.Task[ToolResult]]] = []
        self._waits = 0
        self._asked, self._settled = asyncio.Event(), asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Answer] | None = None

    def start(self, work: Coroutine[Any, Any, Answer], ended: Callable[[asyncio.Task[Answer]], object]) -> None:
        """Starts the call, or a further pass of it. `ended` is called at the end."""
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(ended)

    async def ask(self, wanted: types.InputRequest) -> Any:
        """Asks the client. Returns its answer, as the SDK reads it; None if none came in time."""
        self._asks += 1
        # A form of the same answer may have any key that its server could guess. A task has no key twice.
        key = f"{self._key} {self._asks}"
        given: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = (wanted, given)
        self._restart_timer()
        self._look()
        try:
            return await given
        finally:
            self._open.pop(key, None)
            self._look()

    @property
    def wanted(self) -> dict[str, types.InputRequest]:
        """The requests to the client that wait for an answer, by their keys."""
        return {key: wanted for key, (wanted, _) in self._open.items()}

    def give(self, responses: types.InputResponses | None) -> None:
        """Gives the call the answers of the client's next request. Requests without one go on waiting."""
        for key, response in (responses or {}).items():
            _, given = self._open.pop(key, (None, None))
            if given is not None and not given.done():
                given.set_result(response)
        self._look()

    async def begin(self, calls: Sequence[ToolCall], make: MakeCall) -> list[ToolResult | None]:
        """Begins calls by which requests go to the client. None is the result of one that waits for it, and is kept."""
        tasks = [self._begin(make(call)) for call in calls]
        self._kept += zip(calls, tasks, strict=True)
        self._look()
        await self._settle()
        return [task.result() if task.done() else None for task in tasks]

    async def pass_on(self, call: ToolCall, make: MakeCall) -> ToolResult:
        """Makes such a call, or goes on with an equal one that is kept."""
        self._waits += 1
        self._look()
        try:
            return await (self._take(call) or self._begin(make(call)))
        finally:
            self._waits -= 1

    def _begin(self, work: Coroutine[Any, Any, ToolResult]) -> asyncio.Task[ToolResult]:
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[ToolResult]) -> None:
        self._begun.discard(task)
        self._look()

    def _take(self, call: ToolCall) -> asyncio.Task[ToolResult] | None:
        kept = next((one for one in self._kept if one[0] == call), None)
        if kept is None:
            return None
        self._kept.remove(kept)
        return kept[1]

    def _look(self) -> None:
        """Notes whether the work waits for the client, and whether all that was begun asks or has ended."""
        asks, begun = len(self._open), len(self._begun)
        for event, is_so in ((self._asked, asks > (0 if self._waits else begun)), (self._settled, asks >= begun)):
            event.set() if is_so else event.clear()

    async def _settle(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), SETTLE_S)

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(HELD_S, self._give_up)

    def _give_up(self) -> None:
        self.close()
        for _, given in self._open.values():
            if not given.done():
                given.set_result(None)

    @property
    def keeps(self) -> bool:
        """True if calls are kept."""
        return bool(self._kept)

    def close(self) -> None:
        """Ends the calls that are kept."""
        if self._timer is not None:
            self._timer.cancel()
        for _, task in self._kept:
            task.cancel()
        self._kept.clear()

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
        if self._asked.is_set() and not self._task.done():
            await self._settle()
        if self._task.done():
            return self._with_kept(await self._task)
        if not self.wanted:
            return None
        return types.InputRequiredResult(input_requests=self.wanted, request_state=json.dumps({_HELD: self.id}))

    def _with_kept(self, answer: Answer) -> Answer:
        """Returns the answer. With the forms of its run go the requests of calls that were begun."""
        if not isinstance(answer, types.InputRequiredResult) or not self._kept:
            return answer
        state = json.dumps({**json.loads(answer.request_state or "{}"), _ALONG: self.id})
        return types.InputRequiredResult(
            input_requests={**(answer.input_requests or {}), **self.wanted}, request_state=state
        )


class HeldCalls:
    """The held calls of one server."""

    def __init__(self) -> None:
        self._calls: dict[str, HeldCall] = {}
        self._idle: dict[str, HeldCall] = {}

    def start(self, held: HeldCall, work: Coroutine[Any, Any, Answer]) -> None:
        """Starts a call, which is held until its end."""
        self._calls[held.id] = held
        held.start(work, lambda task: self._note_end(held, task))

    def _note_end(self, held: HeldCall, task: asyncio.Task[Answer]) -> None:
        """Lets calls that are kept wait along with the forms of a run, and ends those of any other call."""
        self._calls.pop(held.id, None)
        is_over = task.cancelled() or task.exception() or not isinstance(task.result(), types.InputRequiredResult)
        if is_over or held.is_left or not held.keeps:
            held.close()
            return
        self._idle[held.id] = held
        if len(self._idle) > IDLE_CALLS:
            self._idle.pop(next(iter(self._idle))).close()

    def take_up(self, state: str | None, responses: types.InputResponses | None, run_id: str = "") -> HeldCall:
        """Returns the held call that waits along with the run of a state, with its further answers; else a new one."""
        held = self._idle.pop("" if state is None else json.loads(state).get(_ALONG, ""), None)
        if held is None:
            return HeldCall(run_id)
        held.give(responses)
        return held

    async def run(self, held: HeldCall, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Runs a call to its result, or to its first request to the client."""
        self.start(held, work)
        return await _require_answer(held)

    def find(self, state: str | None) -> HeldCall | None:
        """Returns the call that a state names; None if it is not under way in this process."""
        named: dict[str, str] = {} if state is None else json.loads(state)
        return self._calls.get(named.get(_HELD) or named.get(_ALONG, ""))

    async def go_on(self, held: HeldCall | None, responses: types.InputResponses | None) -> Answer:
        """Goes on with a held call. One that this process does not hold fails: it may have ended with its result."""
        if held is None:
            return ToolResult.failed(
                "unknown_outcome",
                "No call waits for this answer here: it has had its answer and ended, it waited for too long, or its "
                "process has ended",
                hint="Check what has happened before you make the call again, without the state.",
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


def is_of_held(state: str | None) -> bool:
    """True if a state names a held call and no run. The SDK has checked the seal."""
    return state is not None and _HELD in json.loads(state)
