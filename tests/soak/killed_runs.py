"""Runs that are killed at random moments, again and again, and resumed until they end.

Run: python -m tests.soak.killed_runs [kills] [seed]: that many of each store. `tests/soak/test_killed_runs.py` is the
short form; `tests/session/test_killed.py` kills at each moment in turn.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.journal.postgres import running
from tests.patience import PATIENCE_S
from tests.session.killed import KEY, Attempt, damage, go, happened
from tests.session.test_killed import SPAWN
from toolwire.journal.store import Store

KILLS = 500
"""Kills for each store."""
MOMENTS = 100
"""More moments than a run has: some runs are not killed and reach their end."""
LONGEST_S = 0.8
"""Seconds after which a process that is killed by the clock is killed at the latest: about as long as one takes."""
PROGRAMS = 0.25
"""The share of runs that are programs."""


@dataclass(slots=True)
class Toll:
    """The damage of a number of kills."""

    kills: int = 0
    runs: int = 0
    unborn: int = 0
    """Runs that were killed before they were recorded: their caller got no answer."""
    lost: int = 0
    """Calls that a turn calls done and that had no effect."""
    hidden: int = 0
    """Calls that had an effect, and neither their result nor a doubt says so."""
    doubled: int = 0
    """Effects more than their tool allows: a second one, or for a keyed tool a second key."""
    doubts: int = 0
    """Calls of which the turn says that they may have run."""
    doubted_and_done: int = 0
    """Calls in doubt that had run."""


def soak(url: str, folder: Path, kills: int, seed: int) -> Toll:
    """The toll of that many kills."""
    chance, toll = random.Random(seed), Toll()
    while toll.kills < kills:
        toll.runs += 1
        is_program = chance.random() < PROGRAMS
        attempt = Attempt(url=url, effects=str(folder / f"effects{toll.runs}"), is_program=is_program)
        run_id, end = _killed_run(attempt, chance, toll)
        if end is None:
            toll.unborn += 1
            toll.hidden += len(happened(Path(attempt.effects)))
        else:
            found = damage(happened(Path(attempt.effects)), end, is_program=is_program)
            toll.lost, toll.hidden = toll.lost + found.lost, toll.hidden + found.hidden
            toll.doubled, toll.doubts = toll.doubled + found.doubled, toll.doubts + found.doubts
            toll.doubted_and_done += found.doubted_and_done
        assert run_id or end is None
    return toll


def _killed_run(attempt: Attempt, chance: random.Random, toll: Toll) -> tuple[str, dict[str, Any] | None]:
    """The run's id and how it ended, after it was killed some times; no end when it was never on record."""
    run_id = ""
    for _ in range(chance.randint(1, 3)):
        by_clock = chance.random() < 0.5
        dies_at = 0 if by_clock else chance.randint(1, MOMENTS if not run_id else 12)
        said, is_killed = _lives(
            replace(attempt, run_id=run_id, dies_at=dies_at), chance.uniform(0, LONGEST_S) if by_clock else None
        )
        toll.kills += is_killed
        if not run_id:
            run_id = next((one for one in said if isinstance(one, str)), "")
        ends = [one for one in said if isinstance(one, dict)]
        if ends:
            return run_id, ends[0]
        if not run_id or not _is_there(attempt.url, run_id):
            return run_id, None
    said, _ = _lives(replace(attempt, run_id=run_id), None)
    return run_id, said[-1]


def _is_there(url: str, run_id: str) -> bool:
    with Store.open(url, key=bytes(32)) as store:
        return any(run.run_id == run_id for run in store.runs(limit=5))


def _lives(attempt: Attempt, dies_after_s: float | None) -> tuple[list[Any], bool]:
    """The messages of the process, and whether it was killed."""
    here, there = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=go, args=(attempt, there))
    process.start()
    there.close()
    if dies_after_s is not None:
        process.join(dies_after_s)
        process.kill()
    said: list[Any] = []
    while here.poll(PATIENCE_S):
        try:
            said.append(here.recv())
        except EOFError:
            break
    process.join(PATIENCE_S)
    assert process.exitcode in (0, -9), (attempt, process.exitcode)
    return said, process.exitcode == -9


def toll_of(url: str, kills: int, seed: int) -> tuple[Toll, bool]:
    """The toll of that many kills on a new store, and whether its log is whole afterwards."""
    SPAWN.set_forkserver_preload(["tests.session.killed"])
    with tempfile.TemporaryDirectory() as folder:
        toll = soak(url, Path(folder), kills, seed)
    with Store.open(url, key=KEY) as store:
        return toll, store.verify().is_whole


def main() -> int:
    """So many kills of each store; 1 if a call was lost, hidden or doubled."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    is_bad = False
    with (
        tempfile.TemporaryDirectory() as folder,
        # The server runs as another user, which may not read this folder.
        running(Path(f"{folder}-server"), Path(folder) / "users") as server,
    ):
        server.create("runs")
        for url in (f"sqlite:///{folder}/runs.db", server.url("runs")):
            toll, is_whole = toll_of(url, kills, seed)
            print(f"{url.partition(':')[0]}: {toll} (seed {seed}); the log is whole: {is_whole}", flush=True)
            is_bad = is_bad or not is_whole or bool(toll.lost or toll.hidden or toll.doubled)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
