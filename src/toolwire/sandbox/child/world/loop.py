"""asyncio for programs: CPython's own tasks and primitives on an event loop that waits on the channel.

The child has one channel and no `poll`. The loop therefore waits by reading a frame; the host runs its timers.
Functions that take awaitables also take a tool's plain value, since a program cannot always tell which it has.
"""

import asyncio
import asyncio.base_events
import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, cast

from .tool_calls import CallChannel

SPINS = 64
"""Rounds of the loop without waiting, after which it checks for answers."""

_NAMES = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BoundedSemaphore",
    "CancelledError",
    "Condition",
    "Event",
    "Future",
    "InvalidStateError",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "QueueEmpty",
    "QueueFull",
    "Semaphore",
    "Task",
    "TaskGroup",
    "TimeoutError",
    "all_tasks",
    "current_task",
    "get_event_loop",
    "get_running_loop",
    "isfuture",
    "iscoroutine",
    "iscoroutinefunction",
    "sleep",
    "timeout",
    "timeout_at",
]


class ProgramLoop(asyncio.base_events.BaseEventLoop):
    """An event loop whose only outside events are answers and the host's timer."""

    def __init__(self, calls: CallChannel, report: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._selector = _ChannelSelector(calls)
        self._report = report
        self.is_ending = False
        """True when the program's own coroutine has ended, and the tasks that it left are cancelled."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Shows an exception of a task that was never retrieved, as CPython does."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._report(error)

    def next_timer(self) -> float | None:
        """Returns the time at which the next timer goes off; None without a timer."""
        scheduled: list[Any] = getattr(self, "_scheduled", [])
        return scheduled[0].when() if scheduled else None

    def _process_events(self, event_list: list[Any]) -> None:
        """Does nothing: answers are delivered while waiting."""

    def _write_to_self(self) -> None:
        """Does nothing: the program has no other threads."""


class _ChannelSelector:
    def __init__(self, calls: CallChannel) -> None:
        self._calls = calls
        self._spins = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            self._spins += 1
            if self._spins < SPINS:
                return []
            timeout = 0
        self._spins = 0
        self._calls.wait(timeout)
        return []


class AsyncShim(types.ModuleType):
    """The module that a program sees as `asyncio`."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        super().__init__("asyncio", "Tasks and waiting, over the tools' channel.")
        self._make_loop = make_loop
        for name in _NAMES:
            setattr(self, name, getattr(asyncio, name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a program's asyncio has no {name!r}")

    def run(self, main: Any, *, debug: bool | None = None) -> Any:
        """Runs the coroutine to its end; not inside other async code."""
        if _running() is not None:
            if inspect.iscoroutine(main):
                main.close()
            raise RuntimeError("asyncio.run() cannot be called from a running event loop")
        with asyncio.Runner(debug=debug, loop_factory=self._make_loop) as runner:
            try:
                return runner.run(_alone(main))
            finally:
                loop: Any = runner.get_loop()
                loop.is_ending = True

    def gather(self, *awaitables: Any, return_exceptions: bool = False) -> Any:
        """All values in order, the work done in parallel."""
        _require_loop(*awaitables)
        return asyncio.gather(*map(awaitable, awaitables), return_exceptions=return_exceptions)

    def create_task(self, work: Any, *, name: str | None = None, context: Any = None) -> Any:
        """Starts the work at the next turn."""
        _require_loop(work)
        return asyncio.create_task(coroutine(work), name=name, context=context)

    def ensure_future(self, work: Any, *, loop: Any = None) -> Any:
        """The work as a future."""
        _require_loop(work)
        return asyncio.ensure_future(awaitable(work), loop=loop)

    def shield(self, work: Any) -> Any:
        """Keeps the work from being cancelled with its waiter."""
        _require_loop(work)
        return asyncio.shield(awaitable(work))

    def wait_for(self, work: Any, timeout: float | None) -> Any:
        """The value, or TimeoutError after so many seconds."""
        return asyncio.wait_for(awaitable(work), timeout)

    def wait(self, works: Any, **options: Any) -> Any:
        """(done, pending); coroutines may be given too."""
        works = list(works)
        _require_loop(*works)
        return asyncio.wait([asyncio.ensure_future(awaitable(work)) for work in works], **options)

    def as_completed(self, works: Any, *, timeout: float | None = None) -> Iterator[Any]:
        """Awaitables in the order in which they are done."""
        works = list(works)
        _require_loop(*works)
        # CPython makes a set of them: works that are not futures by then would start in any order.
        return asyncio.as_completed([asyncio.ensure_future(awaitable(work)) for work in works], timeout=timeout)

    async def to_thread(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Any:
        """A tool's value without blocking the others; there are no threads here, other functions just run."""
        return await awaitable(function(*arguments, **more))


def awaitable(value: Any) -> Awaitable[Any]:
    """Returns the value itself if it can be awaited, else an awaitable that gives it."""
    if inspect.isawaitable(value):
        return value
    if isinstance(value, list | tuple) and any(map(inspect.isawaitable, cast("list[Any]", value))):
        kind = "list" if isinstance(value, list) else "tuple"
        raise TypeError(f"a {kind} of awaitables cannot be awaited; unpack it with *")
    return _ready(value)


def coroutine(value: Any) -> Coroutine[Any, Any, Any]:
    """Returns the value as a coroutine, for functions that accept nothing else."""
    return value if inspect.iscoroutine(value) else _awaiting(awaitable(value))


async def _ready(value: Any) -> Any:
    return value


async def _awaiting(value: Awaitable[Any]) -> Any:
    return await value


async def _alone(main: Any) -> Any:
    return await awaitable(main)


def _require_loop(*works: Any) -> None:
    """Refuses work outside of async code. Closed coroutines give no warning, which would name a place of the host."""
    if _running() is not None:
        return
    for work in works:
        if inspect.iscoroutine(work):
            work.close()
    raise RuntimeError("no running event loop: call this in an async function, and await that one")


def _running() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
