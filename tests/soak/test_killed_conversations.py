"""The short form of `python -m tests.soak.killed_conversations`."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from tests.soak.conversing import Part, damage
from tests.soak.killed_conversations import lives, soak

KILLS = 10
TURNS = 6


@pytest.mark.threat(16)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_conversations_killed_at_random_do_nothing_twice_and_lose_no_reply(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made: list[str] = []

    def new_url(number: int) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/{number}.db"
        made.append(f"t{secrets.token_hex(6)}")
        server: Server = request.getfixturevalue("server")
        server.create(made[-1])
        return server.url(made[-1])

    toll = soak(new_url, KILLS, seed=3, turns=TURNS)
    for name in made:
        request.getfixturevalue("server").drop(name)
    assert toll.kills >= KILLS
    assert toll.killed_at_questions > 0
    assert (toll.replies_lost, toll.doubled, toll.lost, toll.hidden, toll.is_log_whole) == (0, 0, 0, 0, True)


@pytest.mark.threat(16)
@pytest.mark.timeout(300)
def test_without_runs_on_record_a_killed_conversation_does_things_twice(tmp_path: Path) -> None:
    """The control: the process dies after an effect, and the next one runs the reply again."""
    part = Part(url=f"sqlite:///{tmp_path}/runs.db", folder=str(tmp_path), turns=1, is_naive=True)
    kills = 0
    for moment in range(1, 8):
        kills += lives(replace(part, dies_at=moment))[1]
    said, _ = lives(part)
    assert kills > 1
    assert damage(part, said[-1]).doubled > 0


@pytest.mark.threat(16)
def test_a_reply_that_is_not_saved_is_counted_as_lost(tmp_path: Path) -> None:
    """The control of the count: another conversation has other replies."""
    part = Part(url=f"sqlite:///{tmp_path}/runs.db", folder=str(tmp_path), turns=1)
    lives(part)
    said, _ = lives(replace(part, url=f"sqlite:///{tmp_path}/other.db"))
    # The noted reply, and the effects that it had.
    assert damage(part, said[-1]).replies_lost == 2
