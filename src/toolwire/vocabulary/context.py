"""What a running tool may know about its call, and how it calls other tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.results import ToolResult

CallPort = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]
"""Makes a call of the named tool with these raw arguments, as a child of the running call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a tool has come."""

    done: float
    """Units of work that are done."""
    total: float | None = None
    """Units that there are in all; None when nobody knows."""
    message: str = ""
    """What it is doing, for people."""


class Interrupted(BaseException):
    """Raised by `emit` and `progress` inside of a tool whose output nobody wants any more. Let it pass."""


EmitPort = Callable[[Any], Awaitable[None]]
"""Gives a part of the output, or a `Progress`, to whoever reads along."""


class _Done:
    """Nothing to wait for."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


DONE: Awaitable[None] = _Done()
"""What a sync tool gets from `emit`: it has waited already."""


def silent(_: Any) -> Awaitable[None]:
    """Nobody reads along."""
    return DONE


class CallContext:
    """Given to a tool that annotates a parameter with it; the parameter is hidden from the model.

    A context belongs to one call and is of no use after that call has ended.
    """

    __slots__ = ("_call", "_emit", "call_id", "caller", "deadline", "idempotency_key", "scope")

    call_id: str
    """The running call's id, a path as `run/2/1`."""
    caller: Caller
    """On whose behalf the call is made."""
    deadline: float | None
    """When the call must have ended, in `time.monotonic()` seconds; None when it has no limit."""

    scope: Any
    """What surrounds the call; for tools that come with toolwire. None in a context of somebody's own."""
    idempotency_key: str
    """For a tool that is idempotent by key or has a `reconcile`: the same text each time this very call is made, after
    a crash too. `reconcile` is asked with this text. Empty for any other tool."""

    def __init__(
        self,
        *,
        call_id: str,
        call: CallPort,
        emit: EmitPort = silent,
        caller: Caller = NOBODY,
        deadline: float | None = None,
        idempotency_key: str = "",
        scope: Any = None,
    ) -> None:
        self._call = call
        self._emit = emit
        self.call_id = call_id
        self.caller = caller
        self.deadline = deadline
        self.idempotency_key = idempotency_key
        self.scope = scope

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """The result of another tool, called down the one path: validated, judged and recorded like any call.

        Never raises for a missing, denied or failed call: the result says so.
        """
        return await self._call(name, arguments)

    def emit(self, part: Any, /) -> Awaitable[None]:
        """Gives a part of the output before the end: text, a block, a `ToolResponse`, any value.

        An async tool awaits it. It takes as long as the reader does; without a reader the part is kept for the result.
        """
        return self._emit(part)

    def progress(self, done: float, total: float | None = None, message: str = "") -> Awaitable[None]:
        """Says how far the tool has come; no part of its output. An async tool awaits it."""
        return self._emit(Progress(done=done, total=total, message=message))
