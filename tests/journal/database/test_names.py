"""An id or a name that no database holds is one that is not there, and never an error without a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolwire import Caller, Decision, Session
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.tools import ArtifactManager
from toolwire.vocabulary.errors import ConfigurationError

HOSTILE = ["\ud800", "r\0", "r_1\udcff", "x" * 300_000]
APPROVAL = Decision(verdict="approve")

LOOKUPS: dict[str, Callable[[Store, str], Any]] = {
    "run": Store.run,
    "calls": Store.calls,
    "reopen": lambda store, name: store.reopen(name).result(),
    "request": Store.request,
    "decide": lambda store, name: store.decide(name, APPROVAL),
    "run_resume": lambda store, name: Session([], store=store).run_resume(name),
    "run_resume, decided": lambda store, name: Session([], store=store).run_resume(
        "r_1", [{"request_id": name, "verdict": "approve"}]
    ),
    "document": Store.document,
    "save_document": lambda store, name: store.save_document(name, {}, version=0),
    "active_groups": lambda store, name: store.active_groups(name, caller=Caller()),
    "runs": lambda store, name: store.runs(conversation=name),
}
LISTS: dict[str, Callable[[Store, str], Any]] = {
    "pending": Store.pending,
    "rules": Store.rules,
    "remembered": Store.decisions_with_rules,
    "log_tree": Store.log_tree,
    "log": lambda store, name: store.log(LogFilter(run_id=name, tool=name, parent=name, principal=name)),
    "runs": lambda store, name: store.runs(caller=Caller(principal=name, agent=name, tenant=name)),
    "artifacts": lambda store, name: ArtifactManager(store, namespace="n").list(),
}


@pytest.mark.threat(60)
@pytest.mark.threat(75)
def test_an_id_that_no_database_holds_is_not_there(store: Store) -> None:
    for name in HOSTILE:
        for lookup in LOOKUPS.values():
            with pytest.raises((DecisionRefused, ConfigurationError)):
                lookup(store, name)
        for listed in LISTS.values():
            assert listed(store, name) == []


def test_a_key_that_no_database_holds_counts_once(store: Store) -> None:
    artifacts = ArtifactManager(store, namespace="n")
    for number, key in enumerate(HOSTILE[:3]):
        for _ in range(2):
            assert artifacts.create(f"a{number}", "text", key=key).version == 1


def double(n: int) -> int:
    """Doubles."""
    return 2 * n


def test_a_caller_that_no_database_holds_keeps_its_runs(store: Store) -> None:
    caller = Caller(principal="ann\ud800", tenant="a\0")
    session = Session([double], store=store, protocol="xml", caller=caller)
    session.run_turn("<double><n>2</n></double>")
    assert [run.caller for run in store.runs(caller=caller)] == [caller]
    assert store.runs(caller=Caller(principal="ann", tenant="a")) == []
