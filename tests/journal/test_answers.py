"""Answers that come to many threads at once: all get theirs, whoever else went away."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import CancelledError
from typing import Any

import pytest
from benchmarks.kills import start_of, step_number

from tests.journal.world import started
from tests.patience import PATIENCE_S
from toolwire.journal.answers import Answer, Turn, wake
from toolwire.journal.store import Store


class Shown(Answer[int]):
    """Tells when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awaited = threading.Event()

    def _expect(self, turn: Turn) -> None:
        super()._expect(turn)
        self.is_awaited.set()


class Hasty(Answer[int]):
    """Is answered, and its round woken, while somebody begins to wait: just before or just after that is known."""

    def __init__(self, *, before: bool) -> None:
        super().__init__()
        self._before = before

    def _expect(self, turn: Turn) -> None:
        if not self._before:
            super()._expect(turn)
        turns = self.round = deque[Turn]()
        self.set_result(1)
        wake(turns)
        if self._before:
            super()._expect(turn)


def test_those_of_a_round_wake_each_other() -> None:
    answers, heard, turns = [Shown() for _ in range(20)], list[int](), deque[Turn]()
    threads = [threading.Thread(target=lambda one=one: heard.append(one.result())) for one in answers]
    for thread in threads:
        thread.start()
    for number, answer in enumerate(answers):
        assert answer.is_awaited.wait(PATIENCE_S)
        answer.round = turns
        answer.set_result(number)
    assert (len(turns), heard) == (20, [])
    wake(turns)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(heard) == list(range(20))


def test_who_went_away_holds_nobody_up() -> None:
    gone, waiting = Turn(), Turn()
    gone.leave()
    turns = deque([gone, waiting])
    wake(turns)
    waiting.wait()
    assert not turns


def test_who_goes_away_when_it_was_woken_wakes_the_next_one() -> None:
    going, waiting = Turn(), Turn()
    going.round = waiting.round = deque([going, waiting])
    wake(going.round)
    assert list(going.round) == [waiting]
    going.leave()
    waiting.wait()


@pytest.mark.parametrize("before", [True, False])
def test_an_answer_that_comes_while_somebody_begins_to_wait_is_not_missed(before: bool) -> None:
    assert Hasty(before=before).result() == 1


def test_an_answer_is_a_future() -> None:
    async def awaited() -> int:
        answer = Answer[int]()
        waiting = asyncio.wrap_future(answer)
        answer.set_result(3)
        return await waiting

    assert asyncio.run(awaited()) == 3
    with pytest.raises(TimeoutError):
        Answer[int]().result(timeout=0)
    cancelled = Shown()
    thread = threading.Thread(target=lambda: cancelled.is_awaited.wait(PATIENCE_S) and cancelled.cancel())
    thread.start()
    with pytest.raises(CancelledError):
        cancelled.result()
    thread.join()


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
