"""The calls of one run that have begun and not ended: how they stop, and the wait for those that a program has left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import Outcome, ToolResult


@dataclass(frozen=True, slots=True)
class CutOff:
    """Stands in place of the outcome of a call that was stopped."""

    is_still_running: bool
    """True if its tool did not end in the time for a clean-up."""


class UnderWay:
    """The calls of one run that have begun and not ended. Any thread may change it."""

    __slots__ = ("_calls", "_cancels", "_closed", "_lock", "begun", "ended", "reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, ToolCall] = {}
        self._closed: dict[str, Future[None]] = {}
        """By id of a program's call: resolves when no call of the program is under way."""
        self._cancels: list[Callable[[], object]] = []
        self.reason: str | None = None
        """The host's reason to stop the calls of the turn; None as long as they may go on."""
        self.begun: dict[str, Tool] = {}
        """The tools of the turn's own calls that have begun, by the ids of the calls."""
        self.ended: dict[str, ToolResult] = {}
        """The results of the turn's own calls that have ended, and whose events the reader may not have taken."""

    def stop(self, reason: str) -> None:
        """Stops all calls that run. Those that have not begun do not begin. The first reason counts."""
        with self._lock:
            self.reason = self.reason or reason
            cancels = tuple(self._cancels)
        for cancel in cancels:
            cancel()

    def add_cancel(self, cancel: Callable[[], object]) -> None:
        """Takes what stops one call. It is called by `stop`, and at once after an earlier `stop`."""
        with self._lock:
            self._cancels.append(cancel)
            is_late = self.reason is not None
        if is_late:
            cancel()

    def remove_cancel(self, cancel: Callable[[], object]) -> None:
        """Forgets what stops a call, because the call has ended."""
        with self._lock:
            self._cancels.remove(cancel)

    async def run(
        self, call: ToolCall, calling: Coroutine[Any, Any, Outcome], is_still_running: Callable[[BaseException], bool]
    ) -> Outcome | None:
        """Returns the outcome of `calling`, which is under way meanwhile. None: its program has ended, so nothing ran.

        A call that could not be stopped stays under way: `is_still_running` is that of the ports.
        """
        if not self._begin(call):
            calling.close()
            return None
        is_left = False
        try:
            return await calling
        except BaseException as error:
            is_left = is_still_running(error)
            raise
        finally:
            if not is_left:
                self._end(call)

    def close(self, parent: str) -> Future[None]:
        """Lets no more calls of this program begin. The future resolves when those under way have ended."""
        ended = Future[None]()
        with self._lock:
            self._closed[parent] = ended
            is_over = not self._below(parent)
        if is_over:
            ended.set_result(None)
        return ended

    def below(self, parent: str) -> list[ToolCall]:
        """Returns the calls of a program that are under way."""
        with self._lock:
            return self._below(parent)

    @property
    def names(self) -> list[str]:
        """The names of the tools that run. A program whose call runs is not named."""
        with self._lock:
            calls = list(self._calls.values())
        parents = {call.parent for call in calls}
        return sorted({call.name for call in calls if call.id not in parents})

    def _begin(self, call: ToolCall) -> bool:
        with self._lock:
            if call.parent in self._closed:
                return False
            self._calls[call.id] = call
            return True

    def _end(self, call: ToolCall) -> None:
        ended = None
        with self._lock:
            self._calls.pop(call.id, None)
            if call.parent in self._closed and not self._below(call.parent):
                ended = self._closed[call.parent]
        # A waiter that has left has cancelled the future.
        if ended is not None and ended.set_running_or_notify_cancel():
            ended.set_result(None)

    def _below(self, parent: str) -> list[ToolCall]:
        return [call for call in self._calls.values() if call.parent == parent]
