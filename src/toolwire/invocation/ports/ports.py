"""Interfaces that the core awaits: the ports of the drivers (`blocking`, `asynchronous`), and the ledger of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from toolwire.catalogue.entry import Entry
from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.under_way import CutOff, UnderWay
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.runtime.runtime import Runtime
from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.calls import NOBODY, Caller, ToolCall
from toolwire.vocabulary.context import Progress
from toolwire.vocabulary.kept_text import Spill
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


class TimedOut(Exception):
    """A tool exceeded its time limit.

    `stopped` is True if the tool was cancelled and ended. A thread cannot be stopped, so its effect is unknown.
    """

    def __init__(self, limit_s: float, *, stopped: bool) -> None:
        super().__init__(limit_s)
        self.limit_s = limit_s
        self.stopped = stopped


class Raised:
    """A tool's exception, carried as a value.

    Coroutines and asyncio futures change some exceptions, and a `StopIteration` never leaves them.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Ledger(Protocol):
    """The write-ahead log of one run. Each call asks it first: is it done, is it decided, may it have run already?

    A future resolves when its record is durable. Any thread may wait for it.
    """

    run_id: str
    """The run's id."""

    @property
    def pages(self) -> Spill | None:
        """Keeps the long results of the run's conversation; None: they are kept in memory."""
        ...

    def record_start(self) -> Future[None] | None:
        """Records the start of the run; None if it is on record. No tool runs before the future resolves.

        Each other record of the run comes after its start, too.
        """
        ...

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        """Returns the recorded result of a step, an `InDoubtStep` if it may have run, or None for a new step.

        A step that differs from its record fails as `divergence`. So do all later ones, unless a tool made the call.
        """
        ...

    def steps_below(self, parent: str) -> Sequence[tuple[Step, ToolResult]]:
        """Returns the ended steps below this one, in the order in which they ended."""
        ...

    def note(self, parent: str, entry: Mapping[str, Any]) -> None:
        """Records an entry that a composite needs about its calls when it runs again. The entry uses JSON types.

        Does not wait. The entry is durable no later than the next record that is requested from this ledger.
        """

    def notes(self, parent: str) -> Sequence[Mapping[str, Any]]:
        """Returns these entries in order, including those of earlier passes."""
        ...

    def ask(self, request: ApprovalRequest) -> Future[tuple[ApprovalRequest, Decision | None]]:
        """Records the request before anyone sees it.

        The future gives the stored request, and its decision if there is one.

        If the same attempt at the call was already asked about, the earlier request counts.
        """
        ...

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        """Records the decision. The future gives the decision that counts, which is the first.

        The future raises `DecisionRefused` if this decision is invalid and no other exists.
        """
        ...

    def use_answers(self, request_ids: Sequence[str]) -> Future[None]:
        """Records that the tool receives the answers to these questions, or that the person declined.

        The tool may run beyond its question as soon as this is recorded.
        """
        ...

    def begin(self, start: Start) -> Future[float | ToolResult]:
        """Records that the step is about to run, and uses up its approval.

        The future gives the start time in seconds since the epoch, or a result if the step must not run. For a
        composite that runs again, it is the time of the first start.
        """
        ...

    def settle(self, step: Step, result: ToolResult, record: CallRecord | None = None) -> Future[ToolResult]:
        """Records the end of the step, and `record` in the log. None: the log has no row of it.

        The future gives the result that counts: this one, or the reason why it was not kept.
        """
        ...

    def settle_with_end(self, step: Step, result: ToolResult, record: CallRecord | None = None) -> ToolResult:
        """Works as `settle`, and returns the result that counts at once. It is durable when the end of the turn is.

        It is for the last call of a turn. What is recorded next takes its record along.
        """
        ...

    def abandon(self, step: Step) -> None:
        """Records that the step was abandoned. Does not wait."""


class Ports(Protocol):
    """Operations that may take time. The ports of the blocking driver never suspend."""

    is_blocking: bool
    """True if the core runs without an event loop."""
    runtime: Runtime
    """The threads and the sandbox of its calls."""

    @property
    def blocking(self) -> Ports:
        """The ports of the blocking driver, for work that was moved to a thread."""
        ...

    def execute(
        self, function: Callable[[], Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Awaitable[Any]:
        """Calls the function, which runs a sync tool and returns its value or `Raised`. `pauses` extend the limit.

        Raises:
            TimedOut: The tool ran longer than `limit_s` seconds.
            WorkersExhausted: The tool needs a worker, and none is free.
        """
        ...

    def is_cancellation(self, error: BaseException) -> bool:
        """True if the exception cancels this call itself, and not only work inside its tool."""
        ...

    def is_still_running(self, error: BaseException) -> bool:
        """True if the exception cancels this call, and its tool did not end in time for that."""
        ...

    async def pass_gate(self, gate: Gate, limit_s: float | None) -> None:
        """Waits for a turn at the gate.

        Raises:
            TimedOut: The turn did not come within `limit_s` seconds.
        """
        ...

    def finish(
        self, work: Coroutine[Any, Any, T], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Awaitable[T]:
        """Returns the coroutine's result. It runs on the caller's loop, or on the portal if the caller has none.

        `pauses` extend the limit on the caller's loop. The portal runs only the awaitable of a sync tool.

        Raises:
            TimedOut: The coroutine ran longer than `limit_s` seconds and was cancelled.
        """
        ...

    async def await_tool_future(
        self, future: Future[Any], limit_s: float | None, pauses: PauseClock | None = None
    ) -> Any:
        """Returns the result of a tool's future, or `Raised`. If the call ends earlier, the future is cancelled.

        Raises:
            TimedOut: The future was not done within the limit and the pauses. `stopped` is what its `cancel()` gave.
        """
        ...

    async def ask(self, whom: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        """Returns the answer of a callback of the host, such as an approver or a tool's `reconcile`."""
        ...

    def from_tool(self) -> Callable[[Callable[[], Coroutine[Any, Any, T]]], Future[T]]:
        """Returns a function with which the thread of a sync tool starts a coroutine of the path."""
        ...

    async def offload(self, function: Callable[[], T]) -> T:
        """Runs a function that takes processor time. An event loop continues meanwhile.

        If the wait is cancelled, it raises only after the function has ended.
        """
        ...

    async def has_ended(self, future: Future[Any], limit_s: float) -> bool:
        """True if the future was done within the limit. A cancellation of the wait is raised when the wait is over."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits for this many seconds."""
        ...

    def wait_for(self, future: Future[T]) -> Coroutine[Any, Any, T]:
        """Returns the future's result or raises its error. A cancelled wait does not cancel the future."""
        ...

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        """Returns the results of all coroutines in the given order. They run in parallel as far as workers are free."""
        ...

    async def unless_stopped(self, work: Coroutine[Any, Any, T], under_way: UnderWay) -> T | CutOff:
        """Returns the result of a call's work, or the known facts if `under_way` stopped it. It waits for the clean-up.

        A call that ended by itself keeps its result. Without an event loop nothing can be stopped.
        """
        ...

    async def whole(self, core: Callable[[], Coroutine[Any, Any, T]], names: Callable[[], Iterable[str]]) -> T:
        """Runs the calls of a turn. A cancelled turn waits for their clean-up first, and logs what still runs then.

        `names` returns the names of the tools that run.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a running tool's output: content, a response object, or its progress."""

    pieces: tuple[str | ContentBlock, ...] = ()
    """Content that follows all earlier content. Adjacent strings are joined."""
    response: ToolResponse | None = None
    """The tool's own response. A cumulative response replaces all earlier content."""
    progress: Progress | None = None
    """The tool's progress."""


class Sink(Protocol):
    """Reads a call's output. Any thread may call it, and waits for its futures on a loop or by blocking."""

    def offer(self, part: Part, /) -> Future[bool] | None:
        """Hands over a part. Returns None if the tool may continue, else a future for the reader's next request.

        The future gives True if the reader wants the next part, and False if it wants no more. The tool waits for it
        meanwhile. This is the back-pressure of a slow reader.
        """
        ...

    def end_with(self, response: ToolResponse, /) -> None:
        """Names the response that the tool marked as its last. It becomes the last chunk when the call has ended."""
        ...


@dataclass(slots=True, eq=False)
class CallRecord:
    """One call from start to end, for observers.

    Attributes:
        call: The call as the model or program made it, without the nulls that validation left out.
        entry: The registered tool; None if no tool has the call's name.
        result: The result of the call.
        run_id: The run that the call belongs to, or the call's id outside of a run.
        started_at: Start time in seconds since the epoch.
        duration_s: Duration in seconds.
        is_from_record: True if nothing ran: the result is that of an earlier pass over the run.
        caller: The caller on whose behalf the call was made.
        conversation: The conversation of the run; empty outside of a session.
        log_url: The URL of the store that has the call in its log, because its ledger wrote it; empty if none has.
    """

    call: ToolCall
    entry: Entry | None
    result: ToolResult
    run_id: str
    started_at: float
    duration_s: float
    is_from_record: bool = False
    caller: Caller = NOBODY
    conversation: str = ""
    log_url: str = ""


class Observer(Protocol):
    """Receives events and cannot affect calls. Its errors are logged and suppressed.

    An observer may have more methods; `invocation_id` is the run of the call, as in the log:

    - `started(call, invocation_id)`: a call arrived.
    - `parts(call, invocation_id)`: the tool is about to run. Returns a function that receives each `Part` it gives.
    - `asked(request, invocation_id)`: a person is about to be asked.
    - `decided(request, decision, invocation_id)`: a decision counts.
    """

    def ended(self, record: CallRecord, /) -> None:
        """Called once when a call has ended, after everything else."""
        ...
