"""Milliseconds that a writer of a store waits while 5,000 runs and 200,000 rows of the log are pruned.

`python -m benchmarks.pruning` prunes on SQLite and PostgreSQL, and fails above the limit. The same writer without
pruning is the floor: what this disk takes for a commit.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

from sqlalchemy import Connection, delete

from benchmarks.lists import fill, urls
from toolwire import Retention, Store
from toolwire.journal.database.tables import LOG
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import RunStart
from toolwire.vocabulary.calls import NOBODY

LIMIT_MS = 50.0
"""Milliseconds for which pruning may hold a writer up, beyond what a commit takes by itself."""
PAUSE_S = 0.001
ALONE_S = 3.0
LATE_DAYS = 30.0
"""The runs of `fill` are older."""


def main() -> int:
    """Prints the waits on SQLite and PostgreSQL. Returns 1 if one is above the limit."""
    worst = 0.0
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for url in urls(Path(folder)):
            with Store.open(url, key=bytes(32)) as store:
                fill(store)
                # Its rows are in no chain.
                store._database.run(lambda connection: connection.execute(delete(LOG))).result()
            # A pass of Python's collector over this process takes 40 to 60 ms, and may fall into any wait.
            gc.collect()
            gc.disable()
            with Store.open(url, key=bytes(32)) as store:
                alone, beside, took_s = _measure(store)
            gc.enable()
            print(
                f"{url.partition(':')[0]}: pruned in {took_s:.1f} s; a writer waits {_shown(beside)}, "
                f"and without pruning {_shown(alone)}"
            )
            worst = max(worst, beside[-1] - alone[-1])
    return int(worst > LIMIT_MS)


def _measure(store: Store) -> tuple[list[float], list[float], float]:
    """Returns the waits without and with pruning, sorted, and the seconds that pruning took."""
    alone = _waits(store, until=time.monotonic() + ALONE_S)
    retention = Retention(runs_days=LATE_DAYS, results_days=LATE_DAYS, log_days=LATE_DAYS)
    began = time.monotonic()
    pruning = Thread(target=store.retain, args=(retention,))
    pruning.start()
    beside = list[float]()
    while pruning.is_alive():
        beside += _waits(store, until=time.monotonic() + 0.05)
    return alone, sorted(beside), time.monotonic() - began


def _waits(store: Store, *, until: float) -> list[float]:
    """Writes a row of the log again and again, and returns the milliseconds that each took, sorted."""
    database, found = store._database, list[float]()
    start = RunStart(run_id="r_now", reply={}, protocol="xml", caller=NOBODY, tools={}, created_at=0.0)

    def write(connection: Connection) -> None:
        append(connection, database.sealer, [run_event(start, "started")])

    while time.monotonic() < until:
        began = time.perf_counter()
        database.run(write).result()
        found.append((time.perf_counter() - began) * 1_000)
        time.sleep(PAUSE_S)
    return sorted(found)


def _shown(waits: list[float]) -> str:
    return f"p50 {waits[len(waits) // 2]:.1f}, p99 {waits[-1 - len(waits) // 100]:.1f}, longest {waits[-1]:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
