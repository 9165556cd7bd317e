"""No list reads a whole table: each question has its index."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journal.plans import grow, plans_of
from tests.journal.world import PAID, done, request, started, step
from toolwire import Caller, Store

SCAN = re.compile(r"(?:SCAN|Seq Scan on) (?:runs|steps|requests|decisions|notes|owners)\b(?!.*INDEX)")
"""A table that is read whole, as both databases say it."""

ANN = Caller(principal="user:1", agent="helper")

QUESTIONS: dict[str, tuple[Callable[[Store], Any], str]] = {
    "runs": (lambda store: store.runs(limit=2), "runs_created_at"),
    "the next runs": (lambda store: store.runs(limit=2, after=store.runs(limit=2).cursor), "runs_created_at"),
    "runs of a tool": (lambda store: store.runs(tool="pay", limit=2), "runs_created_at"),
    "runs of an agent": (lambda store: store.runs(agent="helper", limit=2), "runs_created_at"),
    "runs since": (lambda store: store.runs(tool="none", since=time.time()), "runs_created_at"),
    "held runs": (lambda store: store.runs(is_held=True, limit=2), "runs_held"),
    "runs that wait": (lambda store: store.runs(status="suspended", limit=2), "runs_unfinished"),
    "pending": (lambda store: store.pending(limit=2), "requests_state"),
    "the next pending": (lambda store: store.pending(limit=2, after=store.pending(limit=2).cursor), "requests_state"),
    "pending of a caller": (lambda store: store.pending(caller=ANN, limit=2), "requests_state"),
    "pending of a tool": (lambda store: store.pending(tool="pay", limit=2), "requests_state"),
    "waiting": (lambda store: store.waiting(), "requests_state"),
    "requests": (lambda store: store.requests(limit=2), "requests_created_at"),
    "denied requests": (lambda store: store.requests(state="denied", limit=2), "requests_state"),
    "expired requests": (lambda store: store.requests(state="expired", limit=2), "requests_state"),
    "requests of a run": (lambda store: store.requests("r_1"), "run_id"),
    "calls": (lambda store: store.calls("r_1"), "run_id"),
}


@pytest.fixture
def filled(store: Store) -> Store:
    for number in (1, 2, 3):
        ledger = started(store, f"r_{number}")
        done(ledger.settle(step("1"), PAID))
        done(ledger.ask(request(ledger, call_id="2")))
        done(ledger.ask(request(ledger, call_id="3")))
        done(ledger.release())
    grow(store)
    return store


def test_no_list_scans_a_table(filled: Store) -> None:
    for name, (read, index) in QUESTIONS.items():
        plans = plans_of(filled, read)
        assert plans, name
        scans = [line for plan in plans for line in plan.splitlines() if SCAN.search(line)]
        assert scans == [], name
        assert any(index in plan for plan in plans), (name, plans)


def test_a_scan_would_be_seen(filled: Store) -> None:
    """The control: a question without an index."""

    def read(store: Store) -> None:
        store._database.read(  # pyright: ignore[reportPrivateUsage]
            lambda connection: connection.exec_driver_sql("SELECT start FROM runs WHERE rev = 1").all()
        )

    (plan,) = plans_of(filled, read)
    assert SCAN.search(plan)
