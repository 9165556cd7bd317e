"""A worker that only seems to work ends itself, and one that works does not."""

from __future__ import annotations

import os
import threading

import psycopg
import pytest

from tests.patience import PATIENCE_S, until
from toolwire.fleet import ProcrastinateQueue, vitals
from toolwire.fleet.figures import Figures
from toolwire.fleet.vitals import Vitals
from toolwire.journal.store import Store


def test_a_heartbeat_that_is_gone_counts_from_the_last_one(
    store: Store, queue: ProcrastinateQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, has_ended = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(vitals, "BEAT_S", 0.01)
    monkeypatch.setattr(os, "_exit", lambda _: has_ended.set())
    watched = Vitals(queue, Figures(places=1), None)
    with psycopg.connect(queue.conninfo, autocommit=True) as connection:
        (worker,) = connection.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id").fetchone() or ()

        def worker_id() -> int:
            looks.release()
            return worker

        watched.watch(worker_id)
        watched.start()
        try:
            until(lambda: watched.readiness() == (200, "ready\n"))
            connection.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")
            for _ in range(looks._value + 5):
                assert looks.acquire(timeout=PATIENCE_S)
            assert (watched.readiness(), has_ended.is_set()) == ((200, "ready\n"), False)
            # The control: without another one it ends, as long after the last one as if it were there.
            monkeypatch.setattr(vitals, "DEAD_AFTER_S", 0.0)
            assert has_ended.wait(PATIENCE_S)
        finally:
            watched.stop()
