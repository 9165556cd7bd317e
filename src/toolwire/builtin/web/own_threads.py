"""Threads for work of the web that may hang. The loop's default threads belong to the host."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from toolwire.builtin.web.refusals import FetchFailed

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], *, name: str, ended: Callable[[], object] | None = None) -> T:
    """Returns the value of the work, which runs in a new daemon thread with the context of the caller.

    A thread cannot be stopped: if the caller is cancelled, the thread works on. `ended` is called in it at its end.

    Raises:
        FetchFailed: The system starts no more threads; `ended` was called.
    """
    context = contextvars.copy_context()
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    if ended is not None:
        future.add_done_callback(lambda _: ended())

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        future.set_exception(error)
        raise FetchFailed("this machine is too busy now", may_repeat=True) from error
    return await asyncio.wrap_future(future)
