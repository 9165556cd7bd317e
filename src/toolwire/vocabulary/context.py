"""The context of a running tool: facts about its call, and calls of other tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.results import ToolResult

CallPort = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]
"""Calls the named tool with these raw arguments, as a child of the running call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a running tool."""

    done: float
    """Units of work that are done."""
    total: float | None = None
    """Units of work in total; None if unknown."""
    message: str = ""
    """The current activity, for a person."""


class Interrupted(BaseException):
    """Raised by `emit` and `progress` inside a tool whose output is not wanted any more. Do not catch it."""


EmitPort = Callable[[Any], Awaitable[None]]
"""Passes a part of the output, or a `Progress`, to the reader."""


class _Done:
    """An awaitable that is already done."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


DONE: Awaitable[None] = _Done()
"""The return value of `emit` in a sync tool, which has waited already."""


def silent(_: Any) -> Awaitable[None]:
    """Discards the part: the call has no reader."""
    return DONE


class CallContext:
    """The context of one call, passed to a tool that annotates a parameter with this class.

    The model does not see that parameter. A context must not be used after its call has ended.

    Attributes:
        call_id: The id of the running call, a path as `run/2/1`.
        caller: The caller for which the call is made.
        deadline: End of the time limit, as a value of `time.monotonic()`; None without a limit.
        scope: Internal state for toolwire's own tools; None in a context that you create.
        idempotency_key: For a tool that is idempotent by key or has a `reconcile`: the same text whenever this call is
            made, even after a crash. `reconcile` receives it too. Empty for other tools.
    """

    __slots__ = ("_call", "_emit", "call_id", "caller", "deadline", "idempotency_key", "scope")

    call_id: str
    caller: Caller
    deadline: float | None

    scope: Any
    idempotency_key: str

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
        """Calls another tool and returns its result. The call is validated, authorized and recorded like any other.

        It never raises for a missing, denied or failed call; the result describes the failure.
        """
        return await self._call(name, arguments)

    def emit(self, part: Any, /) -> Awaitable[None]:
        """Emits a part of the output before the end: text, a block, a `ToolResponse` or any other value.

        An async tool awaits it. It waits for the reader; without a reader the part is kept for the result.
        """
        return self._emit(part)

    def progress(self, done: float, total: float | None = None, message: str = "") -> Awaitable[None]:
        """Reports progress, which is not part of the output. An async tool awaits it."""
        return self._emit(Progress(done=done, total=total, message=message))
