"""Worker threads for code that may block: tools with a time limit, sync tools under an event loop, live programs.

A thread cannot be stopped. A worker whose job never ends stays busy and counts against the cap. It is a daemon thread,
so it delays neither `close()` nor the interpreter's exit.
"""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.texts.counting import count_of

T = TypeVar("T")

WORKERS_CAP = 64
"""Maximum running or stuck jobs: more than a batch needs, far below the thread limit of a process."""

WAITING_CAP = 1_000
"""Maximum jobs that wait for a worker. Short tools finish that many in a few seconds, and they take little memory."""

WAIT_LIMIT_S = 60.0
"""Seconds that a job without its own time limit waits for a worker. After that the workers count as stuck."""

ALARM_SHARE = 0.8
"""Share of busy workers at which a warning is logged, early enough to find what hangs."""

ALARM_PAUSE_S = 60.0
"""Seconds between two such warnings; otherwise every job near the limit would warn."""

PROGRAM_SHARE = WORKERS_CAP // 4
"""Maximum workers for the calls of one program, so that other programs and plain calls find free ones."""
program_share: contextvars.ContextVar[Gate | None] = contextvars.ContextVar("program_share", default=None)
"""Limits the workers of the program that this task belongs to; None outside programs."""

_LOG = logging.getLogger("toolwire.workers")


_INSIDE: contextvars.ContextVar[tuple[Workers, ...]] = contextvars.ContextVar("inside", default=())
"""The pools in which the current job and the jobs that led to it run."""


class WorkersExhausted(ToolwireError):
    """No worker is available: all are busy or stuck, no thread could be started, or the pool was closed."""


Job = tuple[Future[Any], contextvars.Context, Callable[[], Any]]


class Workers:
    """A pool of daemon threads that grows on demand up to `cap`. Up to `waiting_cap` further jobs wait, in order.

    A future that is cancelled before its job has started leaves the queue.
    """

    def __init__(
        self,
        cap: int = WORKERS_CAP,
        *,
        waiting_cap: int = WAITING_CAP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.cap = cap
        self.waiting_cap = waiting_cap
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._waiting: dict[Future[Any], Job] = {}
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._alarmed_at = -math.inf

    @property
    def busy(self) -> int:
        """Number of workers with a job, stuck ones included."""
        return self._threads - self._idle

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Runs `function` in a worker and returns a future of its result.

        The function runs in a copy of this thread's context variables.

        Raises:
            WorkersExhausted: `waiting_cap` jobs wait already, or the pool was closed. A job from inside the same pool
                is refused instead of queued, because it could wait for itself.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        context.run(_INSIDE.set, (*_INSIDE.get(), self))
        self._give((future, context, function))
        return future

    def close(self) -> None:
        """Lets idle workers end and does not wait for busy ones, which end with their job. Queued jobs fail."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)
            waiting, self._waiting = list(self._waiting), {}
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(WorkersExhausted("the workers were closed"))

    def _give(self, job: Job) -> None:
        with self._lock:
            if self._closed:
                raise WorkersExhausted("the workers were closed")
            if self._idle:
                self._idle -= 1
            elif self._threads < self.cap:
                self._add_thread()
            else:
                self._wait(job)
                return
            # Under the lock, so that `close` cannot end the worker that this job needs.
            self._jobs.put(job)
            is_alarm = self.busy >= ALARM_SHARE * self.cap and self._clock() - self._alarmed_at >= ALARM_PAUSE_S
            if is_alarm:
                self._alarmed_at = self._clock()
            busy = self.busy
        if is_alarm:
            _LOG.warning(
                "%d of %d workers are busy or stuck: beyond these, calls wait, and fail as overloaded when their time "
                "is over. A worker is stuck when a sync tool took longer than its time limit and never ended",
                busy,
                self.cap,
            )

    def _wait(self, job: Job) -> None:
        """Queues a job. The caller holds the lock."""
        busy = f"no worker is free: {count_of(self.cap, 'is', 'are')} busy or stuck"
        if self in _INSIDE.get() or not self.waiting_cap:
            raise WorkersExhausted(busy)
        if len(self._waiting) >= self.waiting_cap:
            waiting = count_of(self.waiting_cap, "call waits for one", "calls wait for one")
            raise WorkersExhausted(f"{busy}, and {waiting}")
        self._waiting[job[0]] = job
        job[0].add_done_callback(self._withdraw)

    def _withdraw(self, future: Future[Any]) -> None:
        # Most futures are done because their job is done; these left the queue long before.
        if future.cancelled():
            with self._lock:
                self._waiting.pop(future, None)

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="toolwire-worker", daemon=True).start()
        except RuntimeError as error:
            raise WorkersExhausted(f"no thread beyond {count_of(self._threads, 'worker')} could be started") from error
        self._threads += 1

    def _work(self) -> None:
        job = None
        while (job := job or self._jobs.get()) is not None:
            future, context, function = job
            is_wanted = future.set_running_or_notify_cancel()
            result, error = _outcome(context, function) if is_wanted else (None, None)
            # The worker is free before the future resolves, because its waiter may start the next job at once.
            with self._lock:
                job = self._waiting.pop(next(iter(self._waiting))) if self._waiting else None
                self._idle += job is None
            if error is not None:
                future.set_exception(error)
            elif is_wanted:
                future.set_result(result)
            # A waiting worker must not keep the objects of its last job alive.
            del future, context, function, result, error


def _outcome(context: contextvars.Context, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Returns the result or the exception.

    The future must not be in this frame, because the exception refers to the frame.
    """
    try:
        return context.run(function), None
    except BaseException as error:  # noqa: BLE001 - the waiting side decides what an exception means
        return None, error
