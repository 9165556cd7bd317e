"""Threads that run what may block: tools with a time limit, sync tools under an event loop, live programs.

A thread cannot be stopped. A worker whose job never ends therefore stays taken, counts against the cap,
and is a daemon: it holds up neither `close()` nor the interpreter's exit.
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

T = TypeVar("T")

WORKERS_CAP = 64
"""Jobs that may be running or stuck at once: more than a batch needs, far fewer than a process may have threads."""

WAITING_CAP = 1_000
"""Jobs that may wait for a worker: a few seconds' work for short tools, and little memory."""

WAIT_LIMIT_S = 60.0
"""Seconds that a job without a time limit of its own waits for a worker: after that the workers count as stuck."""

ALARM_SHARE = 0.8
"""The part of them that, once taken, is told to the log: while there is time left to look what hangs."""

ALARM_PAUSE_S = 60.0
"""Seconds between two such warnings: at the edge, each job would warn."""

PROGRAM_SHARE = WORKERS_CAP // 4
"""Workers that the calls of one program may have at once: other programs and plain calls find the rest free."""
program_share: contextvars.ContextVar[Gate | None] = contextvars.ContextVar("program_share", default=None)
"""Limits the workers of the program on whose behalf this task runs; None outside of programs."""

_LOG = logging.getLogger("toolwire.workers")


_INSIDE: contextvars.ContextVar[tuple[Workers, ...]] = contextvars.ContextVar("inside", default=())
"""The pools that a job runs in, and the jobs that led to it."""


class WorkersExhausted(ToolwireError):
    """There is no worker: all are taken, by running jobs or by jobs that never ended, or they were closed."""


Job = tuple[Future[Any], contextvars.Context, Callable[[], Any]]


class Workers:
    """A pool of daemon threads, grown on demand up to `cap`. Up to `waiting_cap` further jobs wait, in order.

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
        """Workers that have a job now; those that are stuck count."""
        return self._threads - self._idle

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Runs `function` in a worker, in a copy of this thread's context variables.

        Raises:
            WorkersExhausted: `waiting_cap` jobs wait already, or the workers were closed. A job that comes from
                inside of these workers does not wait: it could wait for itself.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        context.run(_INSIDE.set, (*_INSIDE.get(), self))
        self._give((future, context, function))
        return future

    def close(self) -> None:
        """Lets idle workers end. Busy ones end with their job; nobody waits for them."""
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
            # Still locked: `close` must not end the worker that this job counts on.
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
        """Puts a job into the queue; called with the lock held."""
        if self in _INSIDE.get() or not self.waiting_cap:
            raise WorkersExhausted(f"all {self.cap} workers are busy or stuck")
        if len(self._waiting) >= self.waiting_cap:
            waiting = f"{self.waiting_cap:,} calls wait for one"
            raise WorkersExhausted(f"all {self.cap} workers are busy or stuck, and {waiting}")
        self._waiting[job[0]] = job
        job[0].add_done_callback(self._withdraw)

    def _withdraw(self, future: Future[Any]) -> None:
        # Most futures are done because their job is: then they left the queue long before.
        if future.cancelled():
            with self._lock:
                self._waiting.pop(future, None)

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="toolwire-worker", daemon=True).start()
        except RuntimeError as error:
            raise WorkersExhausted(f"no thread beyond {self._threads} workers could be started") from error
        self._threads += 1

    def _work(self) -> None:
        job = None
        while (job := job or self._jobs.get()) is not None:
            future, context, function = job
            is_wanted = future.set_running_or_notify_cancel()
            result, error = _outcome(context, function) if is_wanted else (None, None)
            # Free before the outcome is known: who waited for it may start the next job at once.
            with self._lock:
                job = self._waiting.pop(next(iter(self._waiting))) if self._waiting else None
                self._idle += job is None
            if error is not None:
                future.set_exception(error)
            elif is_wanted:
                future.set_result(result)
            # A worker that waits must not keep the last job's objects alive.
            del future, context, function, result, error


def _outcome(context: contextvars.Context, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result or the exception. An exception holds this frame: the future, which holds it, must not be in here."""
    try:
        return context.run(function), None
    except BaseException as error:  # noqa: BLE001 - the waiting side decides what an exception means
        return None, error
