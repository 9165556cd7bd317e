"""A turn of one call with a store, beside the same turn without one and two bare commits; a server with a store.

Run: python -m benchmarks.stored_turns. The variants take turns on the disk below the working folder.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.http_load import MODERN, ServerProcess, loaded, serving
from benchmarks.timing import Figure, show
from toolwire import Session, Store, ToolSpec

ROUNDS, NUMBER = 15, 20
CALLS = 100
"""Calls of one turn of a server."""
PROCESSOR_LIMIT, WALL_LIMIT = 5.0, 2.5
"""The most that a store may add to a turn, times the two bare commits."""
COMMITS_LIMIT, KB_LIMIT = 2.0, 50.0
SERVED_LEAST = {1: 0.15, 20: 0.35}
"""The least calls a second of a server with a store, times one without, by clients."""
_ROW = os.urandom(400)
_TABLES = 4

Turn = Callable[[], object]


def figures() -> list[Figure]:
    """The processor and wall time that a store adds, what it writes, and calls a second of a server."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, ExitStack() as ended:
        return [*_added(Path(folder), ended), *_written(Path(folder), ended), *_served()]


def _turn_of_one_call(store: Store | None, ended: ExitStack) -> Turn:
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    runner = ended.enter_context(asyncio.Runner())
    session = Session([ToolSpec.from_function(add, permission="auto")], protocol="openai", store=store)
    function = {"name": "add", "arguments": json.dumps({"a": 1, "b": 2})}
    reply = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    return lambda: runner.run(session.turn(reply))


def _two_commits(folder: Path, ended: ExitStack) -> Turn:
    """Returns the floor: two transactions of four inserts, by the driver alone."""
    driver = sqlite3.connect(folder / "floor.db", isolation_level=None)
    ended.callback(driver.close)
    driver.execute("PRAGMA journal_mode=WAL")
    driver.execute("PRAGMA synchronous=FULL")
    for table in range(_TABLES):
        driver.execute(f"CREATE TABLE t{table} (id TEXT PRIMARY KEY, data BLOB)")
    numbers = itertools.count()

    def take() -> None:
        for _ in range(2):
            driver.execute("BEGIN IMMEDIATE")
            for table in range(_TABLES):
                driver.execute(f"INSERT INTO t{table} VALUES (?, ?)", (f"r_{next(numbers)}", _ROW))
            driver.execute("COMMIT")

    return take


def _added(folder: Path, ended: ExitStack) -> list[Figure]:
    store = ended.enter_context(Store.open(f"sqlite:///{folder}/turns.db"))
    turns = {
        "floor": _two_commits(folder, ended),
        "with": _turn_of_one_call(store, ended),
        "without": _turn_of_one_call(None, ended),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(ROUNDS + 1):
        for name, turn in turns.items():
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(NUMBER):
                turn()
            taken[name].append((time.process_time() - processor, time.perf_counter() - wall))
    # In the first round the caches are empty.
    rounds = [dict(zip(taken, times, strict=True)) for times in zip(*taken.values(), strict=True)][1:]
    limits = {"processor": PROCESSOR_LIMIT, "wall": WALL_LIMIT}
    return [
        Figure(
            name=f"{what} of a turn beyond one without a store, times 2 commits",
            ratio=statistics.median((one["with"][at] - one["without"][at]) / one["floor"][at] for one in rounds),
            limit=limits[what],
        )
        for at, what in enumerate(limits)
    ]


def _written(folder: Path, ended: ExitStack) -> list[Figure]:
    """The commits of a turn, and the bytes that they append to the write-ahead log."""
    store = ended.enter_context(Store.open(f"sqlite:///{folder}/written.db"))
    turn, log = _turn_of_one_call(store, ended), folder / "written.db-wal"
    for _ in range(NUMBER):
        turn()
    store.log_length()
    with sqlite3.connect(folder / "written.db") as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before, size = store._database.writer.commits, log.stat().st_size
    for _ in range(NUMBER):
        turn()
    commits, written = store._database.writer.commits - before, log.stat().st_size - size
    return [
        Figure(name="commits of a turn of one call", ratio=commits / NUMBER, limit=COMMITS_LIMIT, unit=""),
        Figure(name="written to the disk by such a turn", ratio=written / NUMBER / 1e3, limit=KB_LIMIT, unit="KB"),
    ]  # fmt: skip


def _served() -> list[Figure]:
    with serving("toolwire", 1) as without, serving("toolwire-store", 1) as kept:
        ratios = {
            clients: statistics.median(_rate(kept, clients) / _rate(without, clients) for _ in range(3))
            for clients in SERVED_LEAST
        }
    return [
        Figure(name=f"calls a second of a server with a store, times without, clients: {clients}",
               ratio=ratios[clients], limit=least, is_least=True)
        for clients, least in SERVED_LEAST.items()
    ]  # fmt: skip


def _rate(server: ServerProcess, clients: int) -> float:
    load = asyncio.run(loaded(server, MODERN, clients, CALLS * clients if clients > 1 else CALLS))
    assert load.errors == 0, load.errors
    return load.calls / load.seconds


if __name__ == "__main__":
    show("Turns with a store", figures())
