"""Durable records a second, beside a bare loop of fdatasync on the same disk in the same run; bytes that a call costs.

A record is a step that was begun: written, committed and only then answered.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.kills import begun, start_of, step_number
from benchmarks.timing import Figure
from toolwire.journal.ledger import RunLedger
from toolwire.journal.store import Store
from toolwire.vocabulary.results import ToolResult

WANTED = {1: 0.4, 8: 3.0, 64: 10.0}
"""Times the loop, by callers."""
ROUNDS = 5
ROUND_S = 0.5
_CALLS = 1_000
_FLOOR_BYTES = 1 << 20
_STARTS = [start_of(step_number(number)) for number in range(5_000)]
"""Made before: what is measured is keeping them."""


def figures() -> list[Figure]:
    """Rates by number of callers, and what the journal of a call weighs."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        found = [_rate(store, Path(folder), callers, wanted) for callers, wanted in WANTED.items()]
        return [*found, _weight(store, Path(folder))]


def _rate(store: Store, folder: Path, callers: int, wanted: float) -> Figure:
    ratios: list[float] = []
    for number in range(ROUNDS):
        floor = _synced(folder / "floor")
        ledgers = [begun(store, f"r_{callers}_{number}_{caller}") for caller in range(callers)]
        ratios.append(_records(ledgers) / floor)
    name = f"durable records a second, {callers} caller{'s' if callers > 1 else ''}, times fdatasync"
    return Figure(name=name, ratio=statistics.median(ratios), limit=wanted, is_least=True)


def _synced(path: Path) -> float:
    """Writes a second that are each on the disk before the next, into a file that is as long already."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, bytes(_FLOOR_BYTES))
        os.fsync(file)
        return _per_second(
            lambda number: (os.pwrite(file, b"x" * 256, number * 256 % _FLOOR_BYTES), os.fdatasync(file))
        )
    finally:
        os.close(file)
        path.unlink()


def _records(ledgers: list[RunLedger]) -> float:
    rates = [0.0] * len(ledgers)

    def call(place: int) -> None:
        ledger = ledgers[place]
        rates[place] = _per_second(lambda number: ledger.begin(_STARTS[number]).result())

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(ledgers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def _per_second(act: Callable[[int], object]) -> float:
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < ROUND_S:
        act(count)
        count += 1
    return count / (time.perf_counter() - began)


def _weight(store: Store, folder: Path) -> Figure:
    ledger = begun(store, "r_weight")
    before = _bytes(store, folder)
    for number in range(_CALLS):
        ledger.begin(start_of(step_number(number)))
        ledger.settle(step_number(number), ToolResult(True, {"paid": number}))
    ledger.finish([]).result()
    weight = (_bytes(store, folder) - before) / _CALLS
    return Figure(name="bytes of journal a call, begun and ended", ratio=weight, limit=None, unit="B")


def _bytes(store: Store, folder: Path) -> int:
    store.log_length()
    # What is in the write-ahead log goes to the file first.
    with store._database._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "runs.db").stat().st_size
