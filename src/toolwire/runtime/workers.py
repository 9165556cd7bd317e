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
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.machine.gate import Gate, GateClosed, GateFull
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

_CLOSED = "the workers were closed"


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
        self._gate = Gate(cap, queue_limit=waiting_cap)
        self._waiting_cap = waiting_cap
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._alarmed_at = -math.inf

    @property
    def cap(self) -> int:
        """Maximum number of workers."""
        return self._gate.room

    @property
    def busy(self) -> int:
        """Number of workers with a job, stuck ones included."""
        return self._gate.inside

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
        job: Job = (future, context, function)
        # Under the lock, so that `close` cannot end the worker that this job needs.
        with self._lock:
            turn = self._enter()
            if turn is None:
                self._ensure_thread()
                self._jobs.put(job)
                busy = self._alarm_count()
            else:
                turn.add_done_callback(partial(self._put, job))
                busy = 0
        if turn is not None:
            # Weak, or the two futures would keep each other alive, and with them the job's result.
            future.add_done_callback(partial(_give_up, weakref.ref(turn)))
        if busy:
            _LOG.warning(
                "%d of %d workers are busy or stuck: beyond these, calls wait, and fail as overloaded when their time "
                "is over. A worker is stuck when a sync tool took longer than its time limit and never ended",
                busy,
                self.cap,
            )
        return future

    def close(self) -> None:
        """Lets idle workers end and does not wait for busy ones, which end with their job. Queued jobs fail."""
        self._gate.close()
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _enter(self) -> Future[None] | None:
        """Takes a worker, or returns the turn to wait for. A job from inside the pool does not wait."""
        is_inside = self in _INSIDE.get()
        try:
            if not is_inside:
                return self._gate.enter()
            self._gate.enter_now()
        except GateClosed:
            raise WorkersExhausted(_CLOSED) from None
        except GateFull:
            message = f"no worker is free: {count_of(self.cap, 'is', 'are')} busy or stuck"
            if self._waiting_cap and not is_inside:
                message += f", and {count_of(self._waiting_cap, 'call waits for one', 'calls wait for one')}"
            raise WorkersExhausted(message) from None
        return None

    def _ensure_thread(self) -> None:
        """Adds a thread if all have a job. The caller holds the lock."""
        if self._threads >= self.busy:
            return
        try:
            threading.Thread(target=self._work, name="toolwire-worker", daemon=True).start()
        except RuntimeError as error:
            self._gate.leave()
            raise WorkersExhausted(f"no thread beyond {count_of(self._threads, 'worker')} could be started") from error
        self._threads += 1

    def _put(self, job: Job, turn: Future[None]) -> None:
        """Gives a job that waited to the worker that became free, or to none after `close`."""
        if turn.cancelled():
            return
        if turn.exception() is None:
            self._jobs.put(job)
        elif job[0].set_running_or_notify_cancel():
            job[0].set_exception(WorkersExhausted(_CLOSED))

    def _alarm_count(self) -> int:
        """Returns the number of busy workers if it is time to warn of it, else 0. The caller holds the lock."""
        busy = self.busy
        if busy < ALARM_SHARE * self.cap or self._clock() - self._alarmed_at < ALARM_PAUSE_S:
            return 0
        self._alarmed_at = self._clock()
        return busy

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, context, function = job
            is_wanted = future.set_running_or_notify_cancel()
            result, error = _outcome(context, function) if is_wanted else (None, None)
            # The worker is free before the future resolves, because its waiter may start the next job at once.
            self._gate.leave()
            if error is not None:
                future.set_exception(error)
            elif is_wanted:
                future.set_result(result)
            # A waiting worker must not keep the objects of its last job alive.
            del job, future, context, function, result, error


def _give_up(turn: weakref.ref[Future[None]], future: Future[Any]) -> None:
    waiting = turn()
    if future.cancelled() and waiting is not None:
        waiting.cancel()


def _outcome(context: contextvars.Context, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Returns the result or the exception.

    The future must not be in this frame, because the exception refers to the frame.
    """
    try:
        return context.run(function), None
    except BaseException as error:  # noqa: BLE001 - the waiting side decides what an exception means
        return None, error
