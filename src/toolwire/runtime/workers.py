"""Threads that run what may block: tools with a time limit, sync tools under an event loop, live programs.

A thread cannot be stopped. A worker whose job never ends therefore stays taken, counts against the cap,
and is a daemon: it holds up neither `close()` nor the interpreter's exit.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from toolwire.vocabulary.errors import ToolwireError

T = TypeVar("T")

WORKERS_CAP = 64
"""Jobs that may be running or stuck at once: more than a batch needs, far fewer than a process may have threads."""


class WorkersExhausted(ToolwireError):
    """Every worker is taken, by running jobs or by jobs that never ended."""

    def __init__(self, cap: int) -> None:
        super().__init__(f"all {cap} workers are busy or stuck")
        self.cap = cap


class Workers:
    """A pool of daemon threads, grown on demand up to `cap`."""

    def __init__(self, cap: int = WORKERS_CAP) -> None:
        self.cap = cap
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def busy(self) -> int:
        """Workers that have a job now; those that are stuck count."""
        return self._threads - self._idle

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Runs `function` in a worker, in a copy of this thread's context variables.

        Raises:
            WorkersExhausted: `cap` jobs are running or stuck already.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        self._give(lambda: _settle(future, context, function))
        return future

    def close(self) -> None:
        """Lets idle workers end. Busy ones end with their job; nobody waits for them."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _give(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise WorkersExhausted(0)
            if self._idle:
                self._idle -= 1
            elif self._threads < self.cap:
                self._threads += 1
                threading.Thread(target=self._work, name="toolwire-worker", daemon=True).start()
            else:
                raise WorkersExhausted(self.cap)
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            # A worker that waits must not keep the last job's objects alive.
            del job
            with self._lock:
                self._idle += 1


def _settle(future: Future[Any], context: contextvars.Context, function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = context.run(function)
    except BaseException as error:  # noqa: BLE001 - the waiting side decides what an exception means
        future.set_exception(error)
    else:
        future.set_result(result)
