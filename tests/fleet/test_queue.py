"""A job is put in the caller's transaction, and one that waits is enough."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tests.fleet.workers import WorkerProcess
from toolwire.fleet import ProcrastinateQueue
from toolwire.fleet.sweep import Sweep
from toolwire.journal.store import Store
from toolwire.testing import QUEUE_CHECKS, CheckedQueue, MakeQueue, PortFails, check_queue
from toolwire.vocabulary.errors import ConfigurationError

JOBS = text("SELECT queueing_lock, lock, priority, args, status::text FROM procrastinate_jobs ORDER BY id")
TAKE = text("SELECT queueing_lock FROM procrastinate_fetch_job_v2(NULL, :worker)")
WORKER = text("SELECT procrastinate_register_worker_v1()")
FINISH = text("""
    SELECT procrastinate_finish_job_v1(id, 'succeeded', true) FROM procrastinate_jobs
    WHERE args->>'run_id' = :run_id AND status = 'doing'
""")
ENDED = text("""
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
""")
OLD = text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")


@pytest.fixture
def attached(queue: ProcrastinateQueue, url: str) -> ProcrastinateQueue:
    queue.attach(url)
    return queue


def jobs(queue: ProcrastinateQueue) -> list[Any]:
    with queue.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(JOBS)]


def put(queue: ProcrastinateQueue, *runs: str, conversation: str = "") -> None:
    with queue.engine.begin() as connection:
        for run_id in runs:
            queue.put(connection, run_id, conversation=conversation)


def take(queue: ProcrastinateQueue) -> str | None:
    with queue.engine.begin() as connection:
        worker = connection.execute(WORKER).scalar_one()
        return connection.execute(TAKE, {"worker": worker}).scalar()


def finish(queue: ProcrastinateQueue, run_id: str) -> None:
    with queue.engine.begin() as connection:
        connection.execute(FINISH, {"run_id": run_id})


def sweeping(queue: ProcrastinateQueue, *due: str) -> Sweep:
    ready = [SimpleNamespace(run_id=run_id, conversation="c") for run_id in due]
    return Sweep(cast("Store", SimpleNamespace(ready=lambda limit: ready)), queue)


@pytest.fixture
def make_queue(url: str, queue: ProcrastinateQueue) -> MakeQueue:
    return lambda: checked_queue(url, queue)


def checked_queue(url: str, queue: ProcrastinateQueue) -> CheckedQueue:
    ProcrastinateQueue().migrate(url)
    other = ProcrastinateQueue()
    other.attach(url)
    return CheckedQueue(queue, url, other.engine, lambda: take(other), lambda run_id: finish(other, run_id))


@pytest.mark.parametrize("check", QUEUE_CHECKS)
def test_it_is_a_queue_of_runs(check: str, make_queue: MakeQueue) -> None:
    QUEUE_CHECKS[check](make_queue)


class Elsewhere(ProcrastinateQueue):
    def put(self, connection: Connection, run_id: str, **options: Any) -> None:
        with self.engine.begin() as own:
            super().put(own, run_id, **options)


class Twice(ProcrastinateQueue):
    def put(self, connection: Connection, run_id: str, **options: Any) -> None:
        super().put(connection, run_id, **options)
        connection.execute(text("UPDATE procrastinate_jobs SET queueing_lock = NULL, lock = queueing_lock"))


class Fixed(ProcrastinateQueue):
    """Puts each job with the same value of one option."""

    option: ClassVar[dict[str, Any]]

    def put(self, connection: Connection, run_id: str, **options: Any) -> None:
        super().put(connection, run_id, **{"conversation": "", **options, **self.option})


class Unordered(Fixed):
    option: ClassVar[dict[str, Any]] = {"conversation": ""}


class OneByOne(Fixed):
    option: ClassVar[dict[str, Any]] = {"conversation": "all"}


class Equal(Fixed):
    option: ClassVar[dict[str, Any]] = {"priority": 0}


class Hasty(Fixed):
    option: ClassVar[dict[str, Any]] = {"delay_s": 0.0}


class Lost(ProcrastinateQueue):
    def put(self, connection: Connection, run_id: str, **options: Any) -> None:
        pass


class Once(ProcrastinateQueue):
    def attach(self, url: str) -> None:
        if self._url is not None:
            raise ConfigurationError("it is attached already")
        super().attach(url)


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (Lost, "a job is taken once"),
        (Elsewhere, "a job belongs to its transaction"),
        (Twice, "a second job that waits is none"),
        (Lost, "a run can be put while its job is at work"),
        (Unordered, "a conversation keeps its order"),
        (OneByOne, "runs without a conversation go side by side"),
        (Equal, "a higher priority comes first"),
        (Hasty, "a delayed job waits"),
        (Once, "attaching twice is nothing"),
        (Lost, "a store puts what is submitted"),
    ],
)
def test_the_kit_names_the_fault_of_a_wrong_queue(bare_url: str, wrong: type[ProcrastinateQueue], check: str) -> None:
    with pytest.raises(PortFails, match=f"(^|\n){check}: "):
        check_queue(lambda: checked_queue(bare_url, wrong()))


def test_a_queue_without_tables_names_the_command_that_makes_them(bare_url: str, queue: ProcrastinateQueue) -> None:
    with pytest.raises(ConfigurationError, match=r"^[^\n]* has no tables: run `toolwire worker --migrate` once$"):
        queue.attach(bare_url)
    assert [queue.migrate(bare_url), queue.migrate(bare_url)] == [True, False]
    queue.attach(bare_url)


def test_a_queue_on_sqlite_is_refused_in_one_line(queue: ProcrastinateQueue) -> None:
    with pytest.raises(ConfigurationError, match=r"^a queue needs a store in PostgreSQL[^\n]*$"):
        queue.attach("sqlite:///runs.db")


def test_a_sweep_puts_back_only_what_has_no_living_job(attached: ProcrastinateQueue) -> None:
    put(attached, "r_waits")
    assert sweeping(attached, "r_waits", "r_lost").sweep() == 1
    assert [job[0] for job in jobs(attached)] == ["r_waits", "r_lost"]


def test_a_job_of_a_dead_worker_is_set_free(attached: ProcrastinateQueue) -> None:
    put(attached, "r_1")
    assert take(attached) == "r_1"
    sweep = sweeping(attached)
    assert sweep.sweep() == 0
    with attached.engine.begin() as connection:
        connection.execute(OLD)
    assert sweep.sweep() == 1
    assert take(attached) == "r_1"


def test_a_job_that_a_living_worker_has_lost_is_set_free_at_the_second_look(attached: ProcrastinateQueue) -> None:
    put(attached, "r_1")
    assert take(attached) == "r_1"
    sweep = sweeping(attached, "r_1")
    assert [sweep.sweep(), sweep.sweep()] == [0, 1]
    assert take(attached) == "r_1"


def test_a_sweep_that_lost_its_connection_connects_again(attached: ProcrastinateQueue) -> None:
    sweep = sweeping(attached, "r_1")
    assert sweep.sweep() == 1
    with attached.engine.begin() as connection:
        connection.execute(ENDED)
    with pytest.raises(DBAPIError):
        sweep.sweep()
    assert sweep.sweep() == 0
    sweep.close()


def test_one_process_sweeps_at_a_time(attached: ProcrastinateQueue) -> None:
    with attached.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('toolwire sweep'))"))
        assert sweeping(attached, "r_1").sweep() == 0
    assert sweeping(attached, "r_1").sweep() == 1


def test_a_worker_of_a_queue_without_tables_ends_with_one_line(start_worker: Callable[..., WorkerProcess]) -> None:
    code, said = start_worker().wait()
    assert (code, len(said.splitlines())) == (2, 1)
    assert "run `toolwire worker --migrate` once" in said
