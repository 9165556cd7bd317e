"""The work of one task in this process, which goes on when its client has gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from toolwire.session.turn import Turn
from toolwire.vocabulary.call_events import ToolChunk, ToolEvent
from toolwire.vocabulary.texts.invisible import visible_text
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

STATUS_CHARACTERS = 1_000
"""Characters of what a tool says about its progress. It is a line for a person."""

Events = Callable[[ToolEvent], Awaitable[None]]

_LOG = logging.getLogger("toolwire.gateway")


class TaskWork:
    """One pass of a run. `said` is the tool's last word about its progress."""

    def __init__(self, tell: Events | None) -> None:
        """`tell` passes events on while the client waits for the answer of its call."""
        self.said = ""
        self._tell = tell
        self._task: asyncio.Task[Turn]

    def begin(self, work: Awaitable[Turn], at_end: Callable[[], None]) -> None:
        """Begins in a task of its own. `at_end` is called when it has ended."""
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda _: at_end())

    async def hear(self, event: ToolEvent) -> None:
        """Takes an event of the run."""
        if isinstance(event, ToolChunk) and event.progress is not None and not event.parent:
            said = encodable_text(visible_text(event.progress["message"] or ""))
            self.said = said[:STATUS_CHARACTERS] or self.said
        if self._tell is not None:
            await self._tell(event)

    async def wait(self, timeout_s: float) -> Turn | None:
        """Returns the turn; None if it goes on after so many seconds.

        A wait that is cancelled cancels the work. Raises what the work raises.
        """
        try:
            await asyncio.wait({self._task}, timeout=timeout_s)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        return self._task.result() if self._task.done() else None

    def let_go(self) -> None:
        """Nobody waits for it any more: it tells no client, and what it raises is logged."""
        self._tell = None
        self._task.add_done_callback(_log_failure)


def _log_failure(task: asyncio.Task[Turn]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        # The run is in the store, and the next `tasks/get` tells what has become of it.
        _LOG.warning("the work on a task ended with an error: %s", error)
