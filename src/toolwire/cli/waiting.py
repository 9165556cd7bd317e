"""Waiting for work that may never end: it runs in a thread of its own, and this one stays free to give up."""

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
"""Seconds that a thread gets to close its event loop once the result is there."""


def within(seconds: float, work: Callable[[Future[T]], None]) -> T:
    """What `work` puts into the future it is given; the thread may still tidy up then.

    Raises:
        TimeoutError: there was nothing after that many seconds. The thread is left behind; `leave` ends it.
        Exception: whatever `work` raised.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            work(future)
        except BaseException as error:  # noqa: BLE001 - passed on to the thread that waits
            if not future.done():
                future.set_exception(error)

    thread = threading.Thread(target=run, name=_THREAD, daemon=True)
    thread.start()
    result = future.result(seconds)
    thread.join(_TIDY_UP_S)
    return result


def leave(code: int) -> NoReturn:
    """Ends the process, even if a tool does not."""
    if any(thread.name == _THREAD for thread in threading.enumerate()):
        # The interpreter would wait for threads that the tool started and that never end.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
