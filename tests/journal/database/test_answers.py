"""Answers of the store: futures that threads and event loops wait for."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest
from benchmarks.kills import start_of, step_number

from tests.journal.world import started
from tests.patience import PATIENCE_S
from toolwire.journal.database.work import RecordFuture
from toolwire.journal.store import Store


def test_an_answer_is_a_future() -> None:
    async def awaited() -> int:
        answer = RecordFuture[int]()
        waiting = asyncio.wrap_future(answer)
        answer.set_result(3)
        return await waiting

    assert asyncio.run(awaited()) == 3
    with pytest.raises(TimeoutError):
        RecordFuture[int]().result(timeout=0)
    cancelled = RecordFuture[int]()
    cancelled.cancel()
    with pytest.raises(CancelledError):
        cancelled.result()


def test_many_threads_that_record_are_all_answered(store: Store) -> None:
    ledgers = [started(store) for _ in range(16)]
    answered: list[float] = []

    def record(ledger: Any) -> None:
        for number in range(40):
            answered.append(ledger.begin(start_of(step_number(number))).result())

    threads = [threading.Thread(target=record, args=(ledger,), daemon=True) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(answered) == 16 * 40
