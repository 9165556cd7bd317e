"""The step that asks a person, alone: the request, the outcome, and what observers and the tracer are told."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from tests.invocation.alone import PORTS, Person, entry_of, ready, scope_of
from toolwire.definition.from_function import from_function
from toolwire.invocation.ask import (
    _answer,
    accepted,
    ask,
    bound_digest,
    decided,
    is_late,
    mismatch,
    new_request,
)
from toolwire.invocation.ports import TimedOut
from toolwire.invocation.scope import Run, Scope
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.policy import Policy, Rule
from toolwire.runtime.step import step
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep
from toolwire.vocabulary.values import digest

NOW = 1_800_000_000.0
ADA = Decider(principal="ada", channel="cli", authn="signed")
ASKS = ("the owner says so", "and a rule")
DOUBT = InDoubtStep(idempotent="no", is_composite=False, started_at=0.0, attempt=3, idempotency_key="k")
CALL = ToolCall("pay", {"amount": 5}, id="r_1", parent="r_0", raw_text="as written")


def pay(amount: int) -> None: ...


def asking(person: Any = None, **more: Any) -> Scope:
    return scope_of(more.pop("function", pay), **{"approver": person, "clock": lambda: NOW, **more})


def outcome(scope: Scope, doubt: InDoubtStep | None = None, **arguments: Any) -> Any:
    return step(ask(ready(scope, **(arguments or {"amount": 5})), ASKS, scope, doubt))


def request(**more: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "id": "a_1",
            "call_id": "r_1",
            "tool": "pay",
            "arguments": {"amount": 5},
            "arguments_digest": digest({"amount": 5}),
            "reasons": (),
            "expires_at": NOW + 10,
            **more,
        }
    )


def unasked(request_id: str, what: str) -> ToolResult:
    """The result of a call that no person decided."""
    return ToolResult.failed(
        "approval_required",
        f"'pay' was not run: a person has to allow it, and {what}.",
        data={"reasons": ["the owner says so", "and a rule"], "request_id": request_id},
        call=CALL,
    )


def in_doubt(what: str, **data: Any) -> ToolResult:
    return ToolResult.failed(
        "unknown_outcome",
        f"'pay' began before, and its end is not on record; it was not run again: {what}.",
        data={**data, "is_started": True, "is_ended": False, "may_repeat": False},
        call=CALL,
    )


def expired(request_id: str) -> ToolResult:
    return ToolResult.failed(
        "approval_expired",
        "'pay' was not run: no decision came in time.",
        data={"request_id": request_id},
        call=CALL,
    )


class Told:
    """An observer of requests and decisions."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def asked(self, request: ApprovalRequest, invocation_id: str, /) -> None:
        self.events.append(("asked", request.id, invocation_id))

    def decided(self, request: ApprovalRequest, decision: Decision, invocation_id: str, /) -> None:
        self.events.append(("decided", request.id, decision, invocation_id))

    def ended(self, record: Any, /) -> None: ...


class Keeping(MemoryLedger):
    """A ledger with an earlier request, and with the decision that counts."""

    def __init__(self, kept: dict[str, Any] | None = None, decision: Decision | None = None) -> None:
        super().__init__("r_7")
        self.kept, self.decision = kept, decision
        self.wanted: list[ApprovalRequest] = []

    def ask(self, request: ApprovalRequest) -> Future[tuple[ApprovalRequest, Decision | None]]:
        self.wanted.append(request)
        future = Future[tuple[ApprovalRequest, Decision | None]]()
        future.set_result((request if self.kept is None else replace(request, **self.kept), self.decision))
        return future


# -- the request --


def test_a_request_has_everything_that_a_person_and_a_policy_need() -> None:
    def pay(amount: int, to: str) -> None: ...

    caller = Caller(principal="eve", agent="clerk")
    scope = asking(
        person := Person(None),
        function=pay,
        caller=caller,
        run_id="r_0",
        run=(run := Run(["untrusted", "private"])),
        options={
            "effects": ["send", "read", "spend"],
            "effects_of": lambda arguments, seen: ["send", "read"] if seen.urls else ["spend"],
        },
        policy=Policy(approvers={"send": ["bob", "ada"]}),
        states=({"to": "Ann"},),
    )
    run.saw(["https://a.example/"])
    tool = entry_of(scope).tool
    tool.bindings.bind("to", state_key="to")
    prepared = ready(scope, amount="5")
    prepared.attempt = 2
    step(ask(prepared, ASKS, scope))
    (found,) = person.asked
    assert found == ApprovalRequest(
        id=found.id,
        call_id="r_1",
        tool="pay",
        arguments={"amount": 5},
        reasons=ASKS,
        caller=caller,
        run_id="r_0",
        parent="r_0",
        attempt=2,
        tool_digest=tool.digest,
        arguments_digest=digest({"amount": 5}),
        bound_digest=digest({"to": "Ann"}),
        given={"amount": "5"},
        effects=("read", "send"),
        taints=("private", "untrusted"),
        arguments_schema=tool.input_schema,
        created_at=NOW,
        expires_at=NOW + REQUEST_LIFE_S,
        approvers={"send": ("ada", "bob")},
    )
    assert prepared.request_id == found.id
    assert re.fullmatch("a_[0-9a-f]{32}", found.id)


def test_a_request_from_another_catalogue_names_its_approvers() -> None:
    policy = Policy(approvers={"send": ["bob", "ada"], "*": ["ada"]})
    scope = asking(person := Person(None), policy=policy, depth=2, ledger=MemoryLedger("r_7"))
    outcome(scope)
    (found,) = person.asked
    assert (found.depth, found.approvers) == (2, {"send": ("ada", "bob"), "*": ("ada",)})
    assert (found.run_id, found.taints, found.given) == ("r_7", (), {})


def test_the_names_are_those_of_the_registry() -> None:
    scope = asking(person := Person(None))
    entry_of(scope).tool.name = "own_name"
    outcome(scope)
    assert person.asked[0].tool == "pay"


def test_an_approver_that_changes_what_it_is_shown_changes_a_copy() -> None:
    def pay(amount: list[int]) -> None: ...

    def approve(request: ApprovalRequest) -> Decision:
        request.arguments["amount"].append(6)
        return Decision(verdict="approve")

    scope = asking(approve, function=pay)
    prepared = ready(scope, amount=[5])
    assert isinstance(step(ask(prepared, ASKS, scope)), Decision)
    assert prepared.canonical(scope) == {"amount": [5]}


def test_the_models_own_arguments_are_left_out_if_json_cannot_hold_them() -> None:
    class Thing:
        def __index__(self) -> int:
            return 5

    scope = asking(person := Person(None))
    prepared = ready(scope, amount=5)
    prepared.call = replace(prepared.call, arguments={"amount": Thing()})
    step(ask(prepared, ASKS, scope))
    assert person.asked[0].given == {}


def test_no_two_requests_have_one_id() -> None:
    scope = asking(Person(None))
    prepared = ready(scope, amount=5)
    fields = {"call_id": "r_1", "arguments": {}, "reasons": ()}
    assert len({new_request(prepared, scope, **fields).id for _ in range(100)}) == 100


def test_the_digest_of_bound_values_leaves_out_those_without_a_json_form() -> None:
    def pay(amount: int, client: object, to: str = "", note: str = "") -> None: ...

    scope = asking(function=pay, states=({"client": object(), "to": "Ann", "note": "hi"},))
    bindings = entry_of(scope).tool.bindings
    bindings.bind("client", state_key="client")
    assert bound_digest(ready(scope, amount=5).validated) == ""
    bindings.bind("to", state_key="to")
    bindings.bind("note", state_key="note")
    assert bound_digest(ready(scope, amount=5).validated) == digest({"to": "Ann", "note": "hi"})


@pytest.mark.parametrize(
    ("doubt", "expected"),
    [
        (None, unasked("", "its arguments cannot be shown")),
        (DOUBT, in_doubt("its arguments cannot be shown", reasons=["the owner says so", "and a rule"], request_id="")),
    ],
)
def test_a_call_that_cannot_be_shown_is_not_run(
    doubt: Any, expected: ToolResult, caplog: pytest.LogCaptureFixture
) -> None:
    def pay(amount: Any) -> None: ...

    thing = object()
    scope = asking(person := Person("approve"), function=pay)
    call = replace(CALL, arguments={"amount": thing})
    assert (outcome(scope, doubt, amount=thing), person.asked) == (replace(expected, call=call), [])
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == (
        "toolwire.approval",
        logging.ERROR,
        "call r_1 cannot be shown to an approver; it was not run",
    )
    assert record.exc_info is not None


# -- the outcome --


def test_a_decision_that_counts_is_told_remembered_and_returned() -> None:
    events: list[Any] = []
    rule = Rule(effect="auto", tool="pay", scope="workspace")
    person = Person("approve", by=ADA, remember=rule, meanwhile=lambda: events.append("thinks"))
    scope = asking(person, observers=(Told(events),), run_id="r_0", caller=Caller(agent="clerk"))
    decision = outcome(scope)
    request_id = person.asked[0].id
    assert decision == Decision(
        verdict="approve",
        request_id=request_id,
        by=ADA,
        at=NOW,
        remember=rule,
        seen_arguments_digest=person.asked[0].arguments_digest,
    )
    assert events == [("asked", request_id, "r_0"), "thinks", ("decided", request_id, decision, "r_0")]
    (kept,) = scope.policy.remembered
    assert (kept.id, kept.agent, kept.tool_digest) == (
        f"remembered:{request_id}",
        "clerk",
        entry_of(scope).tool.digest,
    )


def test_a_decision_is_recorded_before_it_counts() -> None:
    ledger = MemoryLedger("r_7")
    decision = outcome(asking(Person("approve", by=ADA), ledger=ledger))
    assert ledger.story == [("ask", "r_1"), ("decide", "r_1")]
    (asked,) = ledger.records.requests.values()
    assert asked.decision == decision


def test_a_decision_on_record_counts_without_asking_again() -> None:
    events: list[Any] = []
    rule = Rule(effect="auto", tool="pay", scope="workspace")
    kept = Decision(verdict="approve", request_id="a_1", by=ADA, at=5.0, remember=rule)
    ledger = Keeping({"id": "a_1", "expires_at": NOW - 1}, kept)
    scope = asking(person := Person("deny"), ledger=ledger, observers=(Told(events),), run_id="r_0")
    prepared = ready(scope, amount=5)
    assert step(ask(prepared, ASKS, scope)) == kept
    assert (person.asked, prepared.request_id) == ([], "a_1")
    assert events == [("decided", "a_1", kept, "r_0")]
    assert [rule.id for rule in scope.policy.remembered] == ["remembered:a_1"]


def test_a_decision_on_record_that_this_policy_does_not_accept_is_a_denial() -> None:
    kept = Decision(verdict="approve", request_id="a_1", by=ADA, at=5.0)
    scope = asking(ledger=Keeping({"id": "a_1"}, kept), policy=Policy(approvers={"*": ["bob"]}))
    reason = "the decision does not count: 'ada' is not among those who may approve any call"
    assert outcome(scope) == replace(kept, verdict="deny", reason=reason)


@pytest.mark.parametrize(
    "changed",
    [{"tool": "other"}, {"arguments_digest": "sha256:0"}, {"tool_digest": "sha256:0"}, {"bound_digest": "sha256:0"}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_request_on_record_is_for_the_same_call_alone(changed: dict[str, Any]) -> None:
    scope = asking(person := Person("approve"), ledger=Keeping({"id": "a_1", **changed}))
    assert outcome(scope) == mismatch(CALL, "a_1")
    assert person.asked == []


def test_a_request_on_record_is_asked_about_as_it_was() -> None:
    ledger = Keeping({"reasons": ("then",), "created_at": 1.0})
    outcome(asking(person := Person(None), ledger=ledger))
    (wanted,) = ledger.wanted
    assert person.asked == [replace(wanted, reasons=("then",), created_at=1.0)]


@pytest.mark.parametrize(
    ("doubt", "expected"), [(None, expired("a_1")), (DOUBT, in_doubt("no decision came in time", request_id="a_1"))]
)
def test_a_request_on_record_that_has_expired_is_not_asked_about(doubt: Any, expected: ToolResult) -> None:
    scope = asking(person := Person("approve"), ledger=Keeping({"id": "a_1", "expires_at": NOW - 1}))
    assert (outcome(scope, doubt), person.asked) == (expected, [])


@pytest.mark.parametrize("doubt", [None, DOUBT])
@pytest.mark.parametrize("can_suspend", [True, False])
def test_a_request_that_expires_while_nobody_answers_does_not_wait_on(doubt: Any, can_suspend: bool) -> None:
    def later() -> None:
        nonlocal now
        now += REQUEST_LIFE_S + 1

    now = NOW
    scope = asking(person := Person(None, meanwhile=later), clock=lambda: now, can_suspend=can_suspend)
    found = outcome(scope, doubt)
    request_id = person.asked[0].id
    late = in_doubt("no decision came in time", request_id=request_id)
    assert found == (expired(request_id) if doubt is None else late)


@pytest.mark.parametrize("doubt", [None, DOUBT])
def test_a_call_without_an_answer_waits_if_the_run_can_be_suspended(doubt: Any) -> None:
    scope = asking(person := Person(None), can_suspend=True)
    assert outcome(scope, doubt) == Pending(call=CALL, request_ids=(person.asked[0].id,))


def test_a_call_without_an_answer_does_not_run() -> None:
    events: list[Any] = []
    scope = asking(person := Person(None), observers=(Told(events),))
    found = outcome(scope)
    request_id = person.asked[0].id
    assert (found, events) == (unasked(request_id, "no answer came"), [("asked", request_id, "r_1")])
    reasons = ["the owner says so", "and a rule"]
    found = outcome(scope, DOUBT)
    assert found == in_doubt("no answer came", reasons=reasons, request_id=person.asked[1].id)


CHANGES: dict[str, Callable[[Scope, dict[str, Any], list[int]], object]] = {
    "the arguments": lambda scope, state, amount: amount.append(6),
    "an argument that JSON cannot hold": lambda scope, state, amount: amount.append(object()),  # pyright: ignore
    "the bound value": lambda scope, state, amount: state["to"].append("Eve"),
    "the function": lambda scope, state, amount: setattr(entry_of(scope).tool, "function", print),
    "the tool": lambda scope, state, amount: setattr(entry_of(scope).tool, "permission", "auto"),
}


@pytest.mark.parametrize("name", [*CHANGES, "another tool", "nothing"])
@pytest.mark.parametrize("verdict", ["approve", "edit", "deny"])
def test_a_call_that_is_not_as_it_was_shown_does_not_run(name: str, verdict: Any) -> None:
    """A denial needs no such care. The permission is no part of what was shown."""
    given: list[Any] = [5]

    def pay(amount: Any, to: list[str]) -> None: ...

    def other(amount: Any, to: list[str], more: int = 0) -> None: ...

    def change() -> None:
        if name == "another tool":
            kept = entry_of(scope).tool.function
            entry_of(scope).tool = from_function(other, name="pay")
            entry_of(scope).tool.bindings.bind("to", state_key="to")
            entry_of(scope).tool.function = kept
        elif name != "nothing":
            CHANGES[name](scope, state, prepared.validated.values["amount"])  # pyright: ignore

    state = {"to": ["Ann"]}
    person = Person(verdict, meanwhile=change, **({"arguments": {"amount": [4]}} if verdict == "edit" else {}))
    scope = asking(person, function=pay, states=(state,))
    entry_of(scope).tool.bindings.bind("to", state_key="to")
    prepared = ready(scope, amount=given)
    found = step(ask(prepared, ASKS, scope))
    if verdict == "deny" or name in ("nothing", "the tool"):
        assert isinstance(found, Decision)
    else:
        assert found == ToolResult.failed(
            "approval_mismatch",
            "'pay' was not run: the tool or its arguments have changed since approval was requested.",
            data={"request_id": person.asked[0].id},
            call=prepared.call,
        )


@pytest.mark.parametrize(
    ("expires_at", "late"), [(NOW - 1, True), (NOW, False), (NOW + 1, False), (0.0, False), (-1.0, True)]
)
def test_a_request_is_late_after_its_time(expires_at: float, late: bool) -> None:
    assert is_late(request(expires_at=expires_at), asking()) is late


# -- the answer --


def answer_of(scope: Scope, asked: ApprovalRequest | None = None, ledger: Any = None) -> tuple[Decision | None, str]:
    return step(decided(asked or request(), scope, ledger))


def as_counted(**more: Any) -> Decision:
    seen = digest({"amount": 5})
    return Decision(**{"verdict": "approve", "request_id": "a_1", "at": NOW, "seen_arguments_digest": seen, **more})


def test_without_an_approver_no_answer_comes() -> None:
    assert answer_of(asking(), ledger=Keeping()) == (None, "no answer came")


def test_an_approver_may_give_no_answer() -> None:
    assert answer_of(asking(Person(None)), ledger=Keeping()) == (None, "no answer came")


@pytest.mark.parametrize(
    ("given", "by"),
    [
        ({"by": ADA}, ADA),
        ({}, Decider(channel="callback")),
        (
            {"by": Decider(principal="ada", authn="signed")},
            Decider(principal="ada", channel="callback", authn="signed"),
        ),
    ],
)
@pytest.mark.parametrize("at", [0.0, 5.0])
@pytest.mark.parametrize("named", [True, False])
def test_a_decision_is_completed(given: dict[str, Any], by: Decider, at: float, named: bool) -> None:
    names = {"request_id": "a_1", "seen_arguments_digest": digest({"amount": 5})} if named else {}
    scope = asking(Person("deny", reason="no", at=at, **given, **names))
    assert answer_of(scope) == (as_counted(verdict="deny", reason="no", by=by, at=at or NOW), "")


class Deciding(MemoryLedger):
    """A ledger that records another decision than the one it is given, or refuses it."""

    def __init__(self, kept: Decision | DecisionRefused) -> None:
        super().__init__()
        self.kept = kept
        self.given: list[Any] = []

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        self.given.append((request, decision))
        future = Future[Decision]()
        if isinstance(self.kept, Decision):
            future.set_result(self.kept)
        else:
            future.set_exception(self.kept)
        return future


FIRST = Decision(verdict="deny", reason="I was first", request_id="a_1", by=Decider(principal="bob", channel="cli"))


def test_the_decision_on_record_counts() -> None:
    ledger = Deciding(FIRST)
    assert answer_of(asking(Person("approve", by=ADA)), ledger=ledger) == (FIRST, "")
    assert ledger.given == [(request(), as_counted(by=ADA))]


@pytest.mark.parametrize("approvers", [{}, {"*": ["ada"]}], ids=["accepted", "not accepted"])
def test_the_first_decision_counts_if_this_one_comes_too_late(approvers: Any) -> None:
    first = replace(FIRST, verdict="approve", reason="")
    refused = DecisionRefused("already_decided", "it was decided before", decided=first)
    scope = asking(Person("approve", by=ADA), policy=Policy(approvers=approvers))
    found = answer_of(scope, ledger=Deciding(refused))
    assert found == (accepted(first, request(), scope), "it was decided before")
    assert found[0] is not None
    assert found[0].verdict == ("deny" if approvers else "approve")


def test_a_decision_that_the_ledger_refuses_is_none() -> None:
    refused = DecisionRefused("expired", "the request has expired")
    assert answer_of(asking(Person("approve")), ledger=Deciding(refused)) == (None, "the request has expired")


def test_a_recorded_decision_that_this_policy_does_not_accept_is_a_denial(caplog: pytest.LogCaptureFixture) -> None:
    scope = asking(policy=Policy(approvers={"*": ["bob"]}))
    rule = Rule(effect="auto", tool="pay")
    decision = as_counted(by=ADA, remember=rule)
    refusal = "'ada' is not among those who may approve any call"
    assert accepted(decision, request(), scope) == as_counted(
        verdict="deny", by=ADA, reason=f"the decision does not count: {refusal}"
    )
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == (
        "toolwire.approval",
        logging.WARNING,
        f"the decision on call r_1 does not count: {refusal}",
    )
    assert accepted(decision, request(), asking()) is decision


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "another request": (
        {"request_id": "a_2"},
        {},
        "unknown_request",
        "the decision is for another request, 'a_2'",
    ),
    "other arguments": (
        {"seen_arguments_digest": "sha256:0"},
        {},
        "approval_mismatch",
        "the decision is for other arguments than these",
    ),
    "late": ({}, {"expires_at": NOW - 1}, "expired", "the decision came after the request had expired"),
    "the asking agent": (
        {"by": Decider(principal="clerk")},
        {"caller": Caller(agent="clerk")},
        "not_permitted",
        "'clerk' is the agent that asked, and cannot approve its own request",
    ),
    "a verdict of the other kind": (
        {},
        {"kind": "question"},
        "invalid_answer",
        (
            "request a_1 is a question, and the verdict is 'approve': write verdict='answer' with answer=... or 'deny' "
            "or 'stop_run'"
        ),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_that_does_not_fit_the_request_is_refused(name: str) -> None:
    more, asked, code, message = REFUSED[name]
    scope = asking(Person("approve", **more))
    assert answer_of(scope, request(**asked)) == (None, message)
    assert scope.approver is not None
    with pytest.raises(DecisionRefused) as caught:
        step(_answer(request(**asked), scope.approver, scope))
    assert (caught.value.code, str(caught.value)) == (code, message)


def test_a_policy_sees_the_channel_that_was_filled_in() -> None:
    class Seeing(Policy):
        def refuses(self, decision: Decision, request: ApprovalRequest) -> str | None:
            return f"it came by {decision.by.channel} on {request.id}"

    assert answer_of(asking(Person("approve"), policy=Seeing())) == (None, "it came by callback on a_1")


@pytest.mark.parametrize("given", [True, ValueError("no terminal")], ids=repr)
def test_an_approver_that_breaks_is_logged(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    def approve(request: ApprovalRequest) -> Any:
        if isinstance(given, Exception):
            raise given
        return given

    assert answer_of(asking(approve)) == (None, "asking failed")
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == (
        "toolwire.approval",
        logging.ERROR,
        "asking for approval of call r_1 failed; it was not run",
    )
    assert record.exc_info is not None
    expected = "an approver must return a Decision or None, not True" if given is True else "no terminal"
    assert str(record.exc_info[1]) == expected


# -- the wait --


class Tracing:
    """A tracer of waits that is its own span."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def approval(self, tool: str, request_id: str) -> Tracing:
        self.events.append(("began", tool, request_id))
        return self

    def ended(self, verdict: str, /) -> None:
        self.events.append(("ended", verdict))


def fails(request: ApprovalRequest) -> Decision:
    raise ValueError


@pytest.mark.parametrize(
    ("person", "verdict"),
    [(Person("deny", by=ADA), "deny"), (Person(None), ""), (fails, "")],
    ids=["no", "none", "bug"],
)
def test_a_tracer_measures_the_wait_however_it_ends(person: Any, verdict: str) -> None:
    tracing = Tracing()
    scope = asking(person, tracer=tracing)
    decision, what_happened = answer_of(scope)
    assert tracing.events == [("began", "pay", "a_1"), ("ended", verdict)]
    assert decision == (as_counted(verdict="deny", by=ADA) if verdict else None)
    assert what_happened == ("asking failed" if person is fails else "" if verdict else "no answer came")


class Limiting(type(PORTS)):
    """Ports as of an event loop, which keep the limit of a wait, or run out of time."""

    is_blocking = False

    def __init__(self, *, is_late: bool = False) -> None:
        super().__init__(PORTS.runtime)
        self.is_late = is_late
        self.limits: list[Any] = []

    async def finish(self, work: Any, limit_s: float | None, pauses: Any = None) -> Any:
        self.limits.append(limit_s)
        if self.is_late:
            work.close()
            raise TimedOut(limit_s or 0.0, stopped=True)
        return await work


def limited(ports: Limiting, deadline: float | None) -> tuple[tuple[Decision | None, str], list[ApprovalRequest]]:
    scope = replace(asking(person := Person("deny", by=ADA), deadline=deadline), ports=ports)
    return answer_of(scope), person.asked


def test_a_wait_ends_with_the_time_of_the_run() -> None:
    ports = Limiting()
    began = time.monotonic()
    found = limited(ports, began + 1_000)
    took = time.monotonic() - began
    assert found == ((as_counted(verdict="deny", by=ADA), ""), [request()])
    (limit_s,) = ports.limits
    assert 1_000 - took <= limit_s <= 1_000


def test_no_time_is_left_after_the_deadline_of_the_run() -> None:
    ports = Limiting(is_late=True)
    assert limited(ports, time.monotonic() - 10) == ((None, "no answer came"), [])
    assert ports.limits == [0.0]


@pytest.mark.parametrize(("is_blocking", "deadline"), [(False, None), (True, 0.0)])
def test_a_wait_without_a_deadline_or_an_event_loop_has_no_limit(is_blocking: bool, deadline: float | None) -> None:
    ports = Limiting()
    ports.is_blocking = is_blocking
    assert limited(ports, deadline) == ((as_counted(verdict="deny", by=ADA), ""), [request()])
    assert ports.limits == []
