"""Damaged conversations of a program with its host cost the host little, and bring nothing but violations."""

from __future__ import annotations

import pytest
from benchmarks import fuzz_frames

CONVERSATIONS = 20


@pytest.mark.threat(47)
@pytest.mark.threat(65)
def test_damaged_conversations_cost_the_host_little() -> None:
    assert fuzz_frames.fuzz(CONVERSATIONS, seed=65) > CONVERSATIONS


def test_a_conversation_that_costs_more_than_allowed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_frames, "MEMORY_MB", 0.1)
    with pytest.raises(AssertionError, match="MB and"):
        fuzz_frames.fuzz(CONVERSATIONS, seed=65)
