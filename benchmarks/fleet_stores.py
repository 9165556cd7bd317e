"""What the parts of a fleet cost: a sweep, a session's rules, a worker at rest, and programs on a runner.

`benchmarks/fleet.py` shows these figures with its own.
"""

from __future__ import annotations

import os
import re
import secrets
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from tests.fleet.app import call, session_for
from tests.fleet.runners import Authority, RunnerProcess
from tests.fleet.workers import WorkerProcess
from tests.journal.postgres import Server

from benchmarks.timing import Figure
from toolwire import Session, ToolRegistry
from toolwire.fleet import ProcrastinateQueue, RemoteRunner, run_go_on
from toolwire.fleet.sweep import Sweep
from toolwire.journal.store import Store
from toolwire.sandbox.limits import Limits

SUSPENDED, RULES = 500_000, 10_000
SWEEP_MS, RULES_LIMIT, WORKER_MB = 5.0, 2.0, 100.0
PROGRAMS = 60
"""The best of so many."""
PROGRAM_MS, CALL_MS, RESULT_MS = 3.0, 0.2, 5.0
_CALLS = 100
_COUNTED = 60
"""Jobs whose statements are counted."""
_STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]+): (\w+)")
_FRAMES = {"BEGIN", "COMMIT", "ROLLBACK"}
"""Statements that only begin and end transactions."""


def figures(server: Server, folder: Path) -> list[Figure]:
    """All of them."""
    os.environ["DONE_FILE"] = str(folder / "stores")
    return [*_sweeps(server), *_rules(server), _at_rest(server, folder), *_programs(folder)]


def cost(server: Server, work: Callable[[int], object]) -> tuple[float, float]:
    """Statements and commits of one of the jobs that `work(count)` does, without those of the same time at rest."""
    work(5)
    statements, commits, seconds = _count(server, lambda: work(_COUNTED))
    idle_statements, idle_commits, idle_s = _count(server, lambda: time.sleep(max(seconds, 10.0)))
    return (
        (statements - idle_statements * seconds / idle_s) / _COUNTED,
        (commits - idle_commits * seconds / idle_s) / _COUNTED,
    )


def _count(server: Server, work: Callable[[], object]) -> tuple[int, int, float]:
    """Statements, without those that frame transactions, writing commits, and seconds."""
    log = server.folder / "log"
    with psycopg.connect(f"host={server.folder} user=tests dbname=postgres", autocommit=True) as connection:
        _log_all(connection, is_on=True)
        commits, size, began = _commits(connection), log.stat().st_size, time.monotonic()
        work()
        after = _commits(connection)
        written, seconds = log.read_bytes()[size:].decode(), time.monotonic() - began
        _log_all(connection, is_on=False)
    words = [word.upper() for word in _STATEMENT.findall(written)]
    return sum(word not in _FRAMES for word in words), after - commits, seconds


def _log_all(connection: psycopg.Connection[Any], *, is_on: bool) -> None:
    connection.execute(f"ALTER SYSTEM SET log_statement = '{'all' if is_on else 'none'}'".encode())
    connection.execute("SELECT pg_reload_conf()")
    # Each process of the server reads it before its next statement.
    time.sleep(0.5)


def _commits(connection: psycopg.Connection[Any]) -> int:
    """A number that goes up with each transaction that writes: those that only read wait for no disk."""
    # The answer of what has ended may come before its last record.
    time.sleep(1)
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert row is not None
    return row[0]


def _new_store(server: Server, stack: ExitStack) -> tuple[Store, ProcrastinateQueue]:
    name = f"s{secrets.token_hex(4)}"
    server.create(name, is_new=True)
    queue = ProcrastinateQueue()
    queue.migrate(server.url(name))
    return stack.enter_context(Store.open(server.url(name), queue=queue)), queue


def _copies(table: str, count: int, **values: str) -> str:
    """The SQL that copies the first row of a table that often, with other values."""
    pairs = ", ".join(f"'{column}', {value}" for column, value in values.items())
    return (
        f"INSERT INTO {table} SELECT copied.* FROM {table} x "
        f"JOIN (SELECT ctid FROM {table} LIMIT 1) one ON x.ctid = one.ctid, generate_series(1, {count}) n, "
        f"LATERAL jsonb_populate_record(x, jsonb_build_object({pairs})) copied"
    )


def _pay(amount: int) -> int:
    """Pays."""
    return amount


def _median_ms(work: Callable[[], object], times: int) -> float:
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - began))
    return statistics.median(taken)


def _sweeps(server: Server) -> list[Figure]:
    """A sweep beside many suspended runs, whose requests expire later, with and without its index."""
    with ExitStack() as stack:
        store, queue = _new_store(server, stack)
        from tests.fleet.app import tools

        run_id = Session(tools(), protocol="openai", store=store).run_submit(call("pay", amount=1))
        assert run_go_on(store, run_id, session_for) == "suspended"
        with psycopg.connect(queue.conninfo, autocommit=True) as connection:
            later = "extract(epoch FROM now()) + 86400 + n"
            connection.execute(
                _copies("runs", SUSPENDED, run_id="x.run_id || n", conversation="'c' || n", ready_at=later).encode()
            )
            connection.execute("VACUUM ANALYZE runs")
            sweep = Sweep(store, queue)
            with_index, trivial = _median_ms(sweep.sweep, 41), _median_ms(lambda: _ask_nothing(connection), 41)
            connection.execute("DROP INDEX runs_ready")
            without = _median_ms(sweep.sweep, 5)
            sweep.close()
    name = f"a sweep beside {SUSPENDED:,} suspended runs"
    return [
        Figure(name=name, ratio=with_index, limit=SWEEP_MS, unit="ms"),
        Figure(name="its floor: four statements that ask nothing", ratio=trivial, limit=None, unit="ms"),
        Figure(name=f"{name}, without the index", ratio=without, limit=None, unit="ms"),
    ]


def _ask_nothing(connection: psycopg.Connection[Any]) -> None:
    for _ in range(4):
        connection.execute("SELECT 1")


def _rules(server: Server) -> list[Figure]:
    """Making a session beside rules that people remembered in other runs and for other principals."""
    from tests.fleet.app import tools

    from toolwire import Decision
    from toolwire.permission.rule import Rule

    with ExitStack() as stack:
        empty, _ = _new_store(server, stack)
        full, queue = _new_store(server, stack)
        run_id = Session(tools(), protocol="openai", store=full).run_submit(call("pay", amount=1))
        run_go_on(full, run_id, session_for)
        request = full.pending(run_id)[0]
        full.decide(request.id, Decision(verdict="approve", remember=Rule(effect="auto", tool="pay", scope="run")))
        run_go_on(full, run_id, session_for)
        with psycopg.connect(queue.conninfo, autocommit=True) as connection:
            of = "x.run_id || n"
            connection.execute(_copies("runs", RULES, run_id=of, conversation="'c' || n").encode())
            connection.execute(_copies("requests", RULES, request_id="x.request_id || n", run_id=of).encode())
            connection.execute(_copies("decisions", RULES, request_id="x.request_id || n").encode())
            whose = {"scope": "CASE n % 2 WHEN 0 THEN 'run' ELSE 'workspace' END", "principal": "'p' || n"}
            connection.execute(_copies("rules", RULES, rule_id="x.rule_id || n", run_id=of, **whose).encode())
            connection.execute("VACUUM ANALYZE")
        made: Mapping[str, list[float]] = {"empty": [], "full": []}
        for _ in range(9):
            for name, store in (("empty", empty), ("full", full)):
                made[name].append(_median_ms(lambda store=store: Session(tools(), protocol="openai", store=store), 5))
    middle = {name: statistics.median(times) for name, times in made.items()}
    return [
        Figure(name=f"Session(store=) beside {RULES:,} rules of other runs, times an empty store",
               ratio=middle["full"] / middle["empty"], limit=RULES_LIMIT),
        Figure(name="Session(store=), with an empty store", ratio=middle["empty"], limit=None, unit="ms"),
    ]  # fmt: skip


def _at_rest(server: Server, folder: Path) -> Figure:
    """Memory of a worker that has run a program, with its fork server, and of nothing else."""
    with ExitStack() as stack:
        store, queue = _new_store(server, stack)
        file = folder / "said-rest"
        environment = {**os.environ, "EFFECTS_FILE": str(folder / "rest")}
        worker = WorkerProcess(queue.conninfo, (), environment, file, app="tests.fleet.till:session_for")
        stack.callback(worker.kill)
        from tests.fleet.till import reply, session

        made = session(1, store)
        made.run_wait(made.run_submit(reply(1, approved=0)), timeout_s=60)
        time.sleep(2)
        memory = sum(_pss_mb(process) for process in _family(worker.process_id))
    return Figure(name="a worker at rest with its fork server", ratio=memory, limit=WORKER_MB, unit="MB")


def _family(process: int) -> list[int]:
    """A process and all below it."""
    below: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        below += [int(text) for text in (task / "children").read_text().split()]
    return [process, *(one for child in below for one in _family(child))]


def _pss_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


def _programs(folder: Path) -> list[Figure]:
    """Programs on a runner of this machine over mutual TLS, beyond those here."""
    authority = Authority(folder, "bench")
    there, here = authority.identity("bench-runner"), authority.identity("bench-host")
    options = ["--cert", str(there.cert), "--key", str(there.key), "--client-ca", str(authority.ca)]
    runner = RunnerProcess(folder / "said-runner", "--listen", "127.0.0.1:0", *options)
    try:
        with RemoteRunner(
            [runner.address], cert=here.cert, key=here.key, ca=authority.ca, trust="kernel+namespaces"
        ) as remote:
            registries = {"local": ToolRegistry(), "remote": ToolRegistry(runner=remote)}
            for registry in registries.values():
                registry.register(_pay, name="pay")
            best = {
                code: _best_ms(registries, code)
                for code in ("1", f"for n in range({_CALLS}):\n    pay(amount=n)", "'x' * 900_000")
            }
    finally:
        runner.kill()
    (one, calls, large) = ({name: times[name] for name in registries} for times in best.values())
    added = [times["remote"] - times["local"] for times in (one, calls, large)]
    return [
        Figure(name="a program over mutual TLS, beyond one here", ratio=added[0], limit=PROGRAM_MS, unit="ms"),
        Figure(name="each of its calls", ratio=(added[1] - added[0]) / _CALLS, limit=CALL_MS, unit="ms"),
        Figure(name="a result of 0.9 MB", ratio=added[2], limit=RESULT_MS, unit="ms"),
        Figure(name="a program here", ratio=one["local"], limit=None, unit="ms"),
    ]


def _best_ms(registries: Mapping[str, ToolRegistry], code: str) -> dict[str, float]:
    best = dict.fromkeys(registries, float("inf"))
    for _ in range(PROGRAMS):
        for name, registry in registries.items():
            began = time.perf_counter()
            result = registry.run_program(code, limits=Limits(output_bytes=2_000_000))
            best[name] = min(best[name], 1e3 * (time.perf_counter() - began))
            assert result.status == "finished", result.error
    return best
