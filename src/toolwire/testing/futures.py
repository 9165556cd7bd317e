"""Futures for fakes, already done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def done(make: Callable[[], T]) -> Future[T]:
    """Returns a finished future with the result or the exception of `make`."""
    future: Future[T] = Future()
    try:
        future.set_result(make())
    except Exception as error:  # noqa: BLE001 - the future carries it
        future.set_exception(error)
    return future
