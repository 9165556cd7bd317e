"""Conversations whose processes are killed at random moments, again and again, and that go on until they end.

Run: python -m tests.soak.killed_conversations [kills] [seed]: that many of each store, in conversations of 20 turns.
`tests/soak/test_killed_conversations.py` is the short form.
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
from tests.patience import PATIENCE_S
from tests.session.killed import KEY
from tests.session.test_killed import SPAWN
from tests.soak.conversing import Part, converse, damage
from toolwire import Store

KILLS = 200
"""Kills for each store."""
TURNS = 20
MOMENTS = 120
"""The latest moment to die at: a turn has about fifty."""
LONGEST_S = 1.0
"""Seconds after which a process that is killed by the clock is killed at the latest."""
MODES = ("moment", "clock", "question")
"""When a process is killed: at a moment, by the clock, or from outside while its question waits."""


@dataclass(slots=True)
class Toll:
    """The damage of a number of kills. `Damage` describes the fields that have the same names."""

    kills: int = 0
    killed_at_questions: int = 0
    conversations: int = 0
    replies_lost: int = 0
    doubled: int = 0
    lost: int = 0
    hidden: int = 0
    doubts: int = 0
    is_log_whole: bool = True

    @property
    def is_bad(self) -> bool:
        """True if a reply was lost, or a call was lost, hidden or doubled."""
        return bool(self.replies_lost or self.doubled or self.lost or self.hidden) or not self.is_log_whole


def soak(new_url: Callable[[int], str], kills: int, seed: int, *, turns: int = TURNS) -> Toll:
    """The toll of that many kills. `new_url` gives each conversation a store of its own."""
    SPAWN.set_forkserver_preload(["tests.soak.conversing"])
    chance, toll = random.Random(seed), Toll()
    while toll.kills < kills:
        with tempfile.TemporaryDirectory() as folder:
            part = Part(url=new_url(toll.conversations), folder=folder, turns=turns)
            _add(toll, part, _conversation(part, chance, toll, kills))
    return toll


def lives(
    part: Part, *, dies_after_s: float | None = None, work: Callable[[Part, Any], None] = converse
) -> tuple[list[Any], bool]:
    """The messages of the process, and whether it was killed. One whose answer never comes is killed as it asks."""
    here, there = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=work, args=(part, there))
    process.start()
    there.close()
    try:
        if dies_after_s is not None:
            process.join(dies_after_s)
            process.kill()
        said: list[Any] = []
        while here.poll(PATIENCE_S):
            try:
                said.append(here.recv())
            except EOFError:
                break
            if said[-1] == "asked" and part.answers == "never":
                process.kill()
        process.join(PATIENCE_S)
        assert process.exitcode in (0, -9), (part, process.exitcode)
        return said, process.exitcode == -9
    finally:
        process.kill()
        process.join()
        here.close()


def _conversation(part: Part, chance: random.Random, toll: Toll, kills: int) -> list[dict[str, Any]]:
    """The turns of the conversation. Its processes are killed until there were kills enough or it has ended."""
    while True:
        mode = chance.choice(MODES) if toll.kills < kills else "none"
        answers = "never" if mode == "question" else chance.choice(("at once", "later"))
        dies_at = chance.randint(1, MOMENTS) if mode == "moment" else 0
        said, is_killed = lives(
            replace(part, answers=answers, dies_at=dies_at),
            dies_after_s=chance.uniform(0.1, LONGEST_S) if mode == "clock" else None,
        )
        toll.kills += is_killed
        toll.killed_at_questions += is_killed and mode == "question" and said[-1:] == ["asked"]
        ended = [one for one in said if isinstance(one, list)]
        if ended:
            return ended[0]


def _add(toll: Toll, part: Part, turns: list[dict[str, Any]]) -> None:
    found = damage(part, turns)
    toll.conversations += 1
    for name in ("replies_lost", "doubled", "lost", "hidden", "doubts"):
        setattr(toll, name, getattr(toll, name) + getattr(found, name))
    with Store.open(part.url, key=KEY) as store:
        toll.is_log_whole = toll.is_log_whole and store.verify().is_whole
        assert [turn["mark"] for turn in turns] == [turn["mark"] for turn in store.document("c-17").value]


def main() -> int:
    """So many kills of each store; 1 if a reply or a call was lost, hidden or doubled."""
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
