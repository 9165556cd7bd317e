"""A thread that resolves many futures wakes each event loop once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire.runtime.wakes import one_wake_for_each_loop, wait_for_future


def in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)


@pytest.mark.parametrize("is_together", [True, False], ids=["together", "control: one by one"])
async def test_a_loop_is_woken_once_for_all_futures_of_a_block(
    is_together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, wakes = asyncio.get_running_loop(), list[Any]()
    call = loop.call_soon_threadsafe

    def note(callback: Callable[..., object], *given: Any, **named: Any) -> Any:
        wakes.append(callback)
        return call(callback, *given, **named)

    monkeypatch.setattr(loop, "call_soon_threadsafe", note)
    futures = [Future[int]() for _ in range(5)]
    waits = [asyncio.create_task(wait_for_future(future)) for future in futures]
    await asyncio.sleep(0)

    def resolve() -> None:
        for number, future in enumerate(futures):
            future.set_result(number)

    def resolve_together() -> None:
        with one_wake_for_each_loop():
            resolve()
            assert wakes == []

    in_thread(resolve_together if is_together else resolve)
    assert await asyncio.gather(*waits) == list(range(5))
    assert len(wakes) == (1 if is_together else 5)


async def test_an_error_is_raised_and_a_cancelled_wait_leaves_the_future() -> None:
    failed, left, cancelled = Future[int](), Future[int](), Future[int]()
    waits = [asyncio.create_task(wait_for_future(future)) for future in (failed, left, cancelled)]
    await asyncio.sleep(0)
    waits[1].cancel()
    in_thread(lambda: (failed.set_exception(ValueError("no")), cancelled.cancel(), None)[-1])
    found = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(one) for one in found] == [ValueError, asyncio.CancelledError, asyncio.CancelledError]
    left.set_result(7)
    assert await wait_for_future(left) == 7


def test_a_loop_that_was_closed_is_not_woken() -> None:
    future, loop = Future[int](), asyncio.new_event_loop()
    waiting = loop.create_task(wait_for_future(future))
    loop.run_until_complete(asyncio.sleep(0))
    waiting.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    future.set_result(7)
    assert future.result() == 7
