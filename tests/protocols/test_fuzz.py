"""The short form of `python -m benchmarks.fuzz`."""

from __future__ import annotations

import pytest
from benchmarks.fuzz import fuzz


@pytest.mark.threat(47)
def test_damaged_replies_raise_nothing_and_streams_read_what_the_whole_says() -> None:
    assert fuzz(300, seed=7) > 50
