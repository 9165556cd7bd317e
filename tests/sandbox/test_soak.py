"""The short form of `python -m benchmarks.soak`."""

from __future__ import annotations

import pytest
from benchmarks.soak import is_flat, soak


@pytest.mark.threat(64)
def test_hundreds_of_programs_leave_files_processes_and_memory_as_they_were() -> None:
    before, after, _ = soak(250)
    if not is_flat(before, after):
        # A thread that an earlier test left may open a file meanwhile. What programs leave grows with each round.
        before, after, _ = soak(250)
    assert is_flat(before, after), (before, after)
