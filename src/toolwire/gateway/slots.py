"""Counts the calls under way on one server."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio

from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

FREE_POLL_S = 0.05


class SlotRefused(Exception):
    """A call gets no slot. `result` is its result, `overloaded` or `unavailable`."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


class Slots:
    """The calls that may be under way at a time. Clients may come from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit, self._taken, self._is_closed = limit, 0, False
        self._lock = threading.Lock()

    @contextmanager
    def hold(self) -> Generator[None]:
        """Holds a slot for a call.

        Raises:
            SlotRefused: All are taken, or the server shuts down.
        """
        if not self._take():
            running = count_of(self._limit, "call is", "calls are")
            raise SlotRefused(ToolResult.failed("overloaded", f"{running} under way on this server already."))
        try:
            yield
        finally:
            self._give_back()

    @asynccontextmanager
    async def hold_next(self) -> AsyncGenerator[None]:
        """Waits until a slot is free, and holds it: what a person has decided is not refused.

        Raises:
            SlotRefused: The server shuts down.
        """
        while not self._take():  # noqa: ASYNC110 - calls end in several threads
            await anyio.sleep(FREE_POLL_S)
        try:
            yield
        finally:
            self._give_back()

    def close(self) -> None:
        """Refuses all later calls."""
        with self._lock:
            self._is_closed = True

    @property
    def taken(self) -> int:
        """The number of calls under way."""
        return self._taken

    def _take(self) -> bool:
        with self._lock:
            if self._is_closed:
                said = "the server is shutting down and takes no new calls."
                raise SlotRefused(ToolResult.failed("unavailable", said))
            if self._taken >= self._limit:
                return False
            self._taken += 1
            return True

    def _give_back(self) -> None:
        with self._lock:
            self._taken -= 1
