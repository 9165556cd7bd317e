"""What the core awaits. The two drivers, `blocking` and `asynchronous`, satisfy it; nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from toolwire.permission.approval import ApprovalRequest, Approver, Decision
from toolwire.vocabulary.gate import Gate

T = TypeVar("T")


class TimedOut(Exception):
    """A tool took longer than it may.

    `stopped` is True when it was cancelled and ended; a thread cannot be, so what it did or will do is unknown.
    """

    def __init__(self, limit_s: float, *, stopped: bool) -> None:
        super().__init__(limit_s)
        self.limit_s = limit_s
        self.stopped = stopped


class Raised:
    """What a tool raised, carried as a value: coroutines and asyncio's futures make other errors of some, and a
    `StopIteration` never gets out of them."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Ports(Protocol):
    """Everything that may take time. A blocking driver's ports never suspend."""

    is_blocking: bool
    """True when the core runs without an event loop."""

    @property
    def blocking(self) -> Ports:
        """The blocking driver's ports, for work that went to a thread of its own."""
        ...

    async def execute(self, function: Callable[[], Any], *, is_async: bool, limit_s: float | None) -> Any:
        """What the function returns, which runs a tool and gives `Raised` for what that raises.

        Raises:
            TimedOut: it took longer than `limit_s` seconds.
            WorkersExhausted: it needs a worker and there is none.
        """
        ...

    def is_cancellation(self, error: BaseException) -> bool:
        """Whether the exception means that the very call is being cancelled, and not something inside of its tool."""
        ...

    async def pass_gate(self, gate: Gate, limit_s: float | None) -> None:
        """Waits for its turn at the gate.

        Raises:
            TimedOut: it did not come within `limit_s` seconds.
        """
        ...

    async def ask(self, approver: Approver, request: ApprovalRequest) -> Decision | None:
        """What the approver says."""
        ...

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        """The results of all, in the order given; they run beside each other where there is room."""
        ...
