"""Waits for work that may never end. The work runs in its own thread, so that this thread can give up."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_THREAD = "toolwire-command"
_TIDY_UP_S = 1.0
"""Seconds for the thread to close its event loop after the result is available."""
_LEAST_WAIT_S = 0.1
"""Minimum time in seconds between two looks at the clock while a question is open."""


class ConsoleAsker:
    """Asks the person at the terminal, and measures the time that the answers take."""

    def __init__(self) -> None:
        self._ended_s = 0.0
        self._open: dict[str, float] = {}

    def __call__(self, request: toolwire.ApprovalRequest) -> toolwire.Decision | None:
        """Returns the decision of the person, or None if the call stays undecided."""
        from toolwire.approvals import console_approver

        self._open[request.id] = time.monotonic()
        try:
            return console_approver(request)
        finally:
            self._ended_s += time.monotonic() - self._open.pop(request.id)

    @property
    def seconds(self) -> float:
        """The time that all questions have taken so far, open ones included."""
        now = time.monotonic()
        return self._ended_s + sum(now - since for since in self._open.copy().values())


def answer_nothing(request: toolwire.ApprovalRequest) -> None:
    """Leaves a call undecided, where no person is at a terminal. The result says so, and how to mend it."""


def terminal_asker(ask: bool | None) -> ConsoleAsker | None:
    """Returns the approver at the terminal. None if no person is to be asked.

    Without `--ask` or `--no-ask` a person is asked if standard input and standard error are a terminal.

    Raises:
        Stop: `--ask` was given without a terminal.
    """
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if ask and not is_terminal:
        message = "--ask needs a terminal at standard input and standard error"
        raise Stop(ExitCode.WRONG_USAGE, message, hint="Run it at a terminal, or decide by `toolwire approvals`.")
    return ConsoleAsker() if is_terminal and ask is not False else None


def within(seconds: float, work: Callable[[Future[T]], None], *, asking: ConsoleAsker | None = None) -> T:
    """Returns the value that `work` puts into its future. The thread may still be cleaning up.

    The time that a person takes to answer does not count.

    Raises:
        TimeoutError: No value arrived in time. The thread keeps running until `leave` ends the process.
        Exception: The error that `work` raised.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            work(future)
        except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
            if not future.done():
                future.set_exception(error)

    thread = threading.Thread(target=run, name=_THREAD, daemon=True)
    thread.start()
    result = _wait_for(future, seconds, asking)
    thread.join(_TIDY_UP_S)
    return result


def _wait_for(future: Future[T], seconds: float, asking: ConsoleAsker | None) -> T:
    left_s, counted_s = seconds, 0.0
    while True:
        try:
            return future.result(left_s)
        except TimeoutError:
            asked_s = 0.0 if asking is None else asking.seconds
            if future.done() or asked_s <= counted_s:
                raise
            left_s, counted_s = max(asked_s - counted_s, _LEAST_WAIT_S), asked_s


@contextmanager
def background_loop() -> Generator[asyncio.AbstractEventLoop]:
    """Gives an event loop that runs in another thread. Tasks that have not ended stop where they are."""
    # `toolwire --version` imports this module too, and asyncio is slow to import.
    import asyncio

    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        if asyncio.all_tasks(loop):
            # Python would report them at a normal exit. `leave` sees this thread, and ends the process without one.
            threading.Event().wait()
        loop.close()

    thread = threading.Thread(target=run, name=_THREAD, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_TIDY_UP_S)


def leave(code: int) -> NoReturn:
    """Ends the process, even if a tool does not end."""
    if any(thread.name == _THREAD for thread in threading.enumerate()):
        # A normal exit would wait for threads that tools started and that never end.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
