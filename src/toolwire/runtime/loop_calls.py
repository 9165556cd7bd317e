"""Calls of a program that run on an event loop, while the program's own thread reads on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from toolwire.runtime.cleanup import cancel_once
from toolwire.runtime.workers import PROGRAM_SHARE, program_share
from toolwire.vocabulary.machine.gate import Gate

T = TypeVar("T")


class LoopCalls:
    """Starts calls on the current loop, from any thread. At the end of the block it cancels those that run.

    It does not wait for their clean-up: the owner of the calls does.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(program_share.set, Gate(PROGRAM_SHARE))
        self._running: set[_LoopCall[Any]] = set()
        self._is_over = False

    async def __aenter__(self) -> LoopCalls:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        for call in list(self._running):
            self._cancel_here(call)

    def start(
        self, function: Callable[[], Awaitable[T]], ended: Callable[[T | BaseException | None], None]
    ) -> Callable[[], None]:
        """Starts a call, and returns a function that cancels it from any thread.

        `ended` is called once, when the call has ended, with its result or its exception. None: it was cancelled, and
        has cleaned up. A call that is cancelled before it has begun does not begin.
        """
        call = _LoopCall(function, ended)
        if not self._post(self._begin, call):
            ended(None)
        return lambda: self._cancel(call)

    def _begin(self, call: _LoopCall[Any]) -> None:
        if self._is_over or call.is_unwanted:
            call.ended(None)
            return
        self._running.add(call)
        call.task = self._loop.create_task(self._run(call))

    async def _run(self, call: _LoopCall[Any]) -> None:
        call.has_begun = True
        outcome: Any = None
        try:
            outcome = await call.function()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - for the program's caller; asyncio would end the loop by some
            outcome = error
        finally:
            self._running.discard(call)
            call.ended(outcome)

    def _cancel(self, call: _LoopCall[Any]) -> None:
        call.is_unwanted = True
        self._post(self._cancel_here, call)

    def _cancel_here(self, call: _LoopCall[Any]) -> None:
        if call.task is None:
            return
        cancel_once(call.task)
        if not call.has_begun and call in self._running:
            # A task that is cancelled before its first step never makes it.
            self._running.discard(call)
            call.ended(None)

    def _post(self, function: Callable[[_LoopCall[Any]], None], call: _LoopCall[Any]) -> bool:
        """Runs the function in the loop's thread. False: the loop was closed, and the program is over."""
        try:
            self._loop.call_soon_threadsafe(function, call, context=self._context)
        except RuntimeError:
            return False
        return True


class _LoopCall(Generic[T]):
    """One call. The thread of the loop changes it, and any thread sets `is_unwanted`."""

    __slots__ = ("ended", "function", "has_begun", "is_unwanted", "task")

    def __init__(self, function: Callable[[], Awaitable[T]], ended: Callable[[T | BaseException | None], None]) -> None:
        self.function = function
        self.ended = ended
        self.task: asyncio.Task[None] | None = None
        """None until the call begins."""
        self.has_begun = False
        """True from the task's first step on."""
        self.is_unwanted = False
        """True if the call must not begin."""
