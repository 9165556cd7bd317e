"""The ledger's part of the path, alone: what is recorded, and what comes back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.invocation.alone import PORTS, entry_of, ready, scope_of
from toolwire.invocation.aside import ASIDE_BYTES
from toolwire.invocation.invoker import Trail
from toolwire.invocation.record import DONE_ALREADY, begin, evidence, is_divergence, recall, reconciled
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.validate import Prepared
from toolwire.runtime.step import step as run
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.effects import Idempotency
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest

CALL = ToolCall("pay", {"amount": 5}, id="r_1", parent="r_0")
STEP = step_of(CALL)
DOUBT = InDoubtStep(idempotent="no", is_composite=False, started_at=90.5, attempt=3, idempotency_key="r_1:r_1:k")


def pay(amount: Any) -> None: ...


async def program(validated: Any, inside: Any) -> Any: ...


class Noting(MemoryLedger):
    """A ledger that answers as it is told and keeps what it was given."""

    def __init__(self, known: ToolResult | InDoubtStep | None = None) -> None:
        super().__init__("r_7")
        self.known = known
        self.recalled: list[Step] = []
        self.starts: list[Start] = []
        self.ends: list[tuple[Step, ToolResult]] = []

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        self.recalled.append(step)
        return self.known

    def begin(self, start: Start) -> Future[float | ToolResult]:
        self.starts.append(start)
        return _at_once(12.5)

    def settle(self, step: Step, result: ToolResult) -> Future[ToolResult]:
        self.ends.append((step, result))
        return _at_once(replace_data(result))


def replace_data(result: ToolResult) -> ToolResult:
    """The result that counts, which the caller must get in place of its own."""
    return result.with_metadata(kept=True)


def _at_once(value: Any) -> Future[Any]:
    future = Future[Any]()
    future.set_result(value)
    return future


class End:
    """The end of a turn that keeps the recorded calls it is told of."""

    name, call_id = "finish", ""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def recall(self, call: ToolCall, result: ToolResult, scope: Any, /) -> None:
        self.told.append((call, result, scope))


# -- recall --


@pytest.mark.parametrize("known", [None, DOUBT], ids=["new", "in doubt"])
@pytest.mark.parametrize("in_run", [None, Run()], ids=["alone", "in a run"])
def test_a_call_is_recalled_as_its_step(known: Any, in_run: Run | None) -> None:
    ledger = Noting(known)
    assert recall(CALL, scope_of(pay, run=in_run), ledger) == (STEP, known)
    assert ledger.recalled == [STEP]


def test_a_call_that_cannot_be_written_down_is_not_run() -> None:
    call = replace(CALL, arguments={"amount": object()})
    assert recall(call, scope_of(pay), Noting()) == ToolResult.failed(
        "invalid_arguments",
        "The arguments of 'pay' cannot be recorded: a value of type object cannot be written as JSON at amount.",
        call=call,
    )


def test_a_recorded_result_is_read_again_by_the_run() -> None:
    result = ToolResult(True, ["https://a.example/1", "https://a.example/2"])
    call = replace(CALL, arguments={"amount": "https://a.example/2"})
    run_of_it, end = Run(), End()
    scope = scope_of(pay, run=run_of_it, options={"labels": ["private"]})
    scope = replace(scope, end=cast("Any", end))
    assert recall(call, scope, Noting(result)) == (step_of(call), result)
    assert (run_of_it.taints, list(run_of_it.urls)) == ({"private"}, ["https://a.example/1"])
    assert end.told == [(call, result, scope)]


@pytest.mark.parametrize("in_run", [None, Run()], ids=["alone", "in a run without an end"])
def test_a_recorded_result_comes_back_without_a_run_and_without_an_end(in_run: Run | None) -> None:
    result = ToolResult(True, 1)
    assert recall(CALL, scope_of(pay, run=in_run), Noting(result)) == (STEP, result)


def stopped() -> Run:
    found = Run()
    found.stopped = "enough"
    return found


def test_no_call_of_a_stopped_run_starts() -> None:
    assert recall(CALL, scope_of(pay, run=stopped()), Noting(None)) == ToolResult.failed(
        "interrupted",
        "'pay' was not run: enough.",
        hint="Make no more calls; tell the user.",
        data={"is_started": False, "is_ended": False, "may_repeat": True},
        call=CALL,
    )


def test_a_call_of_a_stopped_run_that_began_before_is_told_so() -> None:
    assert recall(CALL, scope_of(pay, run=stopped()), Noting(DOUBT)) == ToolResult.failed(
        "unknown_outcome",
        "'pay' began before, and its end is not on record; it was not run again: enough.",
        data={"is_started": True, "is_ended": False, "may_repeat": False},
        call=CALL,
    )


def test_a_recorded_result_of_a_stopped_run_comes_back() -> None:
    result = ToolResult(True, 1)
    assert recall(CALL, scope_of(pay, run=stopped()), Noting(result)) == (STEP, result)


# -- begin --


def begun(
    *, amount: Any = 5, request_id: str = "", composite: Any = None, more: Any = None, **options: Any
) -> tuple[Any, list[Start], Prepared, Scope]:
    """Begins a second attempt at the call. `more` is added to the amount after the canonical form has been made."""
    scope, ledger = scope_of(pay, composite=composite, options=options), Noting()
    prepared = ready(scope, amount=amount)
    prepared.request_id, prepared.attempt = request_id, 2
    if more is not None:
        prepared.canonical(scope)
        cast("list[Any]", prepared.validated.values["amount"]).append(more)
    answer = begin(prepared, STEP, scope, ledger)
    return answer.result(0) if isinstance(answer, Future) else answer, ledger.starts, prepared, scope


def start_of(scope: Scope, arguments: Mapping[str, Any], **more: Any) -> Start:
    return Start(
        **{
            "step": STEP,
            "arguments": arguments,
            "arguments_digest": digest(arguments),
            "tool_digest": entry_of(scope).tool.digest,
            "idempotent": "no",
            "is_composite": False,
            "attempt": 2,
            **more,
        }
    )


def test_a_call_is_begun_with_the_arguments_that_run() -> None:
    answer, starts, prepared, scope = begun()
    assert (answer, starts, prepared.idempotency_key) == (12.5, [start_of(scope, {"amount": 5})], "")


@pytest.mark.parametrize("options", [{"idempotent": "key"}, {"reconcile": lambda key: "unknown"}], ids=["key", "owner"])
def test_a_call_with_a_key_has_the_key_of_its_run_step_and_arguments(options: dict[str, Any]) -> None:
    _, starts, prepared, scope = begun(**options)
    idempotent = options.get("idempotent", "no")
    assert starts == [start_of(scope, {"amount": 5}, idempotent=idempotent, has_key=True)]
    assert prepared.idempotency_key == idempotency_key("r_7", "r_1", digest({"amount": 5}))


def test_a_natural_call_is_not_begun() -> None:
    answer, starts, *_ = begun(idempotent="natural")
    assert (answer, starts) == (None, [])


def test_a_natural_call_that_a_person_approved_is_begun() -> None:
    _, starts, _, scope = begun(idempotent="natural", request_id="a_1")
    assert starts == [start_of(scope, {"amount": 5}, idempotent="natural", request_id="a_1")]


def test_a_composite_is_begun_though_it_is_natural() -> None:
    _, starts, _, scope = begun(idempotent="natural", composite=program)
    assert starts == [start_of(scope, {"amount": 5}, idempotent="natural", is_composite=True)]


@pytest.mark.parametrize(("request_id", "seen"), [("a_1", [5, 6]), ("", [5])], ids=["approved", "unasked"])
def test_only_an_approved_call_is_looked_at_again_before_it_begins(request_id: str, seen: list[int]) -> None:
    _, starts, _, scope = begun(amount=[5], request_id=request_id, more=6)
    assert starts == [start_of(scope, {"amount": seen}, request_id=request_id)]


def test_a_call_without_a_canonical_form_is_begun_with_the_models_own_arguments() -> None:
    _, starts, prepared, _ = begun(amount=b"x")
    given = step_of(prepared.asked).given
    assert (starts[0].arguments, starts[0].arguments_digest) == (given, digest(given))


def test_an_approved_call_without_a_canonical_form_does_not_begin() -> None:
    answer, starts, prepared, _ = begun(amount=b"x", request_id="a_1")
    assert starts == []
    assert answer == ToolResult.failed(
        "invalid_arguments",
        "The arguments of 'pay' cannot be recorded: a value that changes when it is read again from JSON cannot be "
        "written as JSON at amount.",
        call=prepared.call,
    )


# -- settle --


def settled(outcome: Outcome, ledger: Noting, *, given: Any = 5, ports: Any = PORTS) -> Outcome:
    call = replace(CALL, arguments={"amount": given})
    trail = Trail(call, replace(scope_of(pay, ledger=ledger), ports=ports))
    assert run(trail.recall()) is None
    return run(trail.settle(outcome))


class Counting(type(PORTS)):
    """Ports that count the work that leaves the event loop."""

    is_blocking = False
    count = 0

    async def aside(self, function: Callable[[], Any]) -> Any:
        self.count += 1
        return function()


LARGE = "x" * (ASIDE_BYTES + 1)


@pytest.mark.parametrize(
    ("given", "result", "count"),
    [
        (5, ToolResult(True, 1), 0),
        (LARGE, ToolResult(True, 1), 2),
        (5, ToolResult(True, LARGE), 1),
        (5, ToolResult(True, content=(TextBlock(type="text", text=LARGE),)), 1),
        (5, ToolResult.failed("tool_error", LARGE), 1),
    ],
    ids=["small", "arguments, also when it is recalled", "data", "blocks", "error"],
)
def test_a_result_is_recorded_and_the_one_on_record_counts(given: Any, result: ToolResult, count: int) -> None:
    ledger, ports = Noting(), Counting(PORTS.runtime)
    assert settled(result, ledger, given=given, ports=ports) == replace_data(result)
    assert (len(ledger.ends), ports.count) == (1, count)
    assert ledger.ends[0] == (step_of(replace(CALL, arguments={"amount": given})), result)


DIVERGED = ToolResult.failed("divergence", "it went another way")


@pytest.mark.parametrize("outcome", [Pending(call=CALL, request_ids=("a_1",)), DIVERGED], ids=["waits", "diverged"])
def test_a_call_that_waits_or_diverged_is_not_recorded(outcome: Outcome) -> None:
    ledger = Noting()
    assert settled(outcome, ledger) is outcome
    assert ledger.ends == []


def test_only_a_failure_of_that_kind_is_a_divergence() -> None:
    outcomes = [DIVERGED, ToolResult.failed("denied", "no"), ToolResult(True, 1), Pending(call=CALL, request_ids=())]
    assert [is_divergence(outcome) for outcome in outcomes] == [True, False, False, False]


# -- reconciled --


def reconciliation(doubt: InDoubtStep, *, composite: Any = None, **options: Any) -> tuple[Any, int]:
    """What is known of the call in doubt, and the number of its next attempt."""
    scope = scope_of(pay, composite=composite, options=options)
    prepared = ready(scope, amount=5)
    return run(reconciled(prepared, scope, doubt)), prepared.attempt


def test_a_lost_call_is_left_to_a_person() -> None:
    assert reconciliation(DOUBT) == (DOUBT, 1)


def test_a_call_that_waited_for_an_answer_goes_on_as_the_same_attempt() -> None:
    assert reconciliation(replace(DOUBT, is_asking=True)) == (None, 3)


@pytest.mark.parametrize(
    ("composite", "was_composite", "may_run"), [(program, True, True), (program, False, False), (None, True, False)]
)
def test_a_call_that_was_and_is_composite_runs_again(composite: Any, was_composite: bool, may_run: bool) -> None:
    doubt = replace(DOUBT, is_composite=was_composite)
    assert reconciliation(doubt, composite=composite) == ((None if may_run else doubt), 1)


@pytest.mark.parametrize("then", ["no", "key", "natural"])
@pytest.mark.parametrize("now", ["no", "key", "natural"])
def test_a_call_is_repeated_if_both_declarations_allow_it(then: Idempotency, now: Idempotency) -> None:
    doubt = replace(DOUBT, idempotent=then)
    expected = (None, 3) if then == now != "no" else (doubt, 1)
    assert reconciliation(doubt, idempotent=now) == expected


def test_a_call_that_was_done_has_that_as_its_result() -> None:
    keys: list[str] = []
    result, attempt = reconciliation(DOUBT, reconcile=lambda key: keys.append(key) or "done")
    assert (keys, attempt) == (["r_1:r_1:k"], 1)
    assert result == ToolResult(
        True,
        None,
        None,
        {"reconciled": True},
        content=({"type": "text", "text": DONE_ALREADY},),
        call=ToolCall("pay", {"amount": 5}, id="r_1", parent="r_0", raw_text="as written"),
    )


def test_the_owner_of_a_natural_tool_is_not_asked() -> None:
    doubt = replace(DOUBT, idempotent="natural")
    assert reconciliation(doubt, idempotent="natural", reconcile=lambda key: "done") == (None, 3)


@pytest.mark.parametrize(
    ("doubt", "answer", "expected"),
    [
        (replace(DOUBT, has_key=True), "not_done", (None, 4)),
        (replace(DOUBT, idempotent="key"), "not_done", (None, 4)),
        (DOUBT, "not_done", (DOUBT, 1)),
        (replace(DOUBT, idempotent="natural"), "not_done", (replace(DOUBT, idempotent="natural"), 1)),
        (replace(DOUBT, has_key=True), "unknown", (replace(DOUBT, has_key=True), 1)),
        (replace(DOUBT, has_key=True), None, (replace(DOUBT, has_key=True), 1)),
    ],
)
def test_not_done_counts_only_if_the_call_had_a_key(doubt: InDoubtStep, answer: Any, expected: Any) -> None:
    assert reconciliation(doubt, reconcile=lambda key: answer) == expected


def test_an_owner_that_fails_is_logged_and_the_outcome_stays_unknown(caplog: pytest.LogCaptureFixture) -> None:
    def reconcile(key: str) -> str:
        raise ConnectionError(key)

    doubt = replace(DOUBT, has_key=True)
    assert reconciliation(doubt, reconcile=reconcile) == (doubt, 1)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == (
        "toolwire.ledger",
        logging.ERROR,
        "reconcile of 'pay' failed on key r_1:r_1:k",
    )
    assert record.exc_info is not None


def test_the_evidence_tells_the_attempt_its_time_and_its_key() -> None:
    assert evidence(DOUBT) == (
        "this may already have run: attempt 3 began 1970-01-01T00:01:30+00:00, and its end is not on record "
        "(idempotency key r_1:r_1:k)"
    )
