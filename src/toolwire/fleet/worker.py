"""`toolwire worker`: takes runs from the queue, and goes on with each in a session of its own."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from toolwire.facade.built_in.program_entry import programs_run_by
from toolwire.fleet.figures import Figures
from toolwire.fleet.going_on import SessionFor, go_on
from toolwire.fleet.health import serve_health
from toolwire.fleet.queue import QUEUE, ProcrastinateQueue
from toolwire.fleet.remote_runner import RemoteRunner
from toolwire.fleet.sweep import BEAT_S, DEAD_AFTER_S, Sweep
from toolwire.fleet.vitals import Vitals, no_runner
from toolwire.permission.approval import DecisionRefused
from toolwire.runtime.extras import require_packages

if TYPE_CHECKING:
    from toolwire.journal.store import Store

CONCURRENCY = 8
"""Default number of runs that a worker works on at a time: most of their time is waiting."""
GRACE_S = 30.0
"""Default seconds that a worker waits for its runs when it is told to end: Kubernetes kills it after so many."""
POLL_S = 1.0
"""Seconds between two looks for jobs whose delay is over; new jobs are told at once."""
LEASE_S = 15.0
"""Seconds after which other hosts continue the runs of a dead worker."""
SWEEP_S = (2.0, 6.0)
"""Bounds of the seconds between two sweeps. They are random, so that workers take turns."""
LATER_S = 1.0
"""Seconds until a run whose conversation or itself is at work elsewhere is tried again."""
FULL_LIMIT_S = 8.0
"""Maximum seconds until a run of a tenant with all its places taken is tried again. It starts with 1 and doubles."""
RESTART_S = 1.0
"""Seconds until the queue is opened again after it failed, or runners are looked for again."""

_LOG = logging.getLogger("toolwire.fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works.

    Attributes:
        concurrency: Number of runs at a time.
        grace_s: Seconds that it waits for its runs when it is told to end, before it gives them up.
        per_tenant: Number of runs of one tenant at a time; None for no limit.
        poll_s: Seconds between two looks at the queue, without listening: for PgBouncer. None listens.
        health: `HOST:PORT` of the health port; None for none.
    """

    concurrency: int = CONCURRENCY
    grace_s: float = GRACE_S
    per_tenant: int | None = None
    poll_s: float | None = None
    health: str | None = None


class Worker:
    """Works on the runs of a store until it is told to end. The store was opened with a queue.

    `session_for` runs on the event loop.
    """

    def __init__(
        self,
        store: Store,
        queue: ProcrastinateQueue,
        session_for: SessionFor,
        settings: WorkerSettings,
        *,
        runner: RemoteRunner | None = None,
    ) -> None:
        """`runner` runs the programs of all its runs; None: what their sessions say."""
        require_packages("fleet", "toolwire worker", ("procrastinate", "psycopg_pool"))
        self._store = store
        self._queue = queue
        self._session_for = session_for
        self._settings = settings
        self._tenants: Counter[str] = Counter()
        self._full: Counter[str] = Counter()
        self._stop = asyncio.Event()
        self.figures = Figures(places=settings.concurrency)
        self._runner = runner
        self._vitals = Vitals(queue, self.figures, runner)

    async def work(self) -> None:
        """Works until `stop`, SIGTERM or SIGINT. Then it takes nothing new, waits `grace_s` and gives up its runs.

        Raises:
            ConfigurationError: The health port is taken.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        programs = programs_run_by(self._runner) if self._runner is not None else nullcontext()
        async with self._health():
            with programs:
                await self._work()

    async def _work(self) -> None:
        tasks = [asyncio.create_task(work()) for work in (self._take_jobs, self._sweep)]
        self._vitals.start()
        try:
            await self._stop.wait()
            tasks[1].cancel()
            await self._end(tasks[0])
        finally:
            self._vitals.stop()

    def stop(self) -> None:
        """Tells the worker to end. `work` returns when it has ended."""
        self._stop.set()

    async def _end(self, jobs: asyncio.Task[None]) -> None:
        """Ends the queue. Cancelling it lets it wait for the jobs that it has."""
        jobs.cancel()
        with suppress(asyncio.CancelledError):
            await jobs

    async def _take_jobs(self) -> None:
        """Takes jobs for ever. If the queue fails, for example because the server restarts, it is opened again."""
        await self._find_runner()
        while True:
            try:
                await self._take_jobs_once()
            except Exception as error:  # noqa: BLE001 - whatever it is, the vitals say when it lasts too long
                _LOG.warning("the queue failed, and is opened again: %s", error)
            await asyncio.sleep(RESTART_S)

    async def _find_runner(self) -> None:
        """Waits until a runner can be used, so that the first programs do not fail for the want of one."""
        places, is_said = 0, False
        while self._runner is not None and not places:
            places, reasons = await asyncio.to_thread(self._runner.reach)
            if not places:
                if not is_said:
                    _LOG.warning("no run is taken yet: %s", no_runner(reasons))
                is_said = True
                await asyncio.sleep(RESTART_S)

    async def _take_jobs_once(self) -> None:
        from procrastinate.worker import Worker as JobWorker

        from toolwire.fleet.jobs import make_app

        app, settings = make_app(self._queue, self._take), self._settings
        async with app.open_async():
            worker = JobWorker(
                app,
                queues=[QUEUE],
                concurrency=settings.concurrency,
                fetch_job_polling_interval=settings.poll_s or POLL_S,
                listen_notify=settings.poll_s is None,
                shutdown_graceful_timeout=settings.grace_s,
                delete_jobs="always",
                install_signal_handlers=False,
                update_heartbeat_interval=BEAT_S,
                stalled_worker_timeout=DEAD_AFTER_S,
            )
            self._vitals.watch(lambda: worker.worker_id)
            try:
                await worker.run()
            finally:
                self._vitals.watch(lambda: None)

    async def _take(self, run_id: str) -> None:
        """Goes on with the run of a job, or puts the job back."""
        from toolwire.fleet.jobs import PutBack

        if not run_id or not isinstance(cast("object", run_id), str):
            _LOG.warning("a job names no run, and is dropped: use Session.submit or ProcrastinateQueue.put")
            return
        tenant = await self._tenant_of(run_id)
        if self._settings.per_tenant is not None and self._tenants[tenant] >= self._settings.per_tenant:
            self._full[run_id] += 1
            raise PutBack(min(FULL_LIMIT_S, 2.0 ** (self._full[run_id] - 1)))
        self._full.pop(run_id, None)
        with self._counting(tenant):
            how = await self._watched(run_id, go_on(self._store, run_id, self._session_for))
        if how == "later":
            raise PutBack(LATER_S)
        self.figures.ends[how] = self.figures.ends.get(how, 0) + 1

    async def _watched(self, run_id: str, going: Awaitable[str]) -> str:
        began = time.monotonic()
        try:
            return await going
        except Exception as error:
            _LOG.error("the run %s failed, and is tried again: %s: %s", run_id, type(error).__name__, error)
            raise
        finally:
            self.figures.runs.add(time.monotonic() - began)

    @contextmanager
    def _counting(self, tenant: str) -> Generator[None]:
        self._tenants[tenant] += 1
        self.figures.running += 1
        try:
            yield
        finally:
            self._tenants[tenant] -= 1
            self.figures.running -= 1
            if not self._tenants[tenant]:
                del self._tenants[tenant]

    async def _tenant_of(self, run_id: str) -> str:
        """Returns the tenant of a run; empty without a limit, or for a run that is unknown."""
        if self._settings.per_tenant is None:
            return ""
        try:
            return (await asyncio.to_thread(self._store.run, run_id)).caller.tenant
        except DecisionRefused:
            return ""

    async def _sweep(self) -> None:
        # Never closed: a sweep may still run in its thread when the worker ends.
        sweep = Sweep(self._store, self._queue)
        while True:
            await asyncio.sleep(random.uniform(*SWEEP_S))  # noqa: S311 - spreads load, guards nothing
            try:
                put_back = await asyncio.to_thread(sweep.sweep)
            except Exception as error:  # noqa: BLE001 - the next one may succeed
                _LOG.warning("a sweep failed, and is tried again: %s", error)
            else:
                if put_back:
                    _LOG.info("a sweep put back %d jobs", put_back)

    @asynccontextmanager
    async def _health(self) -> AsyncGenerator[None]:
        if self._settings.health is None:
            yield
            return
        pages: dict[str, Any] = {
            "/healthz": lambda: (200, "alive\n"),
            "/readyz": self._vitals.readiness,
            "/metrics": lambda: (200, self.figures.text()),
        }
        server = await serve_health(self._settings.health, pages)
        try:
            yield
        finally:
            server.close()
