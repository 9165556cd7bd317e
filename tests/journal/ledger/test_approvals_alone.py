"""Requests and decisions: every row that is written, and every answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert, update

from tests.journal.ledger.in_memory import SEALER, InMemory
from toolwire.journal.database.tables import DECISIONS, REQUESTS, RULES, RUNS
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.approvals import encode_decision, encode_request
from toolwire.journal.ledger.asked import AskedRequest
from toolwire.journal.reading.request_list import list_pending
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.deciding import narrow_rule
from toolwire.permission.policy import Rule
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, step_of
from toolwire.vocabulary.values import digest

NOW = 1_800_000_000.0
ADA = Decider(principal="ada", channel="cli", authn="uid")
APPROVE = Decision(verdict="approve", by=ADA)
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}}


@pytest.fixture
def store() -> InMemory:
    found = InMemory()
    found.clock = lambda: NOW
    found.add_run(conversation="c_1")
    return found


def request(number: int = 1, **more: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "id": f"a_{number}",
            "call_id": f"r_1/{number}",
            "tool": "pay",
            "arguments": {"amount": 5},
            "arguments_digest": digest({"amount": 5}),
            "arguments_schema": SCHEMA,
            "tool_digest": "sha256:tool",
            "reasons": ("rule confirm 'pay'",),
            "caller": Caller(principal="eve", agent="clerk"),
            "run_id": "r_1",
            "created_at": NOW - 10,
            "expires_at": NOW + 10,
            **more,
        }
    )


def question(number: int = 1, **more: Any) -> ApprovalRequest:
    schema = {"type": "integer"}
    return request(number, kind="question", question="How many?", answer_schema=schema, arguments={}, **more)


def ask(store: InMemory, asked: ApprovalRequest) -> Any:
    return store.now(lambda connection: approvals.ask(connection, SEALER, asked))


def decide(store: InMemory, request_id: str, decision: Decision, **more: Any) -> Decision:
    return store.now(
        lambda connection: approvals.decide(connection, SEALER, request_id, decision, store.clock(), **more)
    )


def states(store: InMemory) -> list[str]:
    return [row["state"] for row in store.rows(REQUESTS)]


def in_state(store: InMemory, state: str, number: int = 1) -> None:
    row = update(REQUESTS).where(REQUESTS.c.request_id == f"a_{number}").values(state=state)
    store.now(lambda connection: connection.execute(row))


# -- asked --


def test_a_request_is_written_down_whole(store: InMemory) -> None:
    assert ask(store, request(attempt=2)) == (request(attempt=2), None)
    (row,) = store.rows(REQUESTS)
    sealed = row.pop("request")
    assert row == {
        "request_id": "a_1",
        "run_id": "r_1",
        "call_id": "r_1/1",
        "attempt": 2,
        "state": "pending",
        "created_at": NOW - 10,
        "expires_at": NOW + 10,
        "tool": "pay",
        "principal": "eve",
        "agent": "clerk",
        "tenant": "",
    }
    assert store.opened(sealed, "requests", "r_1", "a_1").encode() == encode_request(request(attempt=2))
    assert store.log("kind", "run_id", "subject", "status", "conversation", "principal") == [
        ("request", "r_1", "a_1", "asked", "c_1", "eve")
    ]


def test_a_request_of_a_run_that_the_store_lacks_is_in_no_conversation(store: InMemory) -> None:
    ask(store, request(run_id="r_9"))
    assert store.log("subject", "conversation") == [("a_1", "")]


def test_an_attempt_at_a_call_is_asked_about_once(store: InMemory) -> None:
    ask(store, request())
    assert ask(store, request(2, call_id="r_1/1", tool="other")) == (request(), None)
    kept = decide(store, "a_1", APPROVE)
    assert ask(store, request(2, call_id="r_1/1")) == (request(), kept)
    assert len(store.rows(REQUESTS)) == 1
    assert store.log("kind") == [("request",), ("decision",)]


@pytest.mark.parametrize("other", [{"run_id": "r_2"}, {"call_id": "r_1/7"}, {"attempt": 2}])
def test_another_attempt_call_or_run_has_a_request_of_its_own(store: InMemory, other: dict[str, Any]) -> None:
    ask(store, request())
    new = request(2, **{"call_id": "r_1/1", **other})
    assert ask(store, new) == (new, None)


# -- decided --


def refused(store: InMemory, request_id: str, decision: Decision, **more: Any) -> DecisionRefused:
    with pytest.raises(DecisionRefused) as caught:
        decide(store, request_id, decision, **more)
    return caught.value


def told(error: DecisionRefused) -> tuple[str, str, str]:
    return error.code, str(error), error.request_id


def test_a_decision_is_written_down_whole(store: InMemory) -> None:
    ask(store, request())
    ask(store, request(2))
    rule = Rule(effect="auto", tool="pay", scope="run")
    given = Decision(verdict="approve", by=ADA, remember=rule, reason="fine")
    kept = decide(store, "a_1", given)
    assert kept == replace(given, request_id="a_1", at=NOW, seen_arguments_digest=request().arguments_digest)
    (row,) = store.rows(DECISIONS)
    assert (row["request_id"], row["decided_at"]) == ("a_1", NOW)
    assert store.opened(row["decision"], "decisions", "a_1").encode() == encode_decision(kept)
    (row,) = store.rows(RULES)
    assert (row["rule_id"], row["run_id"], row["created_at"]) == ("a_1", "r_1", NOW)
    assert json.loads(store.opened(row["rule"], "rules", "a_1"))["id"] == "remembered:a_1"
    assert states(store) == ["approved", "pending"]
    assert store.log("kind", "subject", "status", "at", "conversation")[2:] == [
        ("decision", "a_1", "approve", NOW, "c_1")
    ]


def test_a_decision_changes_the_revision_of_its_run_alone(store: InMemory) -> None:
    store.add_run("r_2")
    ask(store, request())
    decide(store, "a_1", APPROVE)
    assert [(row["rev"], row["updated_at"]) for row in store.rows(RUNS)] == [(2, NOW), (1, 1.0)]
    assert store.rows(RULES) == []


def test_a_decision_keeps_the_time_and_the_digest_that_it_has(store: InMemory) -> None:
    ask(store, request(arguments_digest="sha256:x"))
    kept = decide(store, "a_1", Decision(verdict="deny", at=5.0, seen_arguments_digest="sha256:x", request_id="a_1"))
    assert (kept.at, kept.seen_arguments_digest, kept.request_id) == (5.0, "sha256:x", "a_1")
    assert store.rows(DECISIONS)[0]["decided_at"] == NOW


@pytest.mark.parametrize(
    ("asked", "decision", "state"),
    [
        (request(), APPROVE, "approved"),
        (request(), Decision(verdict="edit", arguments={"amount": 4}), "approved"),
        (request(), Decision(verdict="deny"), "denied"),
        (request(), Decision(verdict="stop_run"), "stopped"),
        (question(), Decision(verdict="answer", answer=4), "answered"),
        (question(), Decision(verdict="deny"), "answered"),
        (question(), Decision(verdict="stop_run"), "stopped"),
    ],
)
def test_a_request_has_the_state_of_its_decision(
    store: InMemory, asked: ApprovalRequest, decision: Decision, state: str
) -> None:
    ask(store, asked)
    decide(store, "a_1", decision)
    assert states(store) == [state]


def test_a_request_that_was_never_asked_is_not_decided(store: InMemory) -> None:
    error = refused(store, "a_9", APPROVE)
    assert told(error) == ("unknown_request", "there is no request 'a_9'", "a_9")


@pytest.mark.parametrize(("by", "name"), [(ADA, "ada"), (Decider(), "an unnamed approver")])
def test_a_request_is_decided_once(store: InMemory, by: Decider, name: str) -> None:
    ask(store, request())
    first = decide(store, "a_1", Decision(verdict="deny", by=by))
    error = refused(store, "a_1", APPROVE)
    assert told(error) == ("already_decided", f"request a_1 was decided before: deny by {name}", "a_1")
    assert error.decided == first
    assert states(store) == ["denied"]


@pytest.mark.parametrize(
    ("expires_at", "state", "counts"),
    [
        (NOW - 1, "pending", False),
        (NOW, "pending", True),
        (0.0, "pending", True),
        (NOW + 10, "superseded", False),
    ],
)
def test_a_request_is_decided_while_it_waits(store: InMemory, expires_at: float, state: str, counts: bool) -> None:
    ask(store, request(expires_at=expires_at))
    in_state(store, state)
    if counts:
        assert decide(store, "a_1", APPROVE).verdict == "approve"
    else:
        assert told(refused(store, "a_1", APPROVE)) == ("expired", "request a_1 is no longer waiting", "a_1")


def test_a_decider_is_checked_unless_the_policy_has_checked_it(store: InMemory) -> None:
    ask(store, request())
    model = Decision(verdict="approve", by=Decider(channel="model"))
    assert refused(store, "a_1", model).code == "not_permitted"
    assert decide(store, "a_1", model, is_vetted=True).verdict == "approve"


def test_a_request_is_locked_before_it_is_read(store: InMemory) -> None:
    ask(store, request())
    store.statements.clear()
    decide(store, "a_1", APPROVE)
    sql = "SELECT requests.request_id FROM requests WHERE requests.request_id = ?"
    run = f"SELECT runs.run_id FROM runs WHERE runs.run_id = ({sql.replace('request_id FROM', 'run_id FROM')})"
    # The run first, as all do that change a run and its requests.
    assert store.statements[:2] == [(run, ("a_1",)), (sql, ("a_1",))]


# -- used --


def start(**more: Any) -> Start:
    return Start(
        **{
            "step": step_of(ToolCall("pay", {"amount": 5}, id="r_1/1")),
            "arguments": {"amount": 5},
            "arguments_digest": digest({"amount": 5}),
            "tool_digest": "sha256:tool",
            "idempotent": "no",
            "is_composite": False,
            "request_id": "a_1",
            **more,
        }
    )


def use(store: InMemory, begun: Start, *, is_again: bool = False) -> ToolResult | None:
    return store.now(lambda connection: approvals.use(connection, SEALER, begun, is_again=is_again))


def not_run(kind: Any, why: str, request_id: str = "a_1") -> ToolResult:
    return ToolResult.failed(kind, f"'pay' was not run: {why}.", data={"request_id": request_id})


OTHER_STEP = step_of(ToolCall("pay", {"amount": 5}, id="r_1/2"))
OTHER_DIGEST = digest({"amount": 6})


@pytest.mark.parametrize(
    ("decision", "begun", "expected"),
    [
        (APPROVE, start(), None),
        (APPROVE, start(request_id="a_9"), not_run("denied", "it was approved for another call", "a_9")),
        (APPROVE, start(step=OTHER_STEP), not_run("denied", "it was approved for another call")),
        (None, start(), not_run("denied", "no one approved it")),
        (Decision(verdict="deny"), start(), not_run("denied", "no one approved it")),
        (
            APPROVE,
            start(arguments_digest=OTHER_DIGEST),
            not_run("approval_mismatch", "it was approved with other arguments"),
        ),
        (Decision(verdict="edit", arguments={"amount": 6}), start(arguments_digest=OTHER_DIGEST), None),
        (
            APPROVE,
            start(tool_digest="sha256:x"),
            not_run("approval_mismatch", "the tool has changed since it was approved"),
        ),
    ],
)
def test_an_approval_is_used_by_the_call_that_was_shown(
    store: InMemory, decision: Decision | None, begun: Start, expected: ToolResult | None
) -> None:
    ask(store, request())
    ask(store, request(2))
    if decision is not None:
        decide(store, "a_1", decision)
    before = states(store)
    assert use(store, begun) == expected
    assert states(store) == (["reserved", "pending"] if expected is None else before)


def test_a_request_without_the_digest_of_its_tool_is_for_any_version(store: InMemory) -> None:
    ask(store, request(tool_digest=""))
    decide(store, "a_1", APPROVE)
    assert use(store, start(tool_digest="sha256:x")) is None


USED = not_run("denied", "its approval has already been used")


@pytest.mark.parametrize(
    ("state", "is_again", "expected"),
    [
        ("approved", False, None),
        ("approved", True, None),
        ("reserved", True, None),
        ("reserved", False, USED),
        ("done", True, USED),
        ("done", False, USED),
        ("superseded", True, USED),
    ],
)
def test_an_approval_is_used_once_for_each_begin(
    store: InMemory, state: str, is_again: bool, expected: ToolResult | None
) -> None:
    ask(store, request())
    decide(store, "a_1", APPROVE)
    in_state(store, state)
    assert use(store, start(), is_again=is_again) == expected
    assert states(store) == [state if expected is not None else "reserved"]


def test_the_answers_that_a_tool_receives_are_used(store: InMemory) -> None:
    for number, state in ((1, "answered"), (2, "answered"), (3, "pending"), (4, "answered")):
        ask(store, question(number))
        in_state(store, state, number)
    store.now(lambda connection: approvals.use_answers(connection, ["a_1", "a_2", "a_3"]))
    assert states(store) == ["done", "done", "pending", "answered"]


# -- listed --


def pending(store: InMemory, run_id: str | None) -> list[str]:
    found = store.now(
        lambda one: list_pending(one, SEALER, run_id, NOW, limit=None, after=None, caller=None, tool=None)
    )
    return [one.id for one in found]


def test_the_requests_that_wait_are_listed_oldest_first(store: InMemory) -> None:
    ask(store, request(3, created_at=NOW - 5))
    ask(store, request(2, created_at=NOW - 5))
    ask(store, request(1, created_at=NOW - 1))
    ask(store, request(4, created_at=NOW - 9, run_id="r_2"))
    ask(store, request(5, created_at=NOW - 9, expires_at=NOW - 1))
    ask(store, request(6, created_at=NOW - 8, expires_at=NOW))
    ask(store, request(7, created_at=NOW - 7, expires_at=0.0))
    ask(store, request(8))
    decide(store, "a_8", APPROVE)
    assert pending(store, None) == ["a_4", "a_6", "a_7", "a_2", "a_3", "a_1"]
    assert pending(store, "r_2") == ["a_4"]
    assert store.now(lambda one: approvals.pending(one, SEALER, "r_2", NOW)) == [
        request(4, created_at=NOW - 9, run_id="r_2")
    ]


def test_the_requests_of_a_run_are_described(store: InMemory) -> None:
    ask(store, request(1, created_at=NOW - 5))
    ask(store, question(2, created_at=NOW - 9, expires_at=NOW))
    ask(store, request(3, created_at=NOW - 4, expires_at=NOW - 1))
    ask(store, request(4, created_at=NOW - 3, expires_at=0.0))
    ask(store, request(5, created_at=NOW - 2))
    ask(store, request(6, created_at=NOW - 1))
    ask(store, request(7, run_id="r_2"))
    decide(store, "a_1", APPROVE)
    in_state(store, "reserved", 1)
    in_state(store, "done", 5)
    in_state(store, "superseded", 6)
    found = store.now(lambda one: approvals.requests_of_run(one, SEALER, "r_1", {"r_1/4"}, NOW))

    def described(number: int, asked_at: float, **more: Any) -> AskedRequest:
        return AskedRequest(
            **{
                "id": f"a_{number}",
                "call_id": f"r_1/{number}",
                "asked_at": asked_at,
                "decided_at": 0.0,
                "is_used": False,
                "is_waiting": False,
                "is_question": False,
                **more,
            }
        )

    assert found == (
        described(2, NOW - 9, is_waiting=True, is_question=True),
        described(1, NOW - 5, decided_at=NOW, is_used=True),
        described(3, NOW - 4),
        described(4, NOW - 3, is_used=True, is_waiting=True),
        described(5, NOW - 2, is_used=True),
        described(6, NOW - 1),
    )


@pytest.mark.parametrize(("table", "column"), [(REQUESTS, "request"), (DECISIONS, "decision")])
def test_a_damaged_row_is_found_when_the_requests_of_a_run_are_read(store: InMemory, table: Any, column: str) -> None:
    ask(store, request())
    decide(store, "a_1", APPROVE)
    store.now(lambda connection: connection.execute(update(table).values({column: b"\x01damaged"})))
    with pytest.raises(DecisionRefused) as caught:
        store.now(lambda one: approvals.requests_of_run(one, SEALER, "r_1", (), NOW))
    assert caught.value.code == "bad_mac"


def test_the_requests_of_a_run_that_ended_wait_no_more(store: InMemory) -> None:
    ask(store, request(1))
    ask(store, request(2))
    ask(store, request(3, run_id="r_2"))
    decide(store, "a_2", APPROVE)
    store.now(lambda connection: approvals.supersede(connection, "r_1"))
    assert states(store) == ["superseded", "approved", "pending"]


def test_a_run_is_stopped_by_a_decision_on_one_of_its_requests(store: InMemory) -> None:
    ask(store, request(1))
    ask(store, request(2))
    decide(store, "a_1", Decision(verdict="deny"))
    found = [store.now(lambda one: approvals.is_stopped(one, "r_1"))]
    decide(store, "a_2", Decision(verdict="stop_run"))
    found += [store.now(lambda one, run_id=run_id: approvals.is_stopped(one, run_id)) for run_id in ("r_1", "r_2")]
    assert found == [False, True, False]


def test_a_request_is_found_by_its_id(store: InMemory) -> None:
    ask(store, request(1))
    ask(store, request(2))
    kept = decide(store, "a_2", APPROVE)

    def found(request_id: str) -> Any:
        return store.now(lambda one: approvals.request_and_decision(one, SEALER, request_id))

    assert (found("a_1"), found("a_2"), found("a_3")) == ((request(1), None), (request(2), kept), None)


def test_the_earlier_of_two_times_of_expiry_counts(store: InMemory) -> None:
    """The column is in plain text, so a person with the file could change it."""
    for number, sealed, column in ((1, NOW + 10, NOW + 5), (2, NOW + 10, NOW + 20), (3, 0.0, NOW + 5), (4, NOW, 0.0)):
        ask(store, request(number, expires_at=sealed))
        row = update(REQUESTS).where(REQUESTS.c.request_id == f"a_{number}").values(expires_at=column)
        store.now(lambda connection, row=row: connection.execute(row))
    found = [store.now(lambda one, n=n: approvals.request_and_decision(one, SEALER, f"a_{n}")[0]) for n in range(1, 5)]
    assert [each.expires_at for each in found] == [NOW + 5, NOW + 10, NOW + 5, NOW]


# -- remembered --


def test_the_rules_that_people_kept_are_listed_oldest_first(store: InMemory) -> None:
    rule = Rule(effect="auto", tool="pay")
    for number, now, run_id in ((3, NOW, "r_1"), (1, NOW, "r_1"), (2, NOW - 1, "r_2"), (4, NOW - 2, "r_1")):
        store.clock = lambda now=now: now
        ask(store, request(number, run_id=run_id))
        decide(store, f"a_{number}", replace(APPROVE, remember=rule))
    ask(store, request(5))
    decide(store, "a_5", APPROVE)

    def rules(run_id: str | None) -> list[str]:
        return [found.id for found in store.now(lambda one: approvals.read_rules(one, SEALER, run_id))]

    def decisions(run_id: str | None) -> list[Any]:
        return store.now(
            lambda one: approvals.decisions_with_rules(one, SEALER, () if run_id is None else (run_id,), None)
        )

    in_order = [f"remembered:a_{number}" for number in (4, 2, 1, 3)]
    assert (rules(None), rules("r_2"), rules("r_9")) == (in_order, [in_order[1]], [])
    (kept, *_) = store.now(lambda one: approvals.read_rules(one, SEALER, None))
    assert kept == narrow_rule(rule, request(4))
    # The rule of an approved call counts when the call has begun.
    assert decisions(None) == []
    for number in (1, 2, 3):
        in_state(store, "reserved", number)
    assert [asked.id for asked, _ in decisions(None)] == ["a_2", "a_1", "a_3"]
    assert [asked.id for asked, _ in decisions("r_2")] == ["a_2"]
    ((asked, decision),) = decisions("r_2")
    assert (asked, decision.remember) == (request(2, run_id="r_2"), rule)


def test_a_kept_rule_without_its_decision_is_left_out(store: InMemory) -> None:
    ask(store, request())
    row = insert(RULES).values(rule_id="a_1", run_id="r_1", created_at=NOW, rule=b"")
    store.now(lambda connection: connection.execute(row))
    assert store.now(lambda one: approvals.decisions_with_rules(one, SEALER, (), None)) == []


# -- written --

APPROVAL_FIELDS = {"kind", "question", "answer_schema", "depth", "approvers"}


def test_a_request_for_approval_has_the_form_of_the_first_store() -> None:
    form = json.loads(encode_request(request()))
    assert (form["form"], APPROVAL_FIELDS & form.keys()) == (1, set())
    assert (form["id"], form["arguments"]) == ("a_1", {"amount": 5})


def test_a_question_has_a_form_that_no_older_version_takes_for_an_approval() -> None:
    form = json.loads(encode_request(question()))
    assert (form["form"], APPROVAL_FIELDS & form.keys()) == (3, {"kind", "question", "answer_schema"})


def test_a_request_of_another_catalogue_names_its_approvers() -> None:
    form = json.loads(encode_request(request(depth=1, approvers={"send": ("bob",)})))
    assert (form["depth"], form["approvers"]) == (1, {"send": {"$t": "tuple", "v": ["bob"]}})
    assert form.keys() & {"kind", "question", "answer_schema"} == set()


def test_only_an_answer_has_an_answer_in_its_form() -> None:
    assert "answer" not in json.loads(encode_decision(APPROVE))
    form = json.loads(encode_decision(Decision(verdict="answer", answer=None)))
    assert (form["form"], form["answer"]) == (1, None)
