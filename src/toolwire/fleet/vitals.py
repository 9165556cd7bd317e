"""Watches a worker from a thread of its own, and ends a process that only seems to work, for its supervisor."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping

from sqlalchemy import Connection, text

from toolwire.fleet.figures import Figures
from toolwire.fleet.queue import ProcrastinateQueue
from toolwire.fleet.remote_runner import RemoteRunner
from toolwire.fleet.sweep import BEAT_S, DEAD_AFTER_S

AWAY_LIMIT_S = 300.0
"""Seconds without the store after which the process ends: its host may be cut off."""
EXIT_CODE = 1
"""The exit code of a worker that ends itself."""

_LOG = logging.getLogger("toolwire.fleet")
_STALE_LOOKS = 2
"""Looks in a row that find an old heartbeat. The first one after a stopped process was woken always does."""
_AGE = text("SELECT extract(epoch FROM now() - last_heartbeat) FROM procrastinate_workers WHERE id = :worker")
_READY = text("""
    SELECT count(*), coalesce(extract(epoch FROM now()) - min(ready_at), 0)
    FROM runs WHERE ready_at <= extract(epoch FROM now()) AND owner = ''
""")
_PARKED = text("SELECT count(*) FROM runs WHERE status <> 'finished' AND status = 'parked'")
_TAKEN_OVER = text("SELECT coalesce(sum(taken_over), 0) FROM runs WHERE owner <> ''")
"""Each reads one index of the runs."""


def no_runner(reasons: Mapping[str, str]) -> str:
    """Returns the line that says why no runner can be used."""
    return "no runner can be used: " + "; ".join(f"{runner}: {reason}" for runner, reason in reasons.items())


class Vitals:
    """The thread that looks at the heartbeat and the store each `BEAT_S` seconds."""

    def __init__(self, queue: ProcrastinateQueue, figures: Figures, runner: RemoteRunner | None) -> None:
        self._queue = queue
        self._runner = runner
        self._figures = figures
        self._worker_id: Callable[[], int | None] = lambda: None
        self._good_at = time.monotonic()
        self._beat_at = time.monotonic()
        """The time of the last heartbeat that was seen."""
        self._stale = 0
        self._problem = "the worker has not looked at its store yet"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolwire-vitals", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the looks."""
        self._ended.set()

    def watch(self, worker_id: Callable[[], int | None]) -> None:
        """Names the worker of the queue whose heartbeat counts; None while there is none."""
        self._worker_id = worker_id

    def readiness(self) -> tuple[int, str]:
        """Returns `/readyz`: whether the last look found the store, the worker alive and, if needed, a runner."""
        return (503, f"{self._problem}\n") if self._problem else (200, "ready\n")

    def _run(self) -> None:
        wait_s = 0.5
        while not self._ended.wait(wait_s):
            self._problem = self._look()
            wait_s = BEAT_S if not self._problem else 1.0
            reason = self._reason_to_end()
            if reason and not self._ended.is_set():
                # The event loop may be what is stuck, so nothing waits for it.
                _LOG.error("the worker ends, for its supervisor to start it again: %s", reason)
                os._exit(EXIT_CODE)

    def _look(self) -> str:
        """Returns what is wrong; empty if nothing is."""
        began = time.monotonic()
        try:
            with self._queue.engine.connect() as connection:
                age_s = self._age(connection)
                self._read_runs(connection)
        except Exception as error:  # noqa: BLE001 - a server fails in many ways
            return f"the store cannot be reached: {error}".partition("\n")[0]
        self._figures.store.add(time.monotonic() - began)
        self._stale = self._stale + 1 if age_s is not None and age_s > DEAD_AFTER_S else 0
        problem = self._runner_problem()
        if age_s is None and not problem:
            return "the queue is not open"
        # Without a runner the queue is not opened, and a supervisor could not help.
        self._good_at = time.monotonic()
        return f"the heartbeat is {age_s:.0f} s old" if self._stale else problem

    def _runner_problem(self) -> str:
        """Returns why no program can run; empty if one can."""
        if self._runner is None:
            return ""
        self._figures.runner_places, reasons = self._runner.reach()
        return "" if self._figures.runner_places else no_runner(reasons)

    def _age(self, connection: Connection) -> float | None:
        """Returns the age of the heartbeat in seconds; None while the queue is not open.

        Another worker removes one that is old, and a queue may be emptied: the next heartbeat writes it again.
        """
        worker = self._worker_id()
        if worker is None:
            self._beat_at = time.monotonic()
            return None
        age_s = connection.execute(_AGE, {"worker": worker}).scalar()
        if age_s is not None:
            self._beat_at = time.monotonic() - float(age_s)
        return time.monotonic() - self._beat_at

    def _read_runs(self, connection: Connection) -> None:
        figures = self._figures
        ready, oldest_s = connection.execute(_READY).one()
        figures.ready, figures.oldest_ready_s = ready, float(oldest_s)
        figures.parked = connection.execute(_PARKED).scalar_one()
        figures.taken_over = int(connection.execute(_TAKEN_OVER).scalar_one())

    def _reason_to_end(self) -> str:
        if self._stale >= _STALE_LOOKS:
            return f"its heartbeat is older than {DEAD_AFTER_S:g} s"
        if time.monotonic() - self._good_at > AWAY_LIMIT_S:
            return f"the store or its queue was away for {AWAY_LIMIT_S:g} s"
        return ""
