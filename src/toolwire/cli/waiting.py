"""Waits for work that may never end. The work runs in its own thread, so that this thread can give up."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn, TypeVar

T = TypeVar("T")

_THREAD = "toolwire-command"
_TIDY_UP_S = 1.0
"""Seconds for the thread to close its event loop after the result is available."""


def within(seconds: float, work: Callable[[Future[T]], None]) -> T:
    """Returns the value that `work` puts into its future. The thread may still be cleaning up.

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
    result = future.result(seconds)
    thread.join(_TIDY_UP_S)
    return result


def leave(code: int) -> NoReturn:
    """Ends the process, even if a tool does not end."""
    if any(thread.name == _THREAD for thread in threading.enumerate()):
        # A normal exit would wait for threads that tools started and that never end.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
