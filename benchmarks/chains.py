"""Several processes that write one log on PostgreSQL, beside the same work without a log.

A process without a log writes the same runs and steps, and drops the rows of the log before they are written.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import psycopg
from tests.journal.postgres import Server, running

from benchmarks.kills import begun, in_child, start_of, step_number
from benchmarks.timing import Figure
from toolwire.journal.log.chain import LogEnd
from toolwire.journal.store import Store
from toolwire.vocabulary.results import ToolResult

ROUND_S = 3.0
"""Seconds in which processes write, after all of them have begun."""
ROUNDS = 3
_SAMPLE_S = 0.005
_PATIENCE_S = 20.0
_BUSY = """
    SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""


def figures() -> list[Figure]:
    """Runs a second of four processes, times the same without a log; connections that wait, with eight."""
    with _server() as server:
        pairs = [(_rate(server, 4, log=True)[0], _rate(server, 4, log=False)[0]) for _ in range(ROUNDS)]
        beside = statistics.median(one / other for one, other in pairs)
        waiting = _rate(server, 8, log=True)[1]
    return [
        Figure(name="4 processes on PostgreSQL, runs a second, times the same without a log",
               ratio=beside, limit=0.85, is_least=True),
        Figure(name="busy connections that wait for a lock, 8 processes", ratio=waiting, limit=0.02),
    ]  # fmt: skip


@contextmanager
def _server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as users:
        folder = Path(tempfile.gettempdir()) / f"toolwire-bench-{os.getpid()}"
        with running(folder, Path(users) / "users", is_durable=True) as server:
            yield server


def _rate(server: Server, processes: int, *, log: bool) -> tuple[float, float]:
    """Returns the runs a second, and the part of the busy connections that waited for a lock."""
    name = f"bench{time.time_ns():x}"
    server.create(name, is_new=True)
    url = server.url(name)
    Store.open(url).close()
    said, saying = os.pipe()
    told, telling = os.pipe()

    def work() -> None:
        os.close(telling)
        _write_runs(url, told, saying, log=log)

    children = [in_child(work) for _ in range(processes)]
    ready = b""
    while len(ready) < processes:
        ready += os.read(said, processes)
    # All begin when the pipe ends.
    os.close(telling)
    waits, busy = _sample(url, time.monotonic() + ROUND_S)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    os.close(saying)
    with open(said) as counts:
        runs = sum(map(int, counts.read().split()))
    os.close(told)
    server.drop(name)
    return runs / ROUND_S, waits / max(busy, 1)


def _sample(url: str, end: float) -> tuple[int, int]:
    waits = busy = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < end:
            (waiting, active) = connection.execute(_BUSY).fetchone() or (0, 0)
            waits, busy = waits + waiting, busy + active
            time.sleep(_SAMPLE_S)
    return waits, busy


def _write_runs(url: str, told: int, saying: int, *, log: bool) -> None:
    """Writes runs from the end of the pipe on, after a first one that takes the chain, and says how many."""
    runs, no_log = 0, nullcontext() if log else mock.patch.object(LogEnd, "write")
    with no_log, Store.open(url) as store:
        _write_run(store, f"r_{os.getpid()}_first")
        os.write(saying, b".")
        os.read(told, 1)
        end = time.monotonic() + ROUND_S
        while time.monotonic() < end:
            _write_run(store, f"r_{os.getpid()}_{runs}")
            runs += 1
    os.write(saying, b"%d\n" % runs)


def _write_run(store: Store, run_id: str) -> None:
    ledger, step = begun(store, run_id), step_number(1)
    ledger.begin(start_of(step)).result(_PATIENCE_S)
    ledger.settle(step, ToolResult(True, {"paid": 5})).result(_PATIENCE_S)
    ledger.finish([ToolResult(True, {"paid": 5})]).result(_PATIENCE_S)


if __name__ == "__main__":
    for figure in figures():
        print(figure)
