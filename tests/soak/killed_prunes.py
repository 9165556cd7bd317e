"""Prunes that are killed at random moments, again and again, until one reaches its end.

Run: python -m tests.soak.killed_prunes [kills] [seed]: that many of each store. `tests/soak/test_killed_prunes.py` is
the short form.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import update

from tests.forks import forked
from tests.journal.postgres import running
from tests.journal.world import done, on_record, request, run_start, step
from tests.patience import PATIENCE_S
from tests.session.killed import KEY
from toolwire import Retention, ToolResult
from toolwire.journal.database import transactions
from toolwire.journal.database.tables import RUNS
from toolwire.journal.growth import slices
from toolwire.journal.growth.short_results import DROPPED
from toolwire.journal.store import Store

KILLS = 300
"""Kills for each store."""
MOMENTS = 12
"""The last moment at which a prune is killed. One has more, and dies often enough before its end."""
DAY_S = 86_400.0
KEPT = Retention(runs_days=30, results_days=7, log_days=365)
AGES = {"new": 1.0, "read": 10.0, "old": 40.0}
"""Days since the end of the runs: those that stay whole, lose their results, and go."""
LARGE = "a large value " * 2_000
"""It is written once, and the records of two other calls refer to it."""


@dataclass(slots=True)
class World:
    """The runs of a store, and what is on record of them."""

    runs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The ids of the runs by their age."""
    waiting: str = ""
    """An old run that waits for a person."""
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What the model read in each run."""
    calls: dict[str, Any] = field(default_factory=dict[str, Any])
    """The calls of the runs that stay whole."""


def build(store: Store, count: int) -> World:
    """Writes so many runs of each age, and one that waits."""
    world = World()
    for age, days in AGES.items():
        world.runs[age] = [_write_run(store, days) for _ in range(count)]
        for run_id in world.runs[age]:
            world.texts[run_id] = _texts(store, run_id)
    waits = on_record(store, run_start())
    done(waits.ask(request(waits)))
    done(waits.suspend())
    world.waiting = waits.run_id
    _set_age(store, waits.run_id, AGES["old"])
    world.calls = {run_id: store.calls(run_id) for run_id in world.runs["new"]}
    return world


def _write_run(store: Store, days: float) -> str:
    ledger = on_record(store, run_start())
    key = f"{ledger.run_id}/1"
    inner = ToolResult(True, {"value": LARGE}, metadata={"of": "a tool"})
    told = ToolResult(True, {"value": LARGE}, content=[{"type": "text", "text": f"told {key}"}])
    done(ledger.settle(step(f"{key}/1", parent=key), inner))
    done(ledger.settle(step(f"{key}/2", parent=key), inner))
    done(ledger.settle(step(key), told))
    done(ledger.finish([ToolResult(True, told.data, content=told.content, call=None)]))
    _set_age(store, ledger.run_id, days)
    return ledger.run_id


def _set_age(store: Store, run_id: str, days: float) -> None:
    change = update(RUNS).where(RUNS.c.run_id == run_id).values(updated_at=time.time() - days * DAY_S)
    done(store._database.run(lambda connection: connection.execute(change)))


def _texts(store: Store, run_id: str) -> list[str]:
    outcome = done(store.reopen(run_id)).outcome
    assert outcome is not None
    return [result.text for result in outcome]


def prune(url: str, dies_at: int) -> None:
    """Prunes the store, one run or row at a time, and dies at that moment: before a commit, or after it."""
    moments = 0

    def pass_moment() -> None:
        nonlocal moments
        moments += 1
        if moments == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(connection: Any) -> None:
        pass_moment()
        written(connection)
        pass_moment()

    written, transactions.commit = transactions.commit, commit
    slices.FIRST_ROWS = slices.MOST_ROWS = 1
    with Store.open(url, key=KEY) as store:
        store.retain(KEPT)


def damage(store: Store, world: World, *, is_over: bool) -> list[str]:
    """What a prune has lost that was not due, or has left although it came to its end."""
    found = [] if store.verify().is_whole else [f"the log: {store.verify()}"]
    there = {run.run_id for run in store.runs(limit=10_000)}
    for age in ("new", "read"):
        found += [f"{age} run {run_id} is gone" for run_id in world.runs[age] if run_id not in there]
    if store.run(world.waiting).status != "suspended" or len(store.pending(world.waiting)) != 1:
        found.append("the waiting run")
    found += [f"calls of {run_id}" for run_id, calls in world.calls.items() if store.calls(run_id) != calls]
    found += [
        f"turn of {run_id}"
        for run_id in world.texts
        if run_id in there and _texts(store, run_id) != world.texts[run_id]
    ]
    if is_over:
        found += [f"old run {run_id} is there" for run_id in world.runs["old"] if run_id in there]
        calls = [call for run_id in world.runs["read"] for call in store.calls(run_id)]
        results = [(call.parent, call.result) for call in calls if call.result is not None]
        found += ["a result is whole" for _, result in results if result.data is not None]
        # All calls of tools had the same result.
        digests = {result.metadata[DROPPED]["digest"] for parent, result in results if parent}
        found += ["a digest is that of what was left"] if len(digests) != 1 else []
    return found


def soak(url: str, kills: int, chance: random.Random, count: int = 4) -> int:
    """Kills prunes of one store until one reaches its end, and again with new runs. Returns the number of kills."""
    killed = 0
    while killed < kills:
        with Store.open(url, key=KEY) as store:
            world = build(store, count)
            is_over = False
            while not is_over:
                process = forked(prune, url, 0 if killed >= kills else chance.randint(1, MOMENTS))
                process.join(PATIENCE_S)
                is_over = process.exitcode == 0
                assert is_over or process.exitcode == -signal.SIGKILL, process.exitcode
                killed += not is_over
                lost = damage(store, world, is_over=is_over)
                assert not lost, lost
    return killed


def main() -> int:
    """Kills prunes of both stores."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    # A server runs as another user, who may not look into that folder.
    with tempfile.TemporaryDirectory() as folder, running(Path(f"{folder}-server"), Path(folder) / "users") as server:
        server.create("prunes")
        for url in (f"sqlite:///{folder}/runs.db", server.url("prunes")):
            killed = soak(url, kills, random.Random(seed))
            print(f"{url.partition(':')[0]}: {killed} kills, nothing lost that was not due", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
