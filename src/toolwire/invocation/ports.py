"""What the core awaits and asks: the driver's ports (`blocking`, `asynchronous`), and the ledger of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Protocol, TypeVar

from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.pending import Outcome
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.steps import Doubt, Start, Step

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


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


class Ledger(Protocol):
    """The write-ahead record of one run. It is asked before a call starts: done? decided? may it have run?

    A future is done when what it tells is durable; any thread may wait for it.
    """

    run_id: str
    """The run."""

    def recall(self, step: Step) -> ToolResult | Doubt | None:
        """How the step ended when the run was gone through before; that it may have run; None when it is new.

        A step that differs from its record gives the failure `divergence`, now and from then on.
        """
        ...

    def recorded(self, parent: str) -> Sequence[tuple[Step, ToolResult]]:
        """The steps below this one that ended, in the order in which they did."""
        ...

    def note(self, parent: str, entry: Mapping[str, Any]) -> None:
        """Takes down, in JSON types, what a composite has to know of its calls to be gone through again.

        Waits for nothing: it is durable no later than the next thing that is asked of this ledger.
        """
        ...

    def notes(self, parent: str) -> Sequence[Mapping[str, Any]]:
        """These entries, in order, those of earlier times included."""
        ...

    def ask(self, request: ApprovalRequest) -> Future[tuple[ApprovalRequest, Decision | None]]:
        """Takes the request down before anybody is shown it, and gives it as it stands, with its decision if it has
        one: the one of an earlier time when the same attempt at the call was asked about already."""
        ...

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        """Takes the decision down and gives the one that counts: the first.

        The future raises `DecisionRefused` when this one cannot count and there is no other.
        """
        ...

    def begin(self, start: Start) -> Future[float | ToolResult]:
        """Says that the step is about to run, uses up its approval, and gives when it began (seconds since the epoch;
        of a composite that is entered again, the first time). A result when it must not run."""
        ...

    def settle(self, step: Step, result: ToolResult) -> Future[ToolResult]:
        """Takes down how the step ended. Gives the result that counts: this one, or why it could not be kept."""
        ...

    def interrupted(self, step: Step) -> None:
        """Says that nobody waits for the step any more; waits for nothing itself."""
        ...


class CallSpan(Protocol):
    """One call as a tracer sees it, current while it runs: what its tool opens is inside of it."""

    def from_record(self) -> None:
        """Says that nothing was run for it: how it ends is known."""
        ...

    def ended(self, outcome: Outcome, /) -> None:
        """Told once, where it was begun."""
        ...


class ApprovalSpan(Protocol):
    """One wait for a person."""

    def ended(self, verdict: str, /) -> None:
        """Told once; empty: nobody decided."""
        ...


class TurnSpan(Protocol):
    """One turn of a session. Told once of its end."""

    def ended(self, outcome: Literal["answered", "refused", "suspended"], calls: int, /) -> None: ...
    def failed(self, error: BaseException, /) -> None: ...


class Tracer(Protocol):
    """Follows calls while they run, and cannot answer. It raises nothing: no call fails because nobody can watch it."""

    def call(self, call: ToolCall, *, tool: str | None, description: str, caller: Caller, run_id: str) -> CallSpan:
        """A call begins. `tool` is None when no tool has its name."""
        ...

    def approval(self, tool: str, request_id: str) -> ApprovalSpan:
        """A person is asked about a call."""
        ...

    def turn(self, run_id: str, *, caller: Caller, protocol: str, given_ids: Mapping[str, str]) -> TurnSpan:
        """A turn begins; `given_ids` are its calls' ids as the provider has them, by ours."""
        ...


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

    async def finish(self, work: Coroutine[Any, Any, T], limit_s: float | None) -> T:
        """The coroutine's result. It runs on the caller's loop, or on the portal's where the caller has none.

        Raises:
            TimedOut: It took longer than `limit_s` seconds and was cancelled.
        """
        ...

    async def ask(self, whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        """What somebody outside says: an approver to a request, a tool's owner to the key of a lost call."""
        ...

    async def aside(self, function: Callable[[], T]) -> T:
        """What the function gives, which takes processor time. An event loop goes on meanwhile; cancelled, it raises
        when the function has ended."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...

    async def arrived(self, future: Future[T]) -> T:
        """What the future gives or raises. Cancelled meanwhile, what it stands for happens all the same."""
        ...

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        """The results of all, in the order given; they run beside each other where there is room."""
        ...
