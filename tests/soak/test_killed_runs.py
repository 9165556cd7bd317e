"""The short form of `python -m tests.soak.killed_runs`."""

from __future__ import annotations

import pytest

from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.soak.killed_runs import toll_of

KILLS = 6


@pytest.mark.threat(16)
@pytest.mark.timeout(300)
def test_runs_killed_at_random_lose_hide_and_double_nothing(url: str) -> None:
    toll, is_whole = toll_of(url, KILLS, seed=3)
    assert toll.kills >= KILLS
    assert (toll.lost, toll.hidden, toll.doubled, is_whole) == (0, 0, 0, True)
