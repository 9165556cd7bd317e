"""What a running tool may know about its call, and how it calls other tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.results import ToolResult

CallPort = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]
"""Makes a call of the named tool with these raw arguments, as a child of the running call."""


class CallContext:
    """Given to a tool that annotates a parameter with it; the parameter is hidden from the model.

    A context belongs to one call and is of no use after that call has ended.
    """

    __slots__ = ("_call", "call_id", "caller", "deadline")

    call_id: str
    """The running call's id, a path as `run/2/1`."""
    caller: Caller
    """On whose behalf the call is made."""
    deadline: float | None
    """When the call must have ended, in `time.monotonic()` seconds; None when it has no limit."""

    def __init__(self, *, call_id: str, call: CallPort, caller: Caller = NOBODY, deadline: float | None = None) -> None:
        self._call = call
        self.call_id = call_id
        self.caller = caller
        self.deadline = deadline

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """The result of another tool, called down the one path: validated, judged and recorded like any call.

        Never raises for a missing, denied or failed call: the result says so.
        """
        return await self._call(name, arguments)
