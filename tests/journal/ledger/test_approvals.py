"""Requests and decisions: asked once, decided once, used once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, delete, update

from tests.journal.ledger.test_run_ledger import again, kind
from tests.journal.world import PAID, done, request, start, started, step
from toolwire.journal.database.tables import DECISIONS, REQUESTS, RULES
from toolwire.journal.ledger.forms import encode_form, plain_form
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.deciding import narrow_rule
from toolwire.permission.policy import Rule
from toolwire.vocabulary.values import digest

APPROVE = Decision(verdict="approve", by=Decider(principal="user:1", channel="cli"))


def asked(ledger: RunLedger, **fields: Any) -> ApprovalRequest:
    return done(ledger.ask(request(ledger, **fields)))[0]


def refused(store: Store, request_id: str, decision: Decision) -> DecisionRefused:
    with pytest.raises(DecisionRefused) as error:
        store.decide(request_id, decision)
    return error.value


def test_a_request_is_asked_once_for_each_attempt(store: Store) -> None:
    ledger = started(store)
    first = asked(ledger)
    assert done(ledger.ask(request(ledger))) == (first, None)
    second = asked(ledger, attempt=2)
    assert second != first
    assert store.pending() == [first, second]
    assert store.request(first.id) == (first, None)


def test_a_decision_is_taken_down_whole(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    before = store.clock()
    small = Rule(effect="auto", tool="pay", when=({"path": "/arguments/amount", "op": "<=", "value": 4},), note="small")
    given = Decision(
        verdict="edit",
        arguments={"amount": 4},
        reason="limit is 4",
        by=Decider(principal="user:1", channel="cli", authn="uid"),
        remember=small,
    )
    kept = store.decide(waiting.id, given)
    assert kept == dataclasses.replace(
        given, request_id=waiting.id, at=kept.at, seen_arguments_digest=waiting.arguments_digest
    )
    # The clock of a server is measured again now and then.
    assert before - 1 <= kept.at <= store.clock() + 1
    assert store.request(waiting.id) == (waiting, kept)
    assert done(ledger.ask(request(ledger))) == (waiting, kept)
    assert store.pending() == []
    assert store.rules() == store.rules(ledger.run_id) == [narrow_rule(small, waiting)]
    assert store.rules("r_other") == []


@pytest.mark.threat(5)
def test_a_decision_of_somebody_whom_the_policy_does_not_name_leaves_the_request_waiting(store: Store) -> None:
    waiting = asked(started(store), approvers={"spend": ("boss",)})
    assert store.request(waiting.id) == (waiting, None)
    for verdict in ("approve", "edit"):
        arguments = {"amount": 4} if verdict == "edit" else None
        clerk = Decision(verdict=verdict, arguments=arguments, by=Decider(principal="clerk", channel="cli"))
        error = refused(store, waiting.id, clerk)
        assert (error.code, error.request_id) == ("not_permitted", waiting.id)
    assert store.pending() == [waiting]
    boss = Decision(verdict="approve", by=Decider(principal="boss", channel="cli"))
    assert store.decide(waiting.id, boss).by == boss.by


def test_anybody_may_still_deny(store: Store) -> None:
    waiting = asked(started(store), approvers={"spend": ("boss",)})
    assert store.decide(waiting.id, Decision(verdict="deny", by=Decider(principal="clerk"))).verdict == "deny"


def test_a_rule_of_an_older_store_is_of_the_principal_of_its_run(store: Store) -> None:
    ledger = started(store)
    for key in ("1", "2"):
        waiting = asked(ledger, call_id=key)
        rule = Rule(effect="auto", tool="pay")
        store.decide(waiting.id, Decision(verdict="approve", by=Decider(principal="user:1"), remember=rule))
        kept = narrow_rule(rule, waiting)
        form = {name: value for name, value in plain_form(kept).items() if name not in ("principal", "tenant")}
        rewrite(store, waiting.id, form)
    new = store.rules()[0]
    assert (new.principal, new.tenant) == ("user:1", "")
    forget_request(store, store.rules()[1].id.removeprefix("remembered:"))
    assert [(one.principal, one.tenant) for one in store.rules()] == [("user:1", ""), ("", "")]


def rewrite(store: Store, id: str, form: dict[str, Any]) -> None:
    """Writes a rule in the form of an older version."""
    database = store._database  # pyright: ignore[reportPrivateUsage]
    sealed = database.sealer.seal(encode_form(form), "rules", id)
    database.run(lambda to: to.execute(update(RULES).where(RULES.c.rule_id == id).values(rule=sealed))).result()


def forget_request(store: Store, id: str) -> None:
    def forget(connection: Connection) -> None:
        connection.execute(delete(DECISIONS).where(DECISIONS.c.request_id == id))
        connection.execute(delete(REQUESTS).where(REQUESTS.c.request_id == id))

    store._database.run(forget).result()  # pyright: ignore[reportPrivateUsage]


def test_the_first_decision_counts_and_is_shown_to_the_second(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    first = store.decide(waiting.id, Decision(verdict="deny", reason="no"))
    late = refused(store, waiting.id, APPROVE)
    assert (late.code, late.decided, late.request_id) == ("already_decided", first, waiting.id)
    assert done(ledger.decide(waiting, APPROVE)) == first


def test_one_of_many_concurrent_decisions_wins(opened: Callable[[], Store]) -> None:
    store = opened()
    ledger = started(store)
    waiting = asked(ledger)

    def decide(number: int) -> Decision | None:
        try:
            return store.decide(waiting.id, Decision(verdict="deny", reason=str(number)))
        except DecisionRefused as error:
            return error.decided

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(decide, range(16)))
    assert len({decision.reason for decision in found if decision is not None}) == 1


@pytest.mark.threat(6)
@pytest.mark.parametrize(
    ("decision", "code"),
    [
        (Decision(verdict="approve", request_id="a_other"), "unknown_request"),
        (Decision(verdict="approve", seen_arguments_digest=digest({"amount": 6})), "approval_mismatch"),
        (Decision(verdict="deny", seen_arguments_digest=digest({"amount": 6})), "approval_mismatch"),
        (Decision(verdict="approve", by=Decider(principal="helper")), "not_permitted"),
        (Decision(verdict="edit", arguments={"amount": 1}, by=Decider(principal="helper")), "not_permitted"),
        (Decision(verdict="approve", by=Decider(channel="model")), "not_permitted"),
        (Decision(verdict="approve", remember=Rule(effect="auto", tool="*")), "not_permitted"),
        (Decision(verdict="edit", arguments={"amount": 101}), "invalid_edit"),
        (Decision(verdict="edit", arguments={"amount": "4"}), "invalid_edit"),
        (Decision(verdict="edit", arguments={}), "invalid_edit"),
        (Decision(verdict="edit", arguments={"amount": 4, "to": "me"}), "invalid_edit"),
        (Decision(verdict="edit", arguments={"amount": object()}), "invalid_edit"),
        (Decision(verdict="approve", arguments={"amount": 4}), "invalid_edit"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.verdict,
)
def test_a_decision_that_cannot_count_changes_nothing(store: Store, decision: Decision, code: str) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    assert refused(store, waiting.id, decision).code == code
    # That a model may not decide is for the policy to say, which the path has asked by then.
    if decision.by.channel != "model":
        with pytest.raises(DecisionRefused):
            done(ledger.decide(waiting, decision))
    assert store.pending() == [waiting]
    assert kind(done(ledger.begin(start(step(), request_id=waiting.id)))) == "denied"
    # The control: one that counts lets it run.
    store.decide(waiting.id, APPROVE)
    assert isinstance(done(ledger.begin(start(step(), request_id=waiting.id))), float)


@pytest.mark.parametrize("verdict", ["deny", "stop_run"])
def test_a_model_may_deny_and_the_agent_itself_may_not_even_that(store: Store, verdict: Any) -> None:
    waiting = asked(started(store))
    itself = Decision(verdict=verdict, by=Decider(principal="helper"))
    assert refused(store, waiting.id, itself).code == "not_permitted"
    assert store.decide(waiting.id, Decision(verdict=verdict, by=Decider(channel="model"))).verdict == verdict


def test_an_edit_fetches_no_other_document(store: Store) -> None:
    schema = {"type": "object", "properties": {"amount": {"$ref": "https://example.org/amount.json"}}}
    waiting = asked(started(store), arguments_schema=schema)
    assert refused(store, waiting.id, Decision(verdict="edit", arguments={"amount": 4})).code == "invalid_edit"


def test_a_request_that_expired_or_was_never_asked_is_not_decided(store: Store) -> None:
    ledger = started(store)
    late = asked(ledger, expires_at=time.time() - 1)
    assert refused(store, late.id, APPROVE).code == "expired"
    assert refused(store, "a_none", APPROVE).code == "unknown_request"
    assert store.pending() == []
    with pytest.raises(DecisionRefused):
        store.request("a_none")
    soon = asked(ledger, call_id="2", expires_at=time.time() + 60)
    assert store.pending() == [soon]
    never = asked(ledger, call_id="3", expires_at=0.0)
    assert store.decide(never.id, APPROVE).verdict == "approve"


def test_the_requests_of_a_run_that_ended_wait_no_more(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    done(ledger.finish([PAID]))
    assert store.pending() == []
    assert refused(store, waiting.id, APPROVE).code == "expired"


@pytest.mark.threat(1)
def test_an_approval_is_used_once(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    store.decide(waiting.id, APPROVE)
    done(ledger.begin(start(step(), request_id=waiting.id)))
    done(ledger.settle(step(), PAID))
    for key, attempt, expected in (("1", 1, "unknown_outcome"), ("1", 2, "unknown_outcome"), ("2", 1, "denied")):
        assert kind(done(ledger.begin(start(step(key), request_id=waiting.id, attempt=attempt)))) == expected
    done(ledger.release())
    found = again(store, ledger.run_id)
    assert found.recall(step()).data == PAID.data
    # The control: without the approval's id the next step runs.
    assert isinstance(done(found.begin(start(step("2")))), float)


@pytest.mark.threat(4)
@pytest.mark.parametrize(
    "changed",
    [{"arguments_digest": digest({"amount": 5000})}, {"tool_digest": "sha256:other"}],
    ids=["arguments", "tool"],
)
def test_an_approval_is_for_what_was_shown(store: Store, changed: dict[str, Any]) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    store.decide(waiting.id, APPROVE)
    allowed = start(step(), request_id=waiting.id)
    assert kind(done(ledger.begin(dataclasses.replace(allowed, **changed)))) == "approval_mismatch"
    assert isinstance(done(ledger.begin(allowed)), float)


def test_a_keyed_call_is_sent_again_by_the_approval_that_it_began_with(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    store.decide(waiting.id, APPROVE)
    sent = start(step(), request_id=waiting.id, idempotent="key")
    done(ledger.begin(sent))
    done(ledger.release())
    found = again(store, ledger.run_id)
    assert isinstance(done(found.begin(sent)), float)
    done(found.settle(step(), PAID))
    assert kind(done(found.begin(sent))) == "unknown_outcome"


def test_an_edited_call_runs_once_with_what_the_person_wrote(store: Store) -> None:
    ledger = started(store)
    waiting = asked(ledger)
    store.decide(waiting.id, Decision(verdict="edit", arguments={"amount": 4}))
    edited = dataclasses.replace(
        start(step(), request_id=waiting.id), arguments={"amount": 4}, arguments_digest=digest({"amount": 4})
    )
    assert isinstance(done(ledger.begin(edited)), float)
    assert kind(done(ledger.begin(dataclasses.replace(edited, step=step("2"))))) == "denied"
