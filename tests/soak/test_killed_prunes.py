"""The short form of `python -m tests.soak.killed_prunes`."""

from __future__ import annotations

import random

import pytest

from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.soak.killed_prunes import soak

KILLS = 3


@pytest.mark.timeout(300)
def test_a_prune_that_is_killed_loses_nothing_that_was_not_due(url: str) -> None:
    assert soak(url, KILLS, random.Random(3), count=1) >= KILLS
