"""The jobs of procrastinate as a worker takes and gives them back. Needs `toolwire[fleet]`."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Awaitable, Callable

import procrastinate
from procrastinate.exceptions import ConnectorException, JobAborted, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from toolwire.fleet.queue import QUEUE, TASK, ProcrastinateQueue
from toolwire.fleet.sweep import WAKE

_LOG = logging.getLogger("toolwire.fleet")

RETRY_LIMIT_S = 60.0
"""Maximum seconds until a job that failed is tried again. It starts with 1 and doubles."""
POOL = 4
"""Connections of the queue, beside the store's: one listens, and a job needs one for a few milliseconds."""

_WAKE_FOR = WAKE + " WHERE EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = %(lock)s AND status = 'todo')"  # noqa: S608 - constants

# By the server's clock, since that of this host may be wrong.
_RETRY = """
    SELECT procrastinate_retry_job_v2(
        %(job)s, now() + make_interval(secs => %(delay_s)s), %(priority)s, %(queue)s, %(lock)s)
"""
# A worker that starts removes the rows of those that it takes for dead, and one of them may go on.
_BEAT = """
    INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)
    ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""


class PutBack(Exception):
    """Raised by a job to be put back, and taken after a delay."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(f"again in {delay_s:g} s")
        self.delay_s = delay_s


class _Again(procrastinate.BaseRetryStrategy):
    """Each job is put back until its run ends: the store says which runs are over, not a number of attempts."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision:
        delay_s = min(RETRY_LIMIT_S, 2.0 ** min(job.attempts, 10))
        if isinstance(exception, PutBack):
            delay_s = exception.delay_s
        elif isinstance(exception, JobAborted | asyncio.CancelledError):
            delay_s = 0.0
        return procrastinate.RetryDecision(retry_at=_now() + datetime.timedelta(seconds=delay_s))


class _Jobs(JobManager):
    """Wakes workers for the next job of a conversation: procrastinate tells them of new jobs alone.

    A job that cannot be given back stays with its worker, and the sweep sets it free.
    """

    async def update_heartbeat(self, worker_id: int) -> None:
        await self.connector.execute_query_async(_BEAT, worker=worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        try:
            await super().finish_job(job, status, delete_job)
            if job.lock is not None:
                await self.connector.execute_query_async(_WAKE_FOR, lock=job.lock)
        except ConnectorException as error:
            _LOG.warning("the job of %s could not be finished: %s", job.queueing_lock, error.__cause__ or error)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime.datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        delay_s = max(0.0, (retry_at - _now()).total_seconds()) if retry_at is not None else 0.0
        try:
            await self.connector.execute_query_async(
                _RETRY, job=job.id, delay_s=delay_s, priority=priority, queue=queue, lock=lock
            )
            if not delay_s:
                await self.connector.execute_query_async(WAKE)
        except UniqueViolation:
            # A second job came while this one was at work, such as by a decision. It does for both.
            await self.finish_job(job, Status.FAILED, delete_job=True)
        except ConnectorException as error:
            _LOG.warning("the job of %s could not be put back: %s", job.queueing_lock, error.__cause__ or error)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def make_app(queue: ProcrastinateQueue, go_on: Callable[[str], Awaitable[None]]) -> procrastinate.App:
    """Returns the app whose one task goes on with a run."""
    connector = procrastinate.PsycopgConnector(
        conninfo=queue.conninfo, kwargs={"prepare_threshold": None}, min_size=1, max_size=POOL
    )
    app = procrastinate.App(connector=connector)
    app.job_manager = _Jobs(connector)

    @app.task(name=TASK, queue=QUEUE, retry=_Again())
    async def _(run_id: str = "", **_: object) -> None:
        await go_on(run_id)

    return app
