"""Ids of runs."""

from __future__ import annotations

import functools
import operator
import os
import re

import pytest

from tests.runtime.subprocesses import output_of
from toolwire.runtime import identity
from toolwire.runtime.identity import DIGITS, new_id


def number_of(id: str) -> int:
    return functools.reduce(lambda number, digit: number * len(DIGITS) + DIGITS.index(digit), id[2:], 0)


def test_ids_of_one_process_differ_increase_and_are_selected_by_a_double_click() -> None:
    ids = [new_id("r") for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch("r_[0-9A-Za-z]{22}", one) for one in ids)
    first, last = number_of(ids[0]), number_of(ids[-1])
    # Other threads of this process may make ids meanwhile.
    assert 9_999 <= last - first < 20_000


def test_a_process_counts_from_128_random_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []
    for _ in range(100):
        monkeypatch.setattr(identity, "_NAMES", identity._Names())
        starts.append(number_of(new_id("r")))
    always, ever = functools.reduce(operator.and_, starts), functools.reduce(operator.or_, starts)
    # Each bit was 0 and was 1: one that is not random would be the same in all.
    assert (always, ever) == (0, 2**128 - 1)


def test_the_last_number_still_has_the_length_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for byte in (b"\x00", b"\xff"):
        monkeypatch.setattr(os, "urandom", byte.__mul__)
        monkeypatch.setattr(identity, "_NAMES", identity._Names())
        ids = [new_id("r") for _ in range(5_000)]
        assert ids == sorted(set(ids))
        assert {len(one) for one in ids} == {24}


def test_a_forked_child_makes_ids_of_its_own() -> None:
    script = """
        import os
        from toolwire.runtime.identity import new_id
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, new_id("r").encode())
            os._exit(0)
        os.wait()
        print(os.read(read, 99).decode()[:10] == new_id("r")[:10])
        os.close(read), os.close(write)
    """
    assert output_of(script) == "False\n"
