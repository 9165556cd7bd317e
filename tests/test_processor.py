"""The comparison of processor times detects slow code: the controls of all tests that rely on it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.processor import LINEAR, ROUNDS, growth, milliseconds, ratio, thread_s

SIZE = 262_144
"""The number of characters at which a quadratic part outweighs the linear work on any machine."""


def reads_once(text: str) -> int:
    return sum(1 for character in text if character == "<")


def searches_again_from_each_word(text: str) -> None:
    for start in range(0, len(text), 16):
        text.find("\0", start)


def copies_the_rest_of_each_line(text: str) -> None:
    while text:
        text = text[16:]


def reads_and_has_a_small_quadratic_part(text: str) -> None:
    reads_once(text)
    copies_the_rest_of_each_line(text)


def test_work_in_proportion_to_the_text_passes() -> None:
    assert growth(reads_once, "x" * (SIZE // 4), "x" * SIZE) <= LINEAR


@pytest.mark.parametrize(
    "work", [searches_again_from_each_word, copies_the_rest_of_each_line, reads_and_has_a_small_quadratic_part]
)
def test_quadratic_work_is_caught(work: Callable[[str], object]) -> None:
    # Each further round can only lower both costs, and the two differ by far more than such a change.
    assert growth(work, "x" * (SIZE // 4), "x" * SIZE, rounds=5) > LINEAR


def test_a_cost_is_that_of_the_work_alone() -> None:
    text = "x" * (SIZE // 16)
    thrice = ratio(
        lambda: thread_s(lambda: [reads_once(text) for _ in range(3)]),
        lambda: thread_s(lambda: reads_once(text)),
        enough=3.5,
        least_rounds=ROUNDS,
    )
    assert 2 < thrice <= 3.5
    assert milliseconds(lambda: time.sleep(0.02), enough=2) < 2


def test_one_slow_measurement_does_not_count() -> None:
    costs = iter([9.0, 8.0, 2.0, 7.0])
    assert ratio(lambda: next(costs), lambda: 1.0, enough=5) == 2.0


def test_a_cost_that_is_always_too_high_is_told_after_all_rounds() -> None:
    costs = iter([9.0] * ROUNDS)
    assert ratio(lambda: next(costs), lambda: 1.0, enough=5) == 9.0
    assert list(costs) == []
