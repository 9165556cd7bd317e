"""The short form of `python -m tests.soak.killed_agents`."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from tests.soak.agents_at_work import damage, work
from tests.soak.conversing import Part
from tests.soak.killed_agents import soak
from tests.soak.killed_conversations import lives

KILLS = 6


@pytest.mark.threat(16)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_agents_killed_at_random_lose_no_call_and_do_nothing_twice(
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

    toll = soak(new_url, KILLS, seed=5)
    for name in made:
        request.getfixturevalue("server").drop(name)
    assert toll.kills >= KILLS
    assert (toll.doubled, toll.lost, toll.is_log_whole) == (0, 0, True)
    assert toll.asked_again <= toll.kills


@pytest.mark.threat(16)
@pytest.mark.timeout(300)
def test_an_agent_without_a_record_does_things_twice(tmp_path: Path) -> None:
    """The control: the process dies after effects, and the next one begins again."""
    part = Part(url=f"sqlite:///{tmp_path}/runs.db", folder=str(tmp_path), turns=21, is_naive=True)
    said, is_killed = lives(replace(part, dies_at=40), work=work)
    assert is_killed
    said, _ = lives(part, work=work)
    assert damage(part, said[-1]).doubled > 0
