"""Futures of fakes: done when they are given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def done(make: Callable[[], T]) -> Future[T]:
    """What `make` gives or raises, as a future that nobody has to wait for."""
    future: Future[T] = Future()
    try:
        future.set_result(make())
    except Exception as error:  # noqa: BLE001 - carried to who waits
        future.set_exception(error)
    return future
