"""A conformance kit for approvers. A simulated person answers the requests."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, cast

from toolwire.permission.approval import ANSWERS, ApprovalRequest, Approver, Decision
from toolwire.vocabulary.values import digest

_THREADS = 8
_PARALLEL = 64
"""Concurrent requests: enough to notice an approver that mixes up two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The reaction of the simulated person to a request.

    Attributes:
        verdict: The verdict; `nothing` means no answer.
        arguments: With edit, the new arguments.
        reason: With deny and stop_run, the reason.
        request_id: The request that is answered, if it is not the one that was asked. If the channel to the person
            carries no ids, such an answer cannot arrive: treat it as no answer.
    """

    verdict: Literal["approve", "edit", "deny", "stop_run", "nothing"]
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    request_id: str = ""


Person = Callable[[str], Said]
"""The simulated person: maps a request's id to a reaction. It may raise, as a connection or a keyboard does."""

MakeApprover = Callable[[Person], Approver]
"""Creates the approver under test, connected to this person."""


class ApproverFails(AssertionError):
    """An approver failed its checks. The message lists every failure."""


def check_approver(make_approver: MakeApprover) -> None:
    """Runs every check of `CHECKS`. It starts event loops of its own, so call it from blocking code.

    `make_approver(person)` returns the approver under test. The approver calls `person(request.id)` in place of a real
    person, and turns the `Said` that it returns into a `Decision`, or into None for the verdict `nothing`.

    Raises:
        ApproverFails: At least one check failed.
    """
    failures: list[str] = []
    for name, check in CHECKS.items():
        try:
            check(make_approver)
        except ApproverFails as failure:
            failures.append(f"{name}: {failure}")
    if failures:
        raise ApproverFails("\n".join(failures))


def _says_what_was_said(make: MakeApprover) -> None:
    for said in _SAYINGS:
        request = _example_request()
        answer = _check_decision(_ask(make(lambda _, said=said: said), request), request)
        given = {"arguments": said.arguments, "reason": said.reason} if said.verdict != "approve" else {}
        found = {name: getattr(answer, name) for name in given}
        if (answer.verdict, found) != (said.verdict, given):
            raise ApproverFails(f"{said} became {answer}")


def _silence_decides_nothing(make: MakeApprover) -> None:
    request = _example_request()
    answer = _ask(make(lambda _: Said(verdict="nothing")), request)
    if answer is not None:
        raise ApproverFails(f"no answer came, and it gave {answer!r}")


def _what_breaks_approves_nothing(make: MakeApprover) -> None:
    for error in (OSError("the line is dead"), ValueError("no JSON"), TimeoutError(), EOFError(), KeyError("user")):
        _gives_nothing(make, error)


def _an_interrupt_approves_nothing(make: MakeApprover) -> None:
    _gives_nothing(make, KeyboardInterrupt())


def _gives_nothing(make: MakeApprover, error: BaseException) -> None:
    def person(_: str) -> Said:
        raise error

    try:
        answer = _ask(make(person), _example_request())
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - whatever it raises, the call does not run
        return
    if answer is not None:
        raise ApproverFails(f"{error!r} became {answer!r}")


def _an_answer_is_for_its_request(make: MakeApprover) -> None:
    for verdict in ("approve", "deny", "stop_run"):
        request = _example_request()
        _check_decision(_ask(make(lambda _, verdict=verdict: Said(verdict=verdict)), request), request)


def _anothers_answer_is_not_taken(make: MakeApprover) -> None:
    other = f"a_{secrets.token_hex(16)}"
    try:
        answer = _ask(make(lambda _: Said(verdict="approve", request_id=other)), _example_request())
    except Exception:  # noqa: BLE001 - an exception is a valid refusal too
        return
    if answer is not None and (not isinstance(answer, Decision) or answer.request_id != other):
        raise ApproverFails(f"the answer to {other!r} was taken for the request that was asked: {answer!r}")


def _each_request_is_asked(make: MakeApprover) -> None:
    first, second = _example_request(), _example_request()
    approver = make(lambda known: Said(verdict="approve" if known == first.id else "nothing"))
    _check_decision(_ask(approver, first), first)
    answer = _ask(approver, second)
    if answer is not None:
        raise ApproverFails("an equal call was approved without asking again")


def _answers_keep_apart(make: MakeApprover) -> None:
    """Asks in parallel from several threads, each with its own event loop."""
    requests = {request.id: request for request in (_example_request(number) for number in range(_PARALLEL))}
    said = {known: _PARTS[place % len(_PARTS)] for place, known in enumerate(requests)}
    approver = make(lambda known: said[known])
    with ThreadPoolExecutor(_THREADS) as pool:
        asking = {known: pool.submit(_ask, approver, request) for known, request in requests.items()}
    answers = {known: future.result() for known, future in asking.items()}
    for known, answer in answers.items():
        if said[known].verdict == "nothing":
            if answer is not None:
                raise ApproverFails(f"asked side by side, silence became {answer!r}")
            continue
        if _check_decision(answer, requests[known]).verdict != said[known].verdict:
            raise ApproverFails(f"asked side by side, {said[known].verdict} became {answer!r}")


def _cancellation_passes(make: MakeApprover) -> None:
    async def cancel_and_await() -> None:
        waiting = make(lambda _: Said(verdict="approve"))(_example_request())
        if not inspect.isawaitable(waiting):
            return
        task = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        if not task.cancel():
            return
        try:
            answer = await task
        except asyncio.CancelledError:
            return
        raise ApproverFails(f"cancelled, it gave {answer!r}")

    asyncio.run(cancel_and_await())


def _the_request_stays_as_it_is(make: MakeApprover) -> None:
    for said in _SAYINGS:
        request = _example_request()
        _ask(make(lambda _, said=said: said), request)
        if digest(dict(request.arguments)) != request.arguments_digest:
            raise ApproverFails("it changed the arguments of the request")


def _nothing_is_remembered_unasked(make: MakeApprover) -> None:
    request = _example_request()
    answer = _check_decision(_ask(make(lambda _: Said(verdict="approve")), request), request)
    if answer.remember is not None:
        raise ApproverFails(f"no rule was chosen to remember, and it gave {answer.remember!r}")


CHECKS: Mapping[str, Callable[[MakeApprover], None]] = {
    "says what was said": _says_what_was_said,
    "silence decides nothing": _silence_decides_nothing,
    "what breaks approves nothing": _what_breaks_approves_nothing,
    "an interrupt approves nothing": _an_interrupt_approves_nothing,
    "an answer is for its request": _an_answer_is_for_its_request,
    "another's answer is not taken": _anothers_answer_is_not_taken,
    "each request is asked": _each_request_is_asked,
    "answers keep apart": _answers_keep_apart,
    "cancellation passes": _cancellation_passes,
    "the request stays as it is": _the_request_stays_as_it_is,
    "nothing is remembered unasked": _nothing_is_remembered_unasked,
}
"""The checks by name, to run one by one; each raises `ApproverFails`."""

_SAYINGS = (
    Said(verdict="approve"),
    Said(verdict="edit", arguments={"amount": 4, "to": "Ada"}),
    Said(verdict="deny", reason="über 4 – no"),
    Said(verdict="stop_run", reason="enough"),
)
_PARTS = (*_SAYINGS, Said(verdict="nothing"))


def _example_request(amount: int = 5) -> ApprovalRequest:
    arguments = {"amount": amount, "to": "Ada"}
    return ApprovalRequest(
        id=f"a_{secrets.token_hex(16)}",
        call_id="r_1/1",
        tool="pay",
        arguments=arguments,
        reasons=("rule confirm 'pay'",),
        run_id="r_1",
        arguments_digest=digest(arguments),
        arguments_schema={
            "type": "object",
            "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}},
            "required": ["amount", "to"],
            "additionalProperties": False,
        },
    )


def _ask(approver: Approver, request: ApprovalRequest) -> object:
    answer: object = approver(request)
    if not inspect.isawaitable(answer):
        return answer

    async def wait() -> object:
        return await answer

    return asyncio.run(wait())


def _check_decision(answer: object, request: ApprovalRequest) -> Decision:
    if not isinstance(answer, Decision) or cast("str", answer.verdict) not in ANSWERS:
        raise ApproverFails(f"an answer was given, and it gave {answer!r} instead of a Decision")
    if answer.request_id not in ("", request.id):
        raise ApproverFails(f"the decision names request {answer.request_id!r}, and {request.id!r} was asked")
    if answer.seen_arguments_digest not in ("", request.arguments_digest):
        raise ApproverFails("the decision is for other arguments than those that were shown")
    return answer
