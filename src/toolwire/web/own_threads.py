"""Threads for work of the web that may hang. The loop's default threads belong to the host."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from toolwire.web.refusals import FetchFailed

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], *, name: str, ended: Callable[[], object] | None = None) -> T:
    """Returns the value of the work, which runs in a new daemon thread with the context of the caller.

    A thread cannot be stopped: if the caller is cancelled, the thread works on. `ended` is called in it at its end.

    Raises:
        FetchFailed: The system starts no more threads; `ended` was called.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value: Any = None
        failed: BaseException | None = None
        try:
            value = context.run(work)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            failed = error
        finally:
            if ended is not None:
                ended()
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, failed)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        if ended is not None:
            ended()
        raise FetchFailed("this machine is too busy now", may_repeat=True) from error
    return await future
