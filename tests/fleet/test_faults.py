"""Faults that a fleet survives: kills, stopped processes, wrong clocks, and a database or queue that is lost.

The full form is `make fleet-kills`.
"""

from __future__ import annotations

import secrets
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from benchmarks.fleet_kills import Plan, kill_fleet, kill_without_store

from tests.fleet.app import call, lines, tools
from tests.fleet.quick import SHORT
from tests.fleet.workers import HOST, WorkerProcess
from tests.journal.away import away
from tests.journal.pgbouncer import pooling
from tests.journal.postgres import Server, running
from tests.patience import PATIENCE_S, until
from toolwire import Caller, Session
from toolwire.fleet import ProcrastinateQueue
from toolwire.journal.store import Store

Start = Callable[..., WorkerProcess]

FASTER = {"BEAT_S": 0.5, "DEAD_AFTER_S": 1.5}
"""For a worker that ends itself after three beats."""
WRONG_S = 300
"""Seconds by which a clock is wrong."""
CRASHED_S = 3.0
"""Seconds for which the server is away."""
EMPTIED_LIMIT_S = 10.0
"""Seconds in which the sweep finds all runs of a queue that was emptied."""

HAS_HOSTS = subprocess.run([*HOST, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
CLOCKS = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))

needs_hosts = pytest.mark.skipif(not HAS_HOSTS, reason="this user cannot make namespaces of processes")
needs_clocks = pytest.mark.skipif(not CLOCKS, reason="libfaketime is missing: apt-get install faketime")


def session(store: Store, principal: str = "ann") -> Session:
    return Session(tools(), protocol="openai", store=store, caller=Caller(principal=principal))


def submit(store: Store, count: int, **arguments: Any) -> list[str]:
    """The ids of that many runs of `wait`. Each has a conversation of its own, so they run side by side."""
    return [session(store).run_submit(call("wait", name=str(number), **arguments)) for number in range(count)]


def wait_for(store: Store, runs: list[str]) -> None:
    for run_id in runs:
        session(store).run_wait(run_id, timeout_s=PATIENCE_S)


def clock(seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is wrong by so many seconds."""
    off = {"FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1"}
    return {"LD_PRELOAD": str(CLOCKS[0]), **off} if seconds else {}


@needs_hosts
@pytest.mark.timeout(600)
def test_random_kills_lose_no_run_and_pay_nothing_twice(bare_url: str, tmp_path: Path, whole: bool) -> None:
    plan = Plan() if whole else Plan(runs=16, kills=4, approved=3, slow_s=0.3, constants=SHORT)
    toll = kill_fleet(bare_url, tmp_path, plan, seed=1)
    assert (toll.lost, toll.doubled, toll.missing, toll.is_whole) == (0, 0, 0, True), toll


def test_the_same_jobs_without_a_store_pay_twice(tmp_path: Path) -> None:
    """The control."""
    assert kill_without_store(tmp_path / "effects", Plan(kills=3), seed=1) > 0


@needs_hosts
def test_a_worker_that_was_stopped_past_its_lease_settles_nothing(
    store: Store, start_worker: Start, done_file: Path, whole: bool
) -> None:
    constants = None if whole else SHORT
    stopped = start_worker(is_host=True, constants=constants)
    made = session(store)
    run_id = made.run_submit(call("wait", name="a", seconds=1.0))
    until(lambda: lines(done_file) == ["begin a"])
    stopped.send(signal.SIGSTOP)
    other = start_worker(is_host=True, constants=constants)
    made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert lines(done_file) == ["begin a", "begin a", "end a"]
    before = store.run(run_id)
    other.kill()
    stopped.send(signal.SIGCONT)
    until(lambda: lines(done_file).count("end a") == 2)
    # It had the result of its call before it takes another run.
    made.run_wait(made.run_submit(call("note", name="b")), timeout_s=PATIENCE_S)
    assert store.run(run_id) == before
    assert stopped.is_alive


@needs_hosts
@needs_clocks
def test_workers_with_wrong_clocks_take_no_run_that_is_at_work(
    store: Store, start_worker: Start, done_file: Path, whole: bool
) -> None:
    workers = [
        start_worker("--concurrency", "2", is_host=True, constants=None if whole else SHORT, variables=clock(seconds))
        for seconds in (-WRONG_S, 0, WRONG_S)
    ]
    for worker in workers:
        worker.until_it_works()
    # Longer than a lease.
    runs = submit(store, 6, seconds=20.0 if whole else 6.0)
    wait_for(store, runs)
    assert Counter(lines(done_file)) == Counter(f"{what} {number}" for number in range(6) for what in ("begin", "end"))
    assert {store.run(run_id).taken_over for run_id in runs} == {0}


@needs_clocks
def test_a_wrong_clock_changes_no_delay_of_a_job(
    store: Store, start_worker: Start, done_file: Path, whole: bool
) -> None:
    for seconds in (-WRONG_S, WRONG_S) if whole else (WRONG_S,):
        done_file.write_text("")
        worker = start_worker(variables=clock(seconds))
        made = session(store, "broken")
        run_id = made.run_submit(call("note", name="a"))
        until(lambda worker=worker: "tried again" in worker.said())
        began = time.monotonic()
        done_file.write_text("mended 0\n")
        made.run_wait(run_id, timeout_s=PATIENCE_S)
        assert time.monotonic() - began > 0.5
        worker.kill()


def test_all_go_on_after_a_crash_of_the_server(
    tmp_path: Path, start_worker: Start, done_file: Path, whole: bool
) -> None:
    # A server of its own, because other tests use the common one.
    folder = Path(tempfile.gettempdir()) / f"toolwire-postgres-{secrets.token_hex(6)}"
    with running(folder, tmp_path / "users") as own:
        own.create("crashed", is_new=True)
        url = own.url("crashed")
        ProcrastinateQueue().migrate(url)
        with Store.open(url, queue=ProcrastinateQueue()) as store:
            workers = [start_worker(url=url) for _ in range(2)]
            runs = submit(store, 24, seconds=1.0)
            until(lambda: len(lines(done_file)) >= 16)
            with own.crashed():
                time.sleep(CRASHED_S if whole else 1.0)
            wait_for(store, runs)
            assert {f"end {number}" for number in range(24)} <= set(lines(done_file))
            assert [worker.is_alive for worker in workers] == [True, True]


def test_runs_of_an_emptied_queue_are_found_by_workers_at_work(
    store: Store, url: str, start_worker: Start, done_file: Path, whole: bool
) -> None:
    for _ in range(3 if whole else 1):
        start_worker().until_it_works()
    runs = submit(store, 100 if whole else 10, seconds=0.2)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")
    began = time.monotonic()
    wait_for(store, runs)
    assert not whole or time.monotonic() - began < EMPTIED_LIMIT_S
    assert lines(done_file).count("begin 0") == 1
    assert len(lines(done_file)) == 2 * len(runs)


def test_runs_end_behind_pgbouncer(server: Server, store: Store, start_worker: Start, done_file: Path) -> None:
    database = store.url.rpartition("/")[2].partition("?")[0]
    with pooling(server) as pooler:
        start_worker("--poll", "1", url=f"{pooler.url(database)}&prepared=false")
        wait_for(store, submit(store, 10, seconds=0))
    assert sorted(lines(done_file)) == sorted(f"{what} {number}" for number in range(10) for what in ("begin", "end"))


def test_workers_whose_loops_are_stuck_end_themselves(store: Store, url: str, start_worker: Start) -> None:
    taken = "SELECT worker_id FROM procrastinate_jobs WHERE status = 'doing' ORDER BY worker_id"
    workers = [start_worker("--concurrency", "1", constants=FASTER) for _ in range(2)]
    for worker in workers:
        worker.until_it_works()
        session(store, "stuck").run_submit(call("note", name="a"))
    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: len(connection.execute(taken).fetchall()) == 2)
        # As another worker does when it starts.
        connection.execute(f"DELETE FROM procrastinate_workers WHERE id = ({taken} LIMIT 1)".encode())
    for worker in workers:
        code, said = worker.wait()
        reason = "the worker ends, for its supervisor to start it again: its heartbeat is older than 1.5 s"
        assert (code, said.splitlines()[-1].partition(": ")[2]) == (1, reason)


def test_a_worker_whose_store_is_away_for_too_long_ends_itself(bare_url: str, url: str, start_worker: Start) -> None:
    worker = start_worker(constants={**FASTER, "AWAY_LIMIT_S": 1.0})
    worker.until_it_works()
    with away(url):
        code, said = worker.wait()
    assert code == 1
    assert "the store or its queue was away for 1 s" in said
