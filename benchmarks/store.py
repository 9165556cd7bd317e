"""Durable records a second, beside a bare loop of fdatasync on the same disk in the same run; bytes that a call costs.

A record is a step that was begun: written, committed and only then answered.
"""

from __future__ import annotations

import json
import os
import queue
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from benchmarks.kills import begun, start_of, step_number
from benchmarks.timing import Figure
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.store import Store
from toolwire.vocabulary.results import ToolResult

CALLERS = (1, 8, 64)
SLOW_DISK_LEAST = {1: 0.6}
"""Times the loop on the slow disk, by callers: one caller waits for its own fdatasync and two handoffs."""
ALONE_LEAST = {64: 0.5}
"""The least ratio to SQLite alone with the same rows, by callers."""
SLOW_DISK_S = 0.00062
"""Seconds of an fdatasync on the slow disk: with the cost of a loop, the 1,470 a second at which the bounds were
set."""
ROUNDS = 5
ROUND_S = 0.5
_CALLS = 1_000
_FLOOR_BYTES = 1 << 20
_STARTS = [start_of(step_number(number)) for number in range(5_000)]
"""Made in advance, so that only writing them is measured."""
_SEALED = os.urandom(350)
"""About as much as a step that was begun weighs."""


_Asked: TypeAlias = "queue.SimpleQueue[threading.Lock | None]"


def figures() -> list[Figure]:
    """Rates by number of callers, on this disk and on one as slow as that of the bounds; the bytes of a call."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        rates = _rates(store, Path(folder))
        alone = {callers: _bare(Path(folder), callers) for callers in CALLERS}
        beside = [
            Figure(name=f"durable records a second, {callers} callers, times SQLite alone",
                   ratio=rates[callers].ratio / alone[callers].ratio, limit=least, is_least=True)
            for callers, least in ALONE_LEAST.items()
        ]  # fmt: skip
        handed = [_handed(Path(folder), callers) for callers in CALLERS if callers > 1]
        slow, weight = _on_a_slow_disk(Path(folder)), _weight(store, Path(folder))
        return [*rates.values(), *alone.values(), *beside, *handed, *slow, weight]


def _rates(store: Store, folder: Path) -> dict[int, Figure]:
    return {callers: _rate(store, folder, callers) for callers in CALLERS}


def _on_a_slow_disk(folder: Path) -> list[Figure]:
    """The same, floor and all, in a process whose fdatasync is slowed down (`slow_disk.c`); nothing without `cc`."""
    library = folder / "slow_disk.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("slow_disk.c"))]
    try:
        subprocess.run([*command, "-ldl"], check=True)
    except OSError:
        print("  (the slow disk needs a C compiler)")
        return []
    environment = {**os.environ, "LD_PRELOAD": str(library), "SLOW_DISK_NS": str(int(SLOW_DISK_S * 1e9))}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.store"], env=environment, check=True, capture_output=True, text=True
    )
    ratios: dict[str, float] = json.loads(done.stdout)
    return [
        Figure(name=f"on a slow disk, {callers} caller{'s' if callers > 1 else ''}", ratio=ratios[str(callers)],
               limit=SLOW_DISK_LEAST.get(callers), is_least=True)
        for callers in CALLERS
    ]  # fmt: skip


def main() -> None:
    """Prints the rates, times the floor, by number of callers: for `_on_a_slow_disk`."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        rates = _rates(store, Path(folder))
    print(json.dumps({callers: figure.ratio for callers, figure in rates.items()}))


def _rate(store: Store, folder: Path, callers: int) -> Figure:
    ratios: list[float] = []
    for number in range(ROUNDS):
        floor = _synced(folder / "floor")
        ledgers = [begun(store, f"r_{callers}_{number}_{caller}") for caller in range(callers)]
        ratios.append(_records(ledgers) / floor)
    name = f"durable records a second, {callers} caller{'s' if callers > 1 else ''}, times fdatasync"
    return Figure(name=name, ratio=statistics.median(ratios), limit=None)


def _bare(folder: Path, rows: int) -> Figure:
    """The rate of SQLite alone: such rows, so many a transaction, from one thread that does nothing else."""
    path = folder / f"bare{rows}.db"
    with Store.open(f"sqlite:///{path}") as store:
        runs = [begun(store, f"r_{number}").run_id for number in range(rows)]
    ratios: list[float] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        driver.execute("PRAGMA synchronous=FULL")
        for turn in range(ROUNDS):
            floor = _synced(folder / "floor")
            ratios.append(rows * _per_second(lambda number, turn=turn: _commit(driver, runs, turn, number)) / floor)
    name = f"SQLite alone, {rows} row{'s' if rows > 1 else ''} a transaction, times fdatasync"
    return Figure(name=name, ratio=statistics.median(ratios), limit=None)


def _commit(driver: sqlite3.Connection, runs: list[str], turn: int, number: int) -> None:
    driver.execute("BEGIN IMMEDIATE")
    driver.executemany("UPDATE runs SET rev = rev + 1, updated_at = ? WHERE run_id = ?", [(0.0, run) for run in runs])
    steps = [(run, f"{turn}/{number}", 0.0, 1, _SEALED) for run in runs]
    driver.executemany("INSERT INTO steps (run_id, key, started_at, attempt, begun) VALUES (?, ?, ?, ?, ?)", steps)
    driver.execute("COMMIT")


def _handed(folder: Path, callers: int) -> Figure:
    """The rate of the handoff alone: one thread answers so many others, and writes nothing."""
    ratios: list[float] = []
    for _ in range(ROUNDS):
        floor = _synced(folder / "floor")
        asked: _Asked = queue.SimpleQueue()
        answering = threading.Thread(target=_answer_all, args=(asked,))
        answering.start()
        ratios.append(_together([_asking(asked) for _ in range(callers)]) / floor)
        asked.put(None)
        answering.join()
    name = f"answers handed to {callers} threads by one, nothing written, times fdatasync"
    return Figure(name=name, ratio=statistics.median(ratios), limit=None)


def _answer_all(asked: _Asked) -> None:
    while (turn := asked.get()) is not None:
        turn.release()


def _asking(asked: _Asked) -> Callable[[int], object]:
    turn = threading.Lock()
    turn.acquire()
    return lambda _: (asked.put(turn), turn.acquire())


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
    return _together([lambda number, ledger=ledger: ledger.begin(_STARTS[number]).result() for ledger in ledgers])


def _together(acts: Sequence[Callable[[int], object]]) -> float:
    """The joint rate of threads, a second; each repeats one of the functions."""
    rates = [0.0] * len(acts)

    def call(place: int) -> None:
        rates[place] = _per_second(acts[place])

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(acts))]
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
    # A checkpoint moves the write-ahead log to the file first.
    with store._database._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "runs.db").stat().st_size


if __name__ == "__main__":
    main()
