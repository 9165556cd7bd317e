"""Milliseconds that each list of a large store takes: 200,000 rows of the log, 5,000 runs, 500 waiting requests.

`python -m benchmarks.lists` makes the stores on SQLite and PostgreSQL, and fails above the limits.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert
from tests.journal.postgres import running

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, REQUESTS, RUNS, STEPS
from toolwire.journal.ledger.approvals import encode_request
from toolwire.journal.ledger.forms import encode_form, run_form, start_form, step_end_form, tools_text
from toolwire.journal.run import RunStart
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, step_of
from toolwire.vocabulary.values import digest

RUNS_MADE = 5_000
LOG_ROWS = 200_000
WAITING = 500
CALLS = 20
"""Calls of each run."""
PAGE_MS = 10.0
"""At most so many milliseconds for a page."""
COUNT_MS = 50.0
"""At most so many for a count, and for a filter that nothing matches, since a tenth of the runs."""
REPEATS = 15
BEGAN = 1_700_000_000.0
TOOLS = ("pay", "price", "fs/read", "post")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    name: str
    read: Callable[[Store], Any]
    limit_ms: float = PAGE_MS


def questions() -> list[_Question]:
    """What pages and operators ask."""
    ann = Caller(principal="p7", tenant="shop")
    late = BEGAN + RUNS_MADE * 0.9
    return [
        _Question(name="runs()", read=lambda store: store.runs()),
        _Question(name="runs(after=), the next page", read=lambda store: store.runs(after=store.runs(limit=1).cursor)),
        _Question(name="runs(tool=)", read=lambda store: store.runs(tool="post")),
        _Question(name="runs(agent=)", read=lambda store: store.runs(agent="a3")),
        _Question(name="runs(caller=)", read=lambda store: store.runs(caller=ann)),
        _Question(name="runs(status=)", read=lambda store: store.runs(status="suspended")),
        _Question(name="runs(is_held=True)", read=lambda store: store.runs(is_held=True)),
        _Question(name="runs(is_held=False)", read=lambda store: store.runs(is_held=False)),
        _Question(
            name="runs(tool=, since=), none", read=lambda store: store.runs(tool="no", since=late), limit_ms=COUNT_MS
        ),
        _Question(name="run(run_id)", read=lambda store: store.run("r_2500")),
        _Question(name="reply(run_id)", read=lambda store: store.reply("r_2500")),
        _Question(name="calls(run_id)", read=lambda store: store.calls("r_2500")),
        _Question(name="calls(run_id, limit=5)", read=lambda store: store.calls("r_2500", limit=5)),
        _Question(name="pending()", read=lambda store: store.pending()),
        _Question(name="pending(run_id)", read=lambda store: store.pending("r_10")),
        _Question(name="pending(caller=)", read=lambda store: store.pending(caller=ann)),
        _Question(name="pending(tool=)", read=lambda store: store.pending(tool="post")),
        _Question(name="requests()", read=lambda store: store.requests()),
        _Question(name="requests(state=)", read=lambda store: store.requests(state="done")),
        _Question(name="waiting()", read=lambda store: store.waiting(), limit_ms=COUNT_MS),
        _Question(name="size()", read=lambda store: store.size()),
    ]


def fill(store: Store) -> None:
    """Writes the rows, without the ways by which a turn writes them."""
    database = store._database

    def job(connection: Connection) -> None:
        for table, rows in (
            (RUNS, _runs(database.sealer)),
            (STEPS, _steps(database.sealer)),
            (REQUESTS, _requests(database.sealer)),
            (LOG, _log_rows()),
        ):
            _insert(connection, table, rows)

    database.run(job).result(timeout=600)
    analyse(store)


def analyse(store: Store) -> None:
    """Lets the database look at its tables, as a server does by itself."""
    database = store._database
    if database.location.path is None:
        database.run(lambda connection: connection.exec_driver_sql("ANALYZE")).result(timeout=600)


def _insert(connection: Connection, table: Table, rows: Iterator[Mapping[str, Any]]) -> None:
    some: list[Mapping[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == 2_000:
            connection.execute(insert(table), some)
            some.clear()
    if some:
        connection.execute(insert(table), some)


def _caller(number: int) -> Caller:
    return Caller(principal=f"p{number % 50}", agent=f"a{number % 5}", tenant="shop")


def _runs(sealer: Sealer) -> Iterator[dict[str, Any]]:
    for number in range(RUNS_MADE):
        run_id, tool, caller = f"r_{number}", TOOLS[number % 4], _caller(number)
        call = {"name": tool, "arguments": {"amount": 5}, "id": "c", "raw_text": "x" * 60}
        reply = {"thought": "t" * 300, "target": "", "text": "", "calls": [call] * CALLS, "problems": []}
        start = RunStart(run_id=run_id, reply=reply, protocol="xml", caller=caller, tools={tool: digest(tool)},
                         created_at=BEGAN + number)  # fmt: skip
        waits = number % (RUNS_MADE // WAITING) == 0
        yield {
            "run_id": run_id, "status": "suspended" if waits else "finished", "rev": CALLS,
            "created_at": BEGAN + number, "updated_at": BEGAN + number, "expires_at": 0.0, "owner": "", "lease": 1,
            "lease_until": 0.0,
            "start": sealer.seal(encode_form(run_form(start)), "runs", run_id, "start"),
            "outcome": None if waits else b"x" * 2_000, "conversation": f"c{number % 500}",
            "principal": caller.principal, "agent": caller.agent, "tenant": caller.tenant, "tools": tools_text([tool]),
        }  # fmt: skip


def _steps(sealer: Sealer) -> Iterator[dict[str, Any]]:
    for number in range(RUNS_MADE):
        run_id = f"r_{number}"
        for at in range(1, CALLS + 1):
            key = f"{run_id}/{at}"
            step = step_of(ToolCall(TOOLS[number % 4], {"amount": at, "to": "x" * 100}, id=key))
            start = Start(step=step, arguments={"amount": at}, arguments_digest=digest(at), tool_digest=digest("t"),
                          idempotent="no", is_composite=False)  # fmt: skip
            end = step_end_form(step, ToolResult(True, {"paid": at, "text": "y" * 200}))
            moment = BEGAN + number + at / 1_000
            yield {
                "run_id": run_id, "key": key, "started_at": moment, "attempt": 1, "place": at, "ended_at": moment,
                "begun": sealer.seal(encode_form(start_form(start)), "steps", run_id, key, "begun"),
                "ended": sealer.seal(encode_form(end), "steps", run_id, key, "ended"),
            }  # fmt: skip


def _requests(sealer: Sealer) -> Iterator[dict[str, Any]]:
    for number in range(RUNS_MADE):
        run_id, caller, tool = f"r_{number}", _caller(number), TOOLS[number % 4]
        made = BEGAN + number
        one = ApprovalRequest(
            id=f"a_{number:032}", call_id=f"{run_id}/{CALLS + 1}", tool=tool, arguments={"amount": 5, "to": "x" * 100},
            reasons=("rule confirm",), caller=caller, run_id=run_id, tool_digest=digest(tool), created_at=made,
            arguments_digest=digest({"amount": 5}), arguments_schema={"type": "object"},
        )  # fmt: skip
        yield {
            "request_id": one.id, "run_id": run_id, "call_id": one.call_id, "attempt": 1, "created_at": made,
            "state": "pending" if number % (RUNS_MADE // WAITING) == 0 else "done", "expires_at": 0.0, "tool": tool,
            "request": sealer.seal(encode_request(one), "requests", run_id, one.id), "principal": caller.principal,
            "agent": caller.agent, "tenant": caller.tenant,
        }  # fmt: skip


def _log_rows() -> Iterator[dict[str, Any]]:
    for seq in range(1, LOG_ROWS + 1):
        run_id = f"r_{seq * RUNS_MADE // (LOG_ROWS + 1)}"
        yield {
            "seq": seq, "at": BEGAN + seq / 40, "kind": "call", "run_id": run_id, "subject": f"{run_id}/{seq}",
            "tool": TOOLS[seq % 4], "status": "success", "entry": '{"arguments":{}}', "hash": "0" * 64,
            "conversation": "c", "principal": "p", "agent": "a", "tenant": "shop", "parent": "", "duration_s": 0.1,
        }  # fmt: skip


def measure(store: Store) -> list[tuple[_Question, float]]:
    """Returns the fastest of several reads in milliseconds, because other work on the machine only adds to them."""
    found: list[tuple[_Question, float]] = []
    for question in questions():
        took: list[float] = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            question.read(store)
            took.append((time.perf_counter() - began) * 1_000)
        found.append((question, min(took)))
    return found


def urls(folder: Path) -> Iterator[str]:
    """Gives an unused database of each kind."""
    yield f"sqlite:///{folder}/runs.db"
    # A server runs as another user, who must see its folder.
    with running(Path(tempfile.gettempdir()) / f"toolwire-lists-{os.getpid()}", folder / "users") as server:
        server.create("lists")
        yield server.url("lists")


def main() -> int:
    """Prints the figures of SQLite and PostgreSQL. Returns 1 if one is above its limit."""
    is_late = False
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for url in urls(Path(folder)):
            with Store.open(url, key=bytes(32)) as store:
                fill(store)
                found = measure(store)
            print(url.partition(":")[0])
            for question, took_ms in found:
                late = "" if took_ms <= question.limit_ms else f"  above {question.limit_ms:g} ms"
                is_late = is_late or bool(late)
                print(f"  {question.name:<30} {took_ms:7.2f} ms{late}")
    return int(is_late)


if __name__ == "__main__":
    sys.exit(main())
