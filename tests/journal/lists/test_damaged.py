"""One damaged row hides no other: lists give it back with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.journal.world import done, request, started
from toolwire import Caller, Decision, DecisionRefused, Store, ToolwireError
from toolwire.approvals import render_request, shown_request

ANN = Caller(principal="ann", tenant="shop")


def damage(store: Store, statement: str) -> None:
    def change(connection: Any) -> None:
        assert connection.exec_driver_sql(statement).rowcount == 1

    store._database.run(change).result()  # pyright: ignore[reportPrivateUsage]


def test_a_damaged_request_is_listed_and_cannot_be_shown_or_decided(store: Store) -> None:
    ledger = started(store)
    for number in (1, 2, 3):
        done(ledger.ask(request(ledger, f"a_{number}", str(number), caller=ANN)))
    damage(store, "UPDATE requests SET request = 'x' WHERE request_id = 'a_2'".replace("'x'", blob(store)))
    for found in (store.pending(), store.pending(ledger.run_id), store.pending(caller=ANN, tool="pay")):
        assert [(one.id, bool(one.damaged)) for one in found] == [("a_1", False), ("a_2", True), ("a_3", False)]
    one = store.pending()[1]
    assert (one.run_id, one.call_id, one.tool, one.caller, one.arguments) == (ledger.run_id, "2", "pay", ANN, {})
    assert one.damaged == (f"requests {ledger.run_id} a_2 was changed in the store, or was written with another key")
    listed = store.requests()
    assert [(info.request.id, info.state, bool(info.damaged)) for info in listed] == [
        ("a_3", "pending", False),
        ("a_2", "pending", True),
        ("a_1", "pending", False),
    ]
    for show in (render_request, shown_request):
        with pytest.raises(ToolwireError, match="a damaged request"):
            show(one)
    with pytest.raises(DecisionRefused) as refused:
        store.decide("a_2", Decision(verdict="approve"))
    assert refused.value.code == "bad_mac"
    # The control: its neighbour can be shown and decided.
    assert "pay" in render_request(store.pending()[0])
    store.decide("a_1", Decision(verdict="approve"))


def test_a_damaged_decision_leaves_the_request_readable(store: Store) -> None:
    ledger = started(store)
    done(ledger.ask(request(ledger, "a_1", "1")))
    store.decide("a_1", Decision(verdict="deny"))
    damage(store, f"UPDATE decisions SET decision = {blob(store)}")
    (info,) = store.requests()
    assert (info.request.damaged, info.request.tool, info.state, info.decision) == ("", "pay", "denied", None)
    assert info.damaged.startswith("decisions a_1 was changed")


def test_a_damaged_run_is_listed_and_cannot_be_opened(store: Store) -> None:
    for name in ("r_1", "r_2", "r_3"):
        done(started(store, name, caller=ANN).release())
    damage(store, f"UPDATE runs SET start = {blob(store)} WHERE run_id = 'r_2'")
    for found in (store.runs(), store.runs(caller=ANN), store.runs(tool="pay")):
        assert [(run.run_id, bool(run.damaged)) for run in found] == [("r_3", False), ("r_2", True), ("r_1", False)]
    run = store.runs()[1]
    assert (run.status, run.caller, run.tools, run.protocol) == ("running", ANN, (), "")
    for read in (store.run, store.reply, lambda name: done(store.reopen(name))):
        with pytest.raises(DecisionRefused) as refused:
            read("r_2")
        assert refused.value.code == "bad_mac"


def blob(store: Store) -> str:
    return "x'00'" if store.url.startswith("sqlite") else "'\\x00'::bytea"


def test_a_damaged_conversation_is_listed_and_has_no_more_turns(store: Store) -> None:
    for name in ("c-1", "c-2"):
        done(started(store, conversation=name, caller=ANN).release())
    damage(store, f"UPDATE conversations SET state = {blob(store)} WHERE conversation = 'c-1'")
    assert [(one.conversation, one.caller, bool(one.damaged)) for one in store.conversations()] == [
        ("c-2", ANN, False),
        ("c-1", Caller(), True),
    ]
    with pytest.raises(DecisionRefused) as refused:
        started(store, conversation="c-1", caller=ANN)
    assert refused.value.code == "bad_mac"
    done(started(store, conversation="c-2", caller=ANN).release())
