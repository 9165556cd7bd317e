"""The places of one server: for its calls, requests, sessions and streams. Each client may take a share of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager

from toolwire.vocabulary.machine.gate import Gate, GateClosed, GateFull, ShareTaken
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of


class SlotRefused(Exception):
    """No slot is free. `result` is that of a call, `overloaded` or `unavailable`."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


class Slots:
    """Slots for calls, requests, sessions or streams at a time. Clients may come from several threads."""

    def __init__(self, limit: int, noun: str = "call", state: str = "under way", *, each: int | None = None) -> None:
        """`noun` and `state` are words of the error. `each` bounds the slots of one owner; None means `limit`."""
        self._each = limit if each is None else each
        self._gate = Gate(limit, share=self._each)
        self._noun, self._state = noun, state

    def take(self, owner: str | None = None) -> None:
        """Takes a slot. An owner of None takes no share, but counts towards the limit.

        Raises:
            SlotRefused: The owner has its share, all are taken, or the server shuts down.
        """
        try:
            self._gate.enter_now(owner)
        except GateClosed:
            raise _shutdown_refusal() from None
        except ShareTaken:
            raise self._refusal(self._each, " of this client") from None
        except GateFull:
            raise self._refusal(self._gate.room) from None

    def give_back(self, owner: str | None = None) -> None:
        """Gives a slot back."""
        self._gate.leave(owner)

    @contextmanager
    def hold(self, owner: str | None = None) -> Generator[None]:
        """Holds a slot, as `take` does.

        Raises:
            SlotRefused: As `take`.
        """
        self.take(owner)
        try:
            yield
        finally:
            self.give_back(owner)

    @asynccontextmanager
    async def hold_next(self) -> AsyncGenerator[None]:
        """Waits until a slot is free, and holds it. A decision of a person is not refused.

        Raises:
            SlotRefused: The server shuts down.
        """
        try:
            turn = self._gate.enter()
            if turn is not None:
                await self._await_turn(turn)
        except GateClosed:
            raise _shutdown_refusal() from None
        try:
            yield
        finally:
            self.give_back()

    def close(self) -> None:
        """Refuses all later calls."""
        self._gate.close()

    @property
    def limit(self) -> int:
        """The number of slots."""
        return self._gate.room

    @property
    def in_use(self) -> int:
        """The number of slots that are taken."""
        return self._gate.inside

    async def _await_turn(self, turn: Future[None]) -> None:
        """Waits for the turn, and gives it up if the task is cancelled."""
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            self._gate.withdraw(turn)
            raise

    def _refusal(self, number: int, whose: str = "") -> SlotRefused:
        slots = count_of(number, f"{self._noun}{whose} is", f"{self._noun}s{whose} are")
        return SlotRefused(ToolResult.failed("overloaded", f"{slots} {self._state} on this server already."))


def _shutdown_refusal() -> SlotRefused:
    return SlotRefused(ToolResult.failed("unavailable", "the server is shutting down and takes no new calls."))
