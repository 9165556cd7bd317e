"""Replies of a real small model run the calls of the golden text, and the model reads its words next."""

from __future__ import annotations

from tests.model.replay import GOLDEN, played, recorded


def test_recorded_replies_run_the_same_calls_and_are_answered_in_the_same_words() -> None:
    assert played() == GOLDEN.read_text("utf-8")


def test_the_recorded_replies_are_of_every_text_format_and_some_of_them_failed() -> None:
    conversations = recorded()
    assert {one.format for one in conversations} == {"json", "attp", "xml", "json+grammar", "attp+grammar"}
    assert sum(len(one.replies) for one in conversations) >= 20
    assert any(one.solved_at != 1 for one in conversations)
    assert any(one.solved_at == 1 for one in conversations)
