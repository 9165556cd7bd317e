"""A job is put in the caller's transaction, and one that waits is enough."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import text

from tests.fleet.workers import WorkerProcess
from toolwire.fleet import ProcrastinateQueue
from toolwire.fleet.sweep import Sweep
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import ConfigurationError

JOBS = text("SELECT queueing_lock, lock, priority, args, status::text FROM procrastinate_jobs ORDER BY id")
TAKE = text("SELECT queueing_lock FROM procrastinate_fetch_job_v2(NULL, :worker)")
WORKER = text("SELECT procrastinate_register_worker_v1()")
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


def sweeping(queue: ProcrastinateQueue, *due: str) -> Sweep:
    ready = [SimpleNamespace(run_id=run_id, conversation="c") for run_id in due]
    return Sweep(cast("Store", SimpleNamespace(ready=lambda limit: ready)), queue)


def test_a_second_job_of_a_run_is_none_and_leaves_the_transaction_whole(attached: ProcrastinateQueue) -> None:
    with attached.engine.begin() as connection:
        attached.put(connection, "r_1", conversation="c", priority=2)
        attached.put(connection, "r_1", conversation="c")
        attached.put(connection, "r_2", conversation="")
    assert jobs(attached) == [
        ("r_1", "c", 2, {"run_id": "r_1"}, "todo"),
        ("r_2", None, 0, {"run_id": "r_2"}, "todo"),
    ]


def test_a_job_is_gone_with_the_transaction_of_its_caller(attached: ProcrastinateQueue) -> None:
    with attached.engine.connect() as connection:
        attached.put(connection, "r_1", conversation="c")
        connection.rollback()
    assert jobs(attached) == []


def test_a_delayed_job_is_not_taken_yet(attached: ProcrastinateQueue) -> None:
    with attached.engine.begin() as connection:
        attached.put(connection, "r_1", conversation="", delay_s=60.0)
    assert take(attached) is None


def test_jobs_of_one_conversation_are_taken_one_at_a_time_and_those_of_others_beside_them(
    attached: ProcrastinateQueue,
) -> None:
    put(attached, "r_1", "r_2", conversation="c")
    put(attached, "r_3", conversation="d")
    assert [take(attached) for _ in range(3)] == ["r_1", "r_3", None]


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


def test_one_process_sweeps_at_a_time(attached: ProcrastinateQueue) -> None:
    with attached.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('toolwire sweep'))"))
        assert sweeping(attached, "r_1").sweep() == 0
    assert sweeping(attached, "r_1").sweep() == 1


def test_a_worker_of_a_queue_without_tables_ends_with_one_line(start_worker: Callable[..., WorkerProcess]) -> None:
    code, said = start_worker().wait()
    assert (code, len(said.splitlines())) == (2, 1)
    assert "run `toolwire worker --migrate` once" in said
