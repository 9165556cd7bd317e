"""What a fleet costs beside its own queue: how many runs it does, how soon they begin, and what they write.

Run: python -m benchmarks.fleet (`make bench-fleet`): minutes. PostgreSQL is real, with fsync. The queue alone works in
the same run (`fleet_floor.py`).
"""

from __future__ import annotations

import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.fleet.app import call, tools
from tests.fleet.workers import ROOT, WorkerProcess
from tests.journal.postgres import Server, running
from tests.patience import PATIENCE_S, until

from benchmarks import fleet_floor, fleet_stores
from benchmarks.timing import Figure, show
from toolwire import Decision, Session
from toolwire.fleet import ProcrastinateQueue
from toolwire.journal.store import Store

WORKERS = (1, 2, 3)
ROUNDS = 3
"""The best of so many."""
CONCURRENCY, JOBS = 4, 12
"""Runs at a time of each worker, and runs for each worker."""
CALLS, CALL_S = 3, 0.5
RATE_LEAST = 0.9
TRIPS = 100
"""Runs that are submitted one after the other."""
BEGUN_P50_MS, BEGUN_P99_MS, DECIDED_MS = 40.0, 250.0, 150.0
"""Limits beyond the queue's own empty job, and the one from a decision to the end."""
KILLED_S, ENDED_S = 20.0, 3.0
STATEMENTS, COMMITS = 15.0, 4.0
KEY = bytes(32)


def figures() -> list[Figure]:
    """All of them."""
    os.environ["TOOLWIRE_KEY"] = KEY.hex()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        # The server runs as another user, which may not read this folder.
        with running(Path(f"{folder}-server"), folder / "users", is_durable=True) as server:
            bench = Bench(server, folder)
            parts: list[Callable[[], list[Figure]]] = [
                lambda: _rates(bench), lambda: _begun(bench), lambda: _decided(bench), lambda: _again(bench),
                lambda: _written(bench), lambda: fleet_stores.figures(server, folder),
            ]  # fmt: skip
            return [figure for part in parts for figure in part()]


class Bench:
    """Makes stores and processes."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self._folder = server, folder

    @contextmanager
    def store(self) -> Iterator[Store]:
        """A new store with a queue."""
        name = f"b{secrets.token_hex(4)}"
        self.server.create(name, is_new=True)
        ProcrastinateQueue().migrate(self.server.url(name))
        with Store.open(self.server.url(name), queue=ProcrastinateQueue()) as store:
            yield store

    def file(self) -> Path:
        """A new empty file."""
        file = self._folder / secrets.token_hex(4)
        file.touch()
        return file

    @contextmanager
    def workers(self, store: Store, count: int, done: Path, *arguments: str, **options: Any) -> Iterator[list[Any]]:
        """Workers that work."""
        environment = {**os.environ, "DONE_FILE": str(done)}
        with ExitStack() as stack:
            started = [
                WorkerProcess(url_of(store), arguments, environment, self.file(), **options) for _ in range(count)
            ]
            for worker in started:
                stack.callback(worker.kill)
            for worker in started:
                worker.until_it_works()
            yield started

    @contextmanager
    def floor(self, store: Store, count: int, done: Path, concurrency: int = CONCURRENCY) -> Iterator[list[Any]]:
        """Workers of the queue alone."""
        command = [sys.executable, "-m", "benchmarks.fleet_floor", url_of(store), str(concurrency), str(done)]
        started = [subprocess.Popen(command, cwd=ROOT) for _ in range(count)]
        try:
            until(lambda: done.read_text().count(fleet_floor.WORKING) == count)
            yield started
        finally:
            for process in started:
                process.kill()
                process.wait()


def url_of(store: Store) -> str:
    """The URL as the commands and drivers take it."""
    return store.url.replace("+psycopg", "")


def times_in(file: Path, word: str) -> dict[str, float]:
    """The last time of each line that begins with the word."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {line[1]: float(line[-1]) for line in lines if line[0] == word}


def put(connection: psycopg.Connection[Any], name: str, seconds: float = 0.0) -> None:
    """Puts a job of the floor, durably."""
    connection.execute(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES "
        "(%s, %s, jsonb_build_object('name', %s::text, 'seconds', %s::float8))",
        [fleet_floor.QUEUE, fleet_floor.TASK, name, seconds],
    )


def session(store: Store) -> Session:
    """A session in a conversation of its own."""
    return Session(tools(), protocol="openai", store=store)


def waits(name: str, tool: str) -> dict[str, Any]:
    """A reply with calls that wait: those of `wait` side by side, those of `rest` one after the other."""
    reply = call(tool, name=f"{name}/0", seconds=CALL_S)
    for number in range(1, CALLS):
        more = call(tool, name=f"{name}/{number}", seconds=CALL_S)["tool_calls"][0]
        reply["tool_calls"].append({**more, "id": f"c{number + 1}"})
    return reply


def _rates(bench: Bench) -> list[Figure]:
    """Runs a second of several workers, times the queue's own jobs that sleep as long."""
    with bench.store() as store:
        in_turn = {count: _share(bench, store, count, "rest", CALLS * CALL_S) for count in WORKERS}
        beside = _share(bench, store, 1, "wait", CALL_S)
    return [
        *(
            Figure(
                name=f"runs of {CALLS} calls of {CALL_S} s, {count} workers, times jobs that sleep as long",
                ratio=in_turn[count], limit=RATE_LEAST, is_least=True,
            )
            for count in WORKERS
        ),
        Figure(name="the same, 1 worker, with calls side by side", ratio=beside, limit=None),
    ]  # fmt: skip


def _share(bench: Bench, store: Store, count: int, tool: str, job_s: float) -> float:
    """The rate of such runs, times that of the queue's own jobs. The two take turns."""
    rounds = [(_rate(bench, store, count, tool), _floor_rate(bench, store, count, job_s)) for _ in range(ROUNDS)]
    return max(ours for ours, _ in rounds) / max(floor for _, floor in rounds)


def _rate(bench: Bench, store: Store, count: int, tool: str) -> float:
    done = bench.file()
    with bench.workers(store, count, done, "--concurrency", str(CONCURRENCY)) as workers:
        for worker in workers:
            worker.send(signal.SIGSTOP)
        for number in range(JOBS * count):
            session(store).run_submit(waits(str(number), tool))
        for worker in workers:
            worker.send(signal.SIGCONT)
        until(lambda: len(times_in(done, "end")) == CALLS * JOBS * count)
    return JOBS * count / _span(done)


def _floor_rate(bench: Bench, store: Store, count: int, job_s: float) -> float:
    done = bench.file()
    with bench.floor(store, count, done) as workers, psycopg.connect(url_of(store), autocommit=True) as connection:
        for worker in workers:
            worker.send_signal(signal.SIGSTOP)
        for number in range(JOBS * count):
            put(connection, str(number), job_s)
        for worker in workers:
            worker.send_signal(signal.SIGCONT)
        until(lambda: len(times_in(done, "end")) == JOBS * count)
    return JOBS * count / _span(done)


def _span(done: Path) -> float:
    return max(times_in(done, "end").values()) - min(times_in(done, "begin").values())


def _begun(bench: Bench) -> list[Figure]:
    """Milliseconds from the call of `submit` until the first call of the run begins, beyond the queue's own."""
    with bench.store() as store:
        ours, floor = _begun_ms(bench, store), _floor_begun_ms(bench, store)
    p50, p99 = statistics.median(ours), statistics.quantiles(ours, n=100)[98]
    floor_p50, floor_p99 = statistics.median(floor), statistics.quantiles(floor, n=100)[98]
    return [
        Figure(name="submitted to begun, p50, beyond the queue's empty job", ratio=p50 - floor_p50,
               limit=BEGUN_P50_MS, unit="ms"),
        Figure(name="submitted to begun, p99, beyond the queue's empty job", ratio=p99 - floor_p50,
               limit=BEGUN_P99_MS, unit="ms"),
        Figure(name="the queue's empty job, put to begun, p50", ratio=floor_p50, limit=None, unit="ms"),
        Figure(name="the queue's empty job, put to begun, p99", ratio=floor_p99, limit=None, unit="ms"),
    ]  # fmt: skip


def _begun_ms(bench: Bench, store: Store) -> list[float]:
    done, asked = bench.file(), dict[str, float]()
    with bench.workers(store, 1, done):
        for number in range(TRIPS):
            made, reply = session(store), call("wait", name=str(number), seconds=0)
            asked[str(number)] = time.time()
            made.run_wait(made.run_submit(reply), timeout_s=PATIENCE_S)
    begun = times_in(done, "begin")
    return [1e3 * (begun[name] - at) for name, at in asked.items()][1:]


def _floor_begun_ms(bench: Bench, store: Store) -> list[float]:
    done, asked = bench.file(), dict[str, float]()
    with bench.floor(store, 1, done), psycopg.connect(url_of(store), autocommit=True) as connection:
        for number in range(TRIPS):
            asked[str(number)] = time.time()
            put(connection, str(number))
            until(lambda number=number: str(number) in times_in(done, "begin"))
    begun = times_in(done, "begin")
    return [1e3 * (begun[name] - at) for name, at in asked.items()][1:]


def _decided(bench: Bench) -> list[Figure]:
    taken: list[float] = []
    done = bench.file()
    with bench.store() as store, bench.workers(store, 1, done):
        for number in range(20):
            made = session(store)
            run_id = made.run_submit(call("pay", amount=number))
            suspended = made.run_wait(run_id, timeout_s=PATIENCE_S).suspended
            assert suspended is not None
            decided_at = time.time()
            store.decide(suspended.pending[0].id, Decision(verdict="approve"))
            made.run_wait(run_id, timeout_s=PATIENCE_S)
            taken.append(1e3 * (store.run(run_id).updated_at - decided_at))
    return [Figure(name="decided to ended, p50", ratio=statistics.median(taken), limit=DECIDED_MS, unit="ms")]


def _again(bench: Bench) -> list[Figure]:
    """Seconds until others begin the runs of a worker that was killed, or told to end, on another host."""
    return [
        Figure(name="killed -9 on another host to begun again, the last of 4 runs",
               ratio=_again_s(bench, signal.SIGKILL), limit=KILLED_S, unit="s"),
        Figure(name="SIGTERM and the end of its grace to begun again, the last of 4 runs",
               ratio=_again_s(bench, signal.SIGTERM), limit=ENDED_S, unit="s"),
    ]  # fmt: skip


def _again_s(bench: Bench, number: signal.Signals) -> float:
    done = bench.file()
    with bench.store() as store, bench.workers(store, 1, done, "--grace", "0", is_host=True) as (first,):
        for name in range(4):
            session(store).run_submit(call("stall", name=str(name)))
        until(lambda: len(times_in(done, "begin")) == 4)
        with bench.workers(store, 1, done, is_host=True):
            ended_at = time.time()
            first.send(number)
            until(lambda: len(times_in(done, "end")) == 4)
    return max(times_in(done, "begin").values()) - ended_at


def _written(bench: Bench) -> list[Figure]:
    """Statements and commits of a run through the queue, beyond the same turn and an empty job of the queue."""
    with bench.store() as store:
        through, empty, turn = (fleet_stores.cost(bench.server, work) for work in _ways(bench, store))
    return [
        Figure(name=f"{what} of a run, beyond the same turn and the queue's empty job",
               ratio=through[at] - empty[at] - turn[at], limit=limit, unit="")
        for at, (what, limit) in enumerate({"statements": STATEMENTS, "commits": COMMITS}.items())
    ] + [
        Figure(name=f"{what}: the run / the turn / the empty job: {through[at]:.1f} / {turn[at]:.1f} / {empty[at]:.1f}",
               ratio=through[at], limit=None, unit="")
        for at, what in enumerate(("statements", "commits"))
    ]  # fmt: skip


def _ways(bench: Bench, store: Store) -> Iterator[Callable[[int], object]]:
    """Three ways to do a number of jobs, each while its worker works."""
    done = bench.file()
    os.environ["DONE_FILE"] = str(done)
    with bench.workers(store, 1, done):
        yield lambda count: _do_runs(store, done, count)
    with bench.floor(store, 1, done), psycopg.connect(url_of(store), autocommit=True) as connection:
        yield lambda count: _do_jobs(connection, done, count)
    yield lambda count: [session(store).run_turn(call("note", name="a")) for _ in range(count)]


def _do_runs(store: Store, done: Path, count: int) -> None:
    """One after the other, because transactions of several at once are committed together.

    Without `wait`, which looks at the store too.
    """
    for number in range(count):
        name = f"{secrets.token_hex(4)}/{number}"
        session(store).run_submit(call("note", name=name))
        until(lambda name=name: name in times_in(done, "note"))


def _do_jobs(connection: psycopg.Connection[Any], done: Path, count: int) -> None:
    for number in range(count):
        name = f"{secrets.token_hex(4)}/{number}"
        put(connection, name)
        until(lambda name=name: name in times_in(done, "begin"))


def main() -> int:
    """Prints the figures; 1 if one is not met."""
    found = figures()
    show("A fleet", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
