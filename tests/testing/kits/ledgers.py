"""A conformance kit for ledgers: the guarantees of a run's records, now and after a restart."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from toolwire.invocation.ports.ports import Ledger
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.testing.checks import holds, run_checks
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.effects import Idempotency
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest

T = TypeVar("T")

WAIT_S = 20.0
"""Seconds allowed for one write. A slow database needs less, and a ledger that hangs is noticed."""

OpenLedger = Callable[[], Ledger]
"""Opens the ledger of one run: the first time as a new run, later as the next process finds it. The earlier ledger is
not used after that.
"""

MakeLedger = Callable[[], OpenLedger]
"""Creates a new run and returns the function that opens its ledger."""


def check_ledger(make_ledger: MakeLedger) -> None:
    """Runs every check of `LEDGER_CHECKS`.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(LEDGER_CHECKS, make_ledger)


def _knows_nothing_new(make: MakeLedger) -> None:
    known = make()().recall(_step())
    holds(known is None, f"a step that nobody made before is known as {known!r}")


def _remembers_how_a_step_ended(make: MakeLedger) -> None:
    for result in (ToolResult(True, {"receipt": [1, "é"]}), ToolResult.failed("tool_error", "no money")):
        opening = make()
        ledger, step = opening(), _step()
        _begun(ledger, _start(step))
        _done(ledger.settle(step, result))
        for when, one in (("at once", ledger), ("after a restart", opening())):
            known = one.recall(step)
            seen = (known.success, known.data, known.error) if isinstance(known, ToolResult) else known
            wanted = (result.success, result.data, result.error)
            holds(seen == wanted, f"{when}, a step that ended with {wanted!r} is known as {seen!r}")


def _doubts_what_never_ended(make: MakeLedger) -> None:
    kinds: tuple[Idempotency, ...] = ("no", "key")
    for idempotent in kinds:
        opening = make()
        ledger, step = opening(), _step()
        started_at = _begun(ledger, _start(step, idempotent=idempotent, attempt=2))
        known = opening().recall(step)
        wanted = InDoubtStep(
            idempotent=idempotent,
            is_composite=False,
            started_at=started_at,
            attempt=2,
            idempotency_key=idempotency_key(ledger.run_id, step.key, digest(_ARGUMENTS)),
        )
        holds(known == wanted, f"a step that was begun and never ended is known as {known!r} instead of {wanted!r}")


def _an_interrupted_step_is_in_doubt(make: MakeLedger) -> None:
    opening = make()
    ledger, step = opening(), _step()
    _begun(ledger, _start(step))
    ledger.abandon(step)
    for when, one in (("at once", ledger), ("after a restart", opening())):
        known = one.recall(step)
        holds(isinstance(known, InDoubtStep), f"{when}, a step that was interrupted is known as {known!r}")


def _another_digest_has_no_result(make: MakeLedger) -> None:
    for other in (_step(amount=6), _step(tool="refund")):
        opening = make()
        ledger, step = opening(), _step()
        _begun(ledger, _start(step))
        _done(ledger.settle(step, ToolResult(True, "paid")))
        ledger = opening()
        kinds = [_kind(ledger.recall(one)) for one in (other, step)]
        said = "a step that differs from its record, and every one after it, is to fail as divergence"
        holds(kinds == ["divergence"] * 2, f"{said}; these were {kinds}")


def _a_step_is_not_begun_twice_at_once(make: MakeLedger) -> None:
    ledger, step = make()(), _step()
    _begun(ledger, _start(step))
    again = _done(ledger.begin(_start(step)))
    holds(isinstance(again, ToolResult) and not again.success, "a step that runs was begun once more")


def _a_composite_began_the_first_time(make: MakeLedger) -> None:
    opening = make()
    step = _step(tool="code_execution")
    first = _begun(opening(), _start(step, is_composite=True))
    second = _begun(opening(), _start(step, is_composite=True, attempt=2))
    holds(first == second, f"a composite that is entered again began at {second}, the first time at {first}")


def _asks_once(make: MakeLedger) -> None:
    opening = make()
    first, second = _request(), _request()
    ledger = opening()
    kept = [_asked(ledger, first), _asked(ledger, second), _asked(opening(), second)]
    holds(kept == [(first.id, None)] * 3, f"one attempt at one call has the requests {kept}, and one was made")


def _the_first_decision_counts(make: MakeLedger) -> None:
    opening = make()
    ledger, request = opening(), _request()
    _asked(ledger, request)
    counts = [_decided(ledger, request, verdict) for verdict in ("deny", "approve")]
    holds(counts == ["deny", "deny"], f"decided deny, then approve: what counted was {counts}")
    kept = _asked(opening(), request)
    holds(kept == (request.id, "deny"), f"after a restart the request that was denied is {kept}")


def _one_of_many_decisions_counts(make: MakeLedger) -> None:
    ledger, request = make()(), _request()
    _asked(ledger, request)
    verdicts = ["approve", "deny"] * 8
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(_decided, ledger, request, verdict) for verdict in verdicts]
    counted = {answer.result() for answer in answers}
    holds(len(counted) == 1, f"decided from several threads at once, {sorted(counted)} all counted")


def _what_was_never_asked_cannot_be_decided(make: MakeLedger) -> None:
    ledger = make()()
    try:
        decision = _done(ledger.decide(_request(), Decision(verdict="approve", request_id="a_nothing")))
    except DecisionRefused:
        return
    holds(False, f"a request that was never asked was decided: {decision!r}")


def _an_approval_is_used_once(make: MakeLedger) -> None:
    opening = make()
    ledger, step, request = opening(), _step(), _request()
    _asked(ledger, request)
    _decided(ledger, request, "approve")
    _begun(ledger, _start(step, request_id=request.id))
    _done(ledger.settle(step, ToolResult(True, "paid")))
    for when, one in (("at once", ledger), ("after a restart", opening())):
        again = _done(one.begin(_start(_step(key=f"2 {when}"), request_id=request.id)))
        holds(isinstance(again, ToolResult) and not again.success, f"{when}, one approval let a second step begin")


def _what_ended_is_given_in_its_order(make: MakeLedger) -> None:
    opening = make()
    ledger = opening()
    steps = [_step(key=f"1/{number}", parent="1") for number in (1, 2, 3)]
    for step in (*steps, _step(key="9")):
        _begun(ledger, _start(step))
    for step in (steps[2], _step(key="9"), steps[0]):
        _done(ledger.settle(step, ToolResult(True, step.key)))
    for when, one in (("at once", ledger), ("after a restart", opening())):
        seen = [(step.key, result.data) for step, result in one.steps_below("1")]
        holds(seen == [("1/3", "1/3"), ("1/1", "1/1")], f"{when}, the steps below one that ended are {seen}")


def _notes_are_kept_in_order(make: MakeLedger) -> None:
    opening = make()
    ledger, step = opening(), _step()
    entries = [{"ordinal": number, "nested": [{"é": None}]} for number in (1, 2, 3)]
    for entry in entries:
        ledger.note("1", entry)
    ledger.note("2", {"other": True})
    # A note is durable no later than the next record.
    _begun(ledger, _start(step))
    for when, one in (("at once", ledger), ("after a restart", opening())):
        seen = [dict(entry) for entry in one.notes("1")]
        holds(seen == entries, f"{when}, the notes {entries} are {seen}")


LEDGER_CHECKS: Mapping[str, Callable[[MakeLedger], None]] = {
    "knows nothing new": _knows_nothing_new,
    "remembers how a step ended": _remembers_how_a_step_ended,
    "doubts what never ended": _doubts_what_never_ended,
    "an interrupted step is in doubt": _an_interrupted_step_is_in_doubt,
    "another digest has no result": _another_digest_has_no_result,
    "a step is not begun twice at once": _a_step_is_not_begun_twice_at_once,
    "a composite began the first time": _a_composite_began_the_first_time,
    "asks once": _asks_once,
    "the first decision counts": _the_first_decision_counts,
    "one of many decisions counts": _one_of_many_decisions_counts,
    "what was never asked cannot be decided": _what_was_never_asked_cannot_be_decided,
    "an approval is used once": _an_approval_is_used_once,
    "what ended is given in its order": _what_ended_is_given_in_its_order,
    "notes are kept in order": _notes_are_kept_in_order,
}
"""The checks by name, to run one by one; each raises `PortFails`."""

_ARGUMENTS = {"amount": 5}


def _step(key: str = "1", tool: str = "pay", parent: str = "", amount: int = 5) -> Step:
    return step_of(ToolCall(tool, {"amount": amount}, id=key, parent=parent))


def _start(
    step: Step, *, idempotent: Idempotency = "no", is_composite: bool = False, request_id: str = "", attempt: int = 1
) -> Start:
    return Start(
        step=step,
        arguments=_ARGUMENTS,
        arguments_digest=digest(_ARGUMENTS),
        tool_digest="sha256:tool",
        idempotent=idempotent,
        is_composite=is_composite,
        request_id=request_id,
        attempt=attempt,
    )


def _request() -> ApprovalRequest:
    now = time.time()
    return ApprovalRequest(
        id=f"a_{secrets.token_hex(16)}",
        call_id="1",
        tool="pay",
        arguments=_ARGUMENTS,
        reasons=("rule confirm 'pay'",),
        arguments_digest=digest(_ARGUMENTS),
        tool_digest="sha256:tool",
        created_at=now,
        expires_at=now + 3_600,
    )


def _begun(ledger: Ledger, start: Start) -> float:
    began = _done(ledger.begin(start))
    if isinstance(began, ToolResult):
        holds(False, f"a step that may run was not begun: {began.error}")
        return 0.0
    return began


def _asked(ledger: Ledger, request: ApprovalRequest) -> tuple[str, str | None]:
    # A request belongs to the run that asks.
    kept, decision = _done(ledger.ask(_of_run(request, ledger)))
    return kept.id, None if decision is None else decision.verdict


def _of_run(request: ApprovalRequest, ledger: Ledger) -> ApprovalRequest:
    return replace(request, run_id=ledger.run_id)


def _decided(ledger: Ledger, request: ApprovalRequest, verdict: Any) -> str:
    """Returns the verdict that counts after this decision."""
    decision = Decision(
        verdict=verdict, request_id=request.id, at=time.time(), seen_arguments_digest=request.arguments_digest
    )
    try:
        return _done(ledger.decide(_of_run(request, ledger), decision)).verdict
    except DecisionRefused as refused:
        return "nothing" if refused.decided is None else refused.decided.verdict


def _kind(known: ToolResult | InDoubtStep | None) -> str:
    if isinstance(known, ToolResult):
        return "a result" if known.failure is None else known.failure.kind
    return "new" if known is None else "in doubt"


def _done(future: Future[T]) -> T:
    return future.result(timeout=WAIT_S)
