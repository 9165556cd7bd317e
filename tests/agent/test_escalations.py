"""No sub-agent gets more rights than its run has: each attempt fails, and succeeds without the protection."""

from __future__ import annotations

import pytest

from tests.agent import escalations_by_limits, escalations_by_rules
from tests.agent.attempts import Attempt

ATTEMPTS = [*escalations_by_rules.ATTEMPTS, *escalations_by_limits.ATTEMPTS]


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 30


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=[one.__name__ for one in ATTEMPTS])
async def test_an_attempt_fails_and_succeeds_without_the_protection(attempt: Attempt) -> None:
    assert await attempt(True) is False
    assert await attempt(False) is True
