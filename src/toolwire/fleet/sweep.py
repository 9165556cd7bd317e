"""Puts back what is due and has no living job, because a job is a hint that can be lost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, text

from toolwire.fleet.queue import QUEUE, ProcrastinateQueue

if TYPE_CHECKING:
    from toolwire.journal.store import Store

BEAT_S = 5.0
"""Seconds between two heartbeats of a worker, a third of its lease."""
DEAD_AFTER_S = 3 * BEAT_S
"""Age in seconds of the heartbeat of a worker that is taken for dead: as long as its lease."""
LIMIT = 1000
"""Runs that one sweep looks at, oldest first. They are more than any fleet begins until the next one."""

_ONE_SWEEPS = text("SELECT pg_try_advisory_xact_lock(hashtext('toolwire sweep'))")
_STALLED = text("""
    SELECT j.id FROM procrastinate_jobs j LEFT JOIN procrastinate_workers w ON w.id = j.worker_id
    WHERE j.status = 'doing' AND j.queue_name = :queue
      AND (w.id IS NULL OR w.last_heartbeat < now() - make_interval(secs => :dead_after_s))
""")
_JOBS = text("""
    SELECT id, queueing_lock, status = 'todo' AS waits, attempts FROM procrastinate_jobs
    WHERE queueing_lock = ANY(:runs) AND status IN ('todo', 'doing') AND queue_name = :queue
""")
_DROP_SECOND = text("""
    DELETE FROM procrastinate_jobs j WHERE id = ANY(:jobs) AND status = 'doing' AND EXISTS (
        SELECT 1 FROM procrastinate_jobs other WHERE other.queueing_lock = j.queueing_lock AND other.status = 'todo')
""")
# An UPDATE tells no worker, so a notification does.
_FREE = text("""
    UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL, scheduled_at = NULL, abort_requested = false
    WHERE id = ANY(:jobs) AND status = 'doing'
""")
WAKE = "SELECT pg_notify('procrastinate_queue_v1#" + QUEUE + """', '{"type": "job_inserted", "job_id": 0}')"""
"""The statement by which workers look for jobs at once."""


class Sweep:
    """The sweeps of one worker, by one connection that is kept: connecting takes longer than a sweep."""

    def __init__(self, store: Store, queue: ProcrastinateQueue) -> None:
        self._store = store
        self._queue = queue
        self._connection: Connection | None = None
        self._seen: set[tuple[int, int]] = set()
        """Jobs that a living worker had at the last sweep while nobody held their runs."""

    def sweep(self) -> int:
        """Puts back due runs without a living job, and returns their number. One process at a time does so.

        A job whose worker is dead is set free, and so is one that a living worker has at two sweeps while nobody holds
        its run: that worker has lost it.
        """
        with self._begin() as connection:
            if not connection.execute(_ONE_SWEEPS).scalar_one():
                return 0
            stalled = connection.execute(_STALLED, {"queue": QUEUE, "dead_after_s": DEAD_AFTER_S}).scalars().all()
            freed = _set_free(connection, list(stalled))
            return freed + self._put_back(connection)

    def close(self) -> None:
        """Closes the connection. A later sweep opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _begin(self) -> Generator[Connection]:
        """Begins a transaction. If it fails, the next one connects again."""
        if self._connection is None:
            self._connection = self._queue.engine.connect()
        try:
            with self._connection.begin():
                yield self._connection
        except BaseException:
            self.close()
            raise

    def _put_back(self, connection: Connection) -> int:
        due = self._store.ready(limit=LIMIT)
        found: Sequence[Row[Any]] = connection.execute(
            _JOBS, {"runs": [run.run_id for run in due], "queue": QUEUE}
        ).all()
        waiting = {job.queueing_lock for job in found if job.waits}
        taken = {(job.id, job.attempts) for job in found if not job.waits and job.queueing_lock not in waiting}
        freed = _set_free(connection, [job for job, _ in taken & self._seen])
        self._seen = taken
        alive = {job.queueing_lock for job in found}
        missing = [run for run in due if run.run_id not in alive]
        for run in missing:
            self._queue.put(connection, run.run_id, conversation=run.conversation)
        return freed + len(missing)


def _set_free(connection: Connection, jobs: list[int]) -> int:
    if not jobs:
        return 0
    connection.execute(_DROP_SECOND, {"jobs": jobs})
    freed = connection.execute(_FREE, {"jobs": jobs}).rowcount
    connection.exec_driver_sql(WAKE)
    return freed
