"""The places of one server: for its calls, requests, sessions and streams. Each client may take a share of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio

from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

FREE_POLL_S = 0.05


class SlotRefused(Exception):
    """No slot is free. `result` is that of a call, `overloaded` or `unavailable`."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


class Slots:
    """Slots for calls, requests, sessions or streams at a time. Clients may come from several threads."""

    def __init__(self, limit: int, noun: str = "call", state: str = "under way", *, each: int | None = None) -> None:
        """`noun` and `state` are words of the error. `each` bounds the slots of one owner; None means `limit`."""
        self._limit, self._noun, self._state, self._each = limit, noun, state, each
        self._taken, self._is_closed = 0, False
        self._owned = Counter[str]()
        self._lock = threading.Lock()

    def take(self, owner: str | None = None) -> None:
        """Takes a slot. An owner of None takes no share, but counts towards the limit.

        Raises:
            SlotRefused: The owner has its share, all are taken, or the server shuts down.
        """
        refused = self._take(owner)
        if refused:
            raise SlotRefused(ToolResult.failed("overloaded", refused))

    def give_back(self, owner: str | None = None) -> None:
        """Gives a slot back."""
        with self._lock:
            self._taken -= 1
            if owner is not None:
                self._owned[owner] -= 1
                if not self._owned[owner]:
                    del self._owned[owner]

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
        while self._take(None):  # noqa: ASYNC110 - calls end in several threads
            await anyio.sleep(FREE_POLL_S)
        try:
            yield
        finally:
            self.give_back()

    def close(self) -> None:
        """Refuses all later calls."""
        with self._lock:
            self._is_closed = True

    @property
    def taken(self) -> int:
        """The number of slots that are taken."""
        return self._taken

    def _take(self, owner: str | None) -> str:
        """Takes a slot. Returns the reason if it got none, else an empty text."""
        with self._lock:
            if self._is_closed:
                said = "the server is shutting down and takes no new calls."
                raise SlotRefused(ToolResult.failed("unavailable", said))
            if owner is not None and self._each is not None and self._owned[owner] >= self._each:
                return f"{self._counted(self._each, ' of this client')} {self._state} on this server already."
            if self._taken >= self._limit:
                return f"{self._counted(self._limit)} {self._state} on this server already."
            self._taken += 1
            if owner is not None:
                self._owned[owner] += 1
            return ""

    def _counted(self, number: int, whose: str = "") -> str:
        return count_of(number, f"{self._noun}{whose} is", f"{self._noun}s{whose} are")
