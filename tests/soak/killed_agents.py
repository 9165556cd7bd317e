"""Agents with a sub-agent whose processes are killed at random moments, and that go on until they have answered.

Run: python -m tests.soak.killed_agents [kills] [seed]: that many of each store, in conversations of 21 replies.
`tests/soak/test_killed_agents.py` is the short form.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.journal.postgres import running
from tests.session.killed import KEY
from tests.session.test_killed import SPAWN
from tests.soak.agents_at_work import PROMPTS, TURNS, damage, work
from tests.soak.conversing import Part
from tests.soak.killed_conversations import LONGEST_S, MODES, lives
from toolwire import Store

KILLS = 200
"""Kills for each store."""
MOMENTS = 150
"""The latest moment to die at. The calls of a conversation have more than a thousand."""


@dataclass(slots=True)
class Toll:
    """The damage of a number of kills. `Damage` describes the fields that have the same names."""

    kills: int = 0
    killed_at_questions: int = 0
    conversations: int = 0
    asked_again: int = 0
    doubled: int = 0
    lost: int = 0
    doubts: int = 0
    is_log_whole: bool = True

    @property
    def is_bad(self) -> bool:
        """True if a call was lost or doubled, or more replies were asked for again than there were kills."""
        return bool(self.doubled or self.lost) or self.asked_again > self.kills or not self.is_log_whole


def soak(new_url: Callable[[int], str], kills: int, seed: int) -> Toll:
    """The toll of that many kills. `new_url` gives each conversation a store of its own."""
    SPAWN.set_forkserver_preload(["tests.soak.agents_at_work"])
    chance, toll = random.Random(seed), Toll()
    while toll.kills < kills:
        with tempfile.TemporaryDirectory() as folder:
            part = Part(url=new_url(toll.conversations), folder=folder, turns=PROMPTS * TURNS)
            found = damage(part, _conversation(part, chance, toll, kills))
            toll.conversations += 1
            for name in ("asked_again", "doubled", "lost", "doubts"):
                setattr(toll, name, getattr(toll, name) + getattr(found, name))
            with Store.open(part.url, key=KEY) as store:
                toll.is_log_whole = toll.is_log_whole and store.verify().is_whole
    return toll


def _conversation(part: Part, chance: random.Random, toll: Toll, kills: int) -> list[Any]:
    """The messages of the conversation. Its processes are killed until there were kills enough or it has ended."""
    while True:
        mode = chance.choice(MODES) if toll.kills < kills else "none"
        said, is_killed = lives(
            replace(
                part,
                answers="never" if mode == "question" else chance.choice(("at once", "later")),
                dies_at=chance.randint(1, MOMENTS) if mode == "moment" else 0,
            ),
            dies_after_s=chance.uniform(0.1, LONGEST_S) if mode == "clock" else None,
            work=work,
        )
        toll.kills += is_killed
        toll.killed_at_questions += is_killed and mode == "question" and said[-1:] == ["asked"]
        ended = [one for one in said if isinstance(one, list)]
        if ended:
            return ended[0]


def main() -> int:
    """So many kills of each store; 1 if a call was lost or doubled, or a reply asked for too often."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    is_bad = False
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # The server runs as another user, which may not read this folder.
        server = stack.enter_context(running(Path(f"{folder}-server"), Path(folder) / "users"))

        def database(number: int) -> str:
            server.create(f"c{number}")
            return server.url(f"c{number}")

        for name, new_url in (("sqlite", lambda number: f"sqlite:///{folder}/{number}.db"), ("postgresql", database)):
            toll = soak(new_url, kills, seed)
            print(f"{name}: {toll} (seed {seed})", flush=True)
            is_bad = is_bad or toll.is_bad
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
