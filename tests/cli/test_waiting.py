"""The time limit of a command, with and without a question to a person."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from tests.patience import PATIENCE_S
from toolwire.cli.waiting import ConsoleAsker, within


@dataclass
class Asked(ConsoleAsker):
    """A question that has taken some seconds, and is answered at the second look at the clock."""

    answer: threading.Event
    looks: int = 0

    @property
    def seconds(self) -> float:
        """More at each look, as for an open question."""
        self.looks += 1
        if self.looks == 2:
            self.answer.set()
        return float(self.looks)


def test_the_time_of_an_open_question_does_not_count() -> None:
    answer = threading.Event()

    def work(future: Future[str]) -> None:
        assert answer.wait(PATIENCE_S)
        future.set_result("done")

    assert within(0.01, work, asking=Asked(answer)) == "done"


def test_without_a_question_the_limit_ends_the_wait() -> None:
    release = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            within(0.01, lambda _: release.wait(PATIENCE_S) and None)
    finally:
        release.set()
