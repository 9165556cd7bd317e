"""`python -m benchmarks.fleet_floor CONNINFO CONCURRENCY FILE`: the queue alone, as the floor of a worker of a fleet.

Its jobs sleep, and write when they began and ended. All its settings are those of `toolwire worker`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from pathlib import Path

import procrastinate

from toolwire.fleet.sweep import BEAT_S, DEAD_AFTER_S
from toolwire.fleet.worker import POLL_S

QUEUE = TASK = "floor"
WORKING = "working"


def make_app(conninfo: str, file: Path) -> procrastinate.App:
    """Returns the app whose one task sleeps."""
    connector = procrastinate.PsycopgConnector(
        conninfo=conninfo, kwargs={"prepare_threshold": None}, min_size=1, max_size=4
    )
    app = procrastinate.App(connector=connector)

    @app.task(name=TASK, queue=QUEUE)
    async def _(name: str, seconds: float) -> None:
        note(file, f"begin {name}")
        if seconds:
            await asyncio.sleep(seconds)
            note(file, f"end {name}")

    return app


def note(file: Path, line: str) -> None:
    """Writes a line with the time."""
    with file.open("a") as end:
        end.write(f"{line} {time.time():.4f}\n")


async def work(conninfo: str, concurrency: int, file: Path) -> None:
    """Works until it is killed."""
    app = make_app(conninfo, file)
    async with app.open_async():
        note(file, WORKING)
        await app.run_worker_async(
            queues=[QUEUE],
            concurrency=concurrency,
            fetch_job_polling_interval=POLL_S,
            delete_jobs="always",
            update_heartbeat_interval=BEAT_S,
            stalled_worker_timeout=DEAD_AFTER_S,
        )


if __name__ == "__main__":
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    asyncio.run(work(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
