"""Submitted runs are done by workers in other processes, whatever happens to a worker or to the queue."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg

from tests.fleet.app import call, lines, tools
from tests.fleet.workers import WorkerProcess
from tests.patience import PATIENCE_S, until
from toolwire import Caller, Decision, Session
from toolwire.fleet import ProcrastinateQueue
from toolwire.journal.store import Store

Start = Callable[..., WorkerProcess]


def session(store: Store, conversation: str | None = None, **caller: str) -> Session:
    whose = Caller(principal="ann", **caller) if "principal" not in caller else Caller(**caller)
    return Session(tools(), protocol="openai", store=store, conversation=conversation, caller=whose)


def test_a_submitted_run_is_done_by_a_worker(store: Store, start_worker: Start, done_file: Path) -> None:
    start_worker()
    made = session(store)
    run_id = made.run_submit(call("note", name="a"))
    turn = made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert [result.content[0] for result in turn.results] != []
    assert lines(done_file) == ["note a"]
    assert store.run(run_id).status == "finished"


def test_a_decided_run_goes_on(store: Store, start_worker: Start, done_file: Path) -> None:
    start_worker()
    made = session(store)
    run_id = made.run_submit(call("pay", amount=5))
    turn = made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert turn.suspended is not None
    assert lines(done_file) == []
    store.decide(turn.suspended.pending[0].id, Decision(verdict="approve"))
    until(lambda: store.run(run_id).status == "finished")
    assert lines(done_file) == ["pay 5"]


def test_turns_of_one_conversation_run_in_order_on_two_workers(
    store: Store, start_worker: Start, done_file: Path
) -> None:
    made = session(store, "c-1")
    runs = [made.run_submit(call("wait", name=str(number), seconds=0.05)) for number in range(6)]
    for _ in range(2):
        start_worker()
    for run_id in runs:
        made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert lines(done_file) == [f"{what} {number}" for number in range(6) for what in ("begin", "end")]


def test_a_run_without_a_queue_at_its_store_is_found(url: str, start_worker: Start, done_file: Path) -> None:
    start_worker()
    with Store.open(url) as plain:
        made = session(plain)
        made.run_wait(made.run_submit(call("note", name="a")), timeout_s=PATIENCE_S)
    assert lines(done_file) == ["note a"]


def test_the_run_of_a_killed_worker_goes_on_at_another(store: Store, start_worker: Start, done_file: Path) -> None:
    first = start_worker()
    made = session(store)
    run_id = made.run_submit(call("stall", name="a"))
    until(lambda: lines(done_file) == ["begin a"])
    first.kill()
    start_worker()
    made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert lines(done_file) == ["begin a", "begin a", "end a"]


def test_sigterm_waits_for_the_runs_and_takes_nothing_new(store: Store, start_worker: Start, done_file: Path) -> None:
    worker = start_worker("--concurrency", "1")
    made = session(store)
    made.run_submit(call("wait", name="a", seconds=1.0))
    until(lambda: lines(done_file) == ["begin a"])
    later = made.run_submit(call("note", name="b"))
    worker.send(signal.SIGTERM)
    assert worker.wait()[0] == 0
    assert lines(done_file) == ["begin a", "end a"]
    assert store.run(later).status == "queued"


def test_sigterm_gives_up_what_does_not_end_in_the_grace(store: Store, start_worker: Start, done_file: Path) -> None:
    first = start_worker("--grace", "0.2")
    made = session(store)
    run_id = made.run_submit(call("stall", name="a"))
    until(lambda: lines(done_file) == ["begin a"])
    second = start_worker()
    until(lambda: "working" in second.said())
    first.send(signal.SIGTERM)
    assert first.wait()[0] == 0
    made.run_wait(run_id, timeout_s=PATIENCE_S)
    assert lines(done_file) == ["begin a", "begin a", "end a"]
    # The run was given up: one that is left to its lease is taken over.
    assert store.run(run_id).taken_over == 0


def test_a_tenant_with_many_runs_leaves_room_to_others(store: Store, start_worker: Start, done_file: Path) -> None:
    large, small = session(store, tenant="large"), session(store, tenant="small")
    for number in range(6):
        large.run_submit(call("wait", name=f"large {number}", seconds=1.5))
    run_id = small.run_submit(call("note", name="small"))
    start_worker("--per-tenant", "1", "--concurrency", "2")
    small.run_wait(run_id, timeout_s=PATIENCE_S)
    assert sum(line.startswith("end large") for line in lines(done_file)) <= 1


def test_a_session_that_cannot_be_made_is_said_in_one_line_and_others_run(
    store: Store, start_worker: Start, done_file: Path
) -> None:
    worker = start_worker()
    session(store, principal="broken").run_submit(call("note", name="b"))
    made = session(store)
    made.run_wait(made.run_submit(call("note", name="a")), timeout_s=PATIENCE_S)
    until(lambda: "there is no such principal" in worker.said())
    assert "Traceback" not in worker.said()
    assert lines(done_file) == ["note a"]


def test_a_job_that_is_no_run_ends(store: Store, queue: ProcrastinateQueue, start_worker: Start) -> None:
    with queue.engine.begin() as connection:
        queue.put(connection, "no run", conversation="")
    start_worker()
    with psycopg.connect(queue.conninfo, autocommit=True) as connection:
        until(lambda: connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,))


def test_the_health_port_tells_what_waits(store: Store, start_worker: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start_worker("--health", f"127.0.0.1:{port}")
    until(lambda: page(port, "readyz") == (200, "ready\n"))
    assert page(port, "healthz") == (200, "alive\n")
    assert page(port, "other")[0] == 404
    made = session(store)
    made.run_wait(made.run_submit(call("note", name="a")), timeout_s=PATIENCE_S)
    until(lambda: "toolwire_run_seconds_count 1\n" in page(port, "metrics")[1])
    text = page(port, "metrics")[1]
    assert "toolwire_runs_ready 0\n" in text
    assert text.endswith("# EOF\n")


def page(port: int, name: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/{name}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""
