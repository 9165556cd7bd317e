"""The kit passes good approvers and names the fault of each bad one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.testing.typing_person import console
from toolwire.permission.approval import ApprovalRequest, Approver, Decision
from toolwire.permission.approvers import later
from toolwire.permission.policy import Rule
from toolwire.testing import CHECKS, ApproverFails, Said, check_approver
from toolwire.testing.approvers import MakeApprover, Person


def decision(said: Said, **more: Any) -> Decision | None:
    if said.verdict == "nothing":
        return None
    given: dict[str, Any] = {"request_id": said.request_id, **more}
    return Decision(verdict=said.verdict, arguments=said.arguments, reason=said.reason, **given)


def callback(person: Person) -> Approver:
    return lambda request: decision(person(request.id))


def awaited(person: Person) -> Approver:
    async def approver(request: ApprovalRequest) -> Decision | None:
        await asyncio.sleep(0)
        return decision(person(request.id))

    return approver


@pytest.mark.parametrize("make", [callback, awaited, console], ids=lambda make: make.__name__)
def test_a_good_approver_passes(make: MakeApprover) -> None:
    check_approver(make)


def test_later_never_answers() -> None:
    assert later(cast("ApprovalRequest", None)) is None


def always(_: Person) -> Approver:
    return lambda _: Decision(verdict="approve")


def true(person: Person) -> Approver:
    return lambda request: cast("Any", person(request.id).verdict == "approve")


def on_errors(person: Person) -> Approver:
    def approver(request: ApprovalRequest) -> Decision | None:
        try:
            return decision(person(request.id))
        except Exception:
            return Decision(verdict="approve")

    return approver


def on_interrupts(person: Person) -> Approver:
    def approver(request: ApprovalRequest) -> Decision | None:
        try:
            return decision(person(request.id))
        except KeyboardInterrupt:
            return Decision(verdict="approve")

    return approver


def whoevers(person: Person) -> Approver:
    def approver(request: ApprovalRequest) -> Decision | None:
        said = person(request.id)
        return decision(Said(verdict=said.verdict, arguments=said.arguments, reason=said.reason))

    return approver


def with_a_memory(person: Person) -> Approver:
    known: dict[str, Decision | None] = {}

    def approver(request: ApprovalRequest) -> Decision | None:
        if request.arguments_digest not in known:
            known[request.arguments_digest] = decision(person(request.id))
        return known[request.arguments_digest]

    return approver


def with_one_place_for_all(person: Person) -> Approver:
    last: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Decision | None:
        last.append(request)
        return decision(person(last[-2:][0].id))

    return approver


def that_cannot_be_cancelled(person: Person) -> Approver:
    async def approver(request: ApprovalRequest) -> Decision | None:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return Decision(verdict="approve")
        return decision(person(request.id))

    return approver


def that_says_why_in_its_own_words(person: Person) -> Approver:
    def approver(request: ApprovalRequest) -> Decision | None:
        said = person(request.id)
        return decision(Said(verdict=said.verdict, arguments=said.arguments, reason="refused"))

    return approver


def that_names_another(person: Person) -> Approver:
    return lambda request: decision(person(request.id), request_id="a_1")


def that_saw_something_else(person: Person) -> Approver:
    return lambda request: decision(person(request.id), seen_arguments_digest="sha256:0")


def that_mends_arguments(person: Person) -> Approver:
    def approver(request: ApprovalRequest) -> Decision | None:
        cast("dict[str, Any]", request.arguments)["amount"] = 0
        return decision(person(request.id))

    return approver


def that_remembers_by_itself(person: Person) -> Approver:
    return lambda request: decision(person(request.id), remember=Rule(effect="auto", tool="*"))


def that_approves_silence(person: Person) -> Approver:
    return lambda request: decision(person(request.id)) or Decision(verdict="approve")


BAD: list[tuple[Callable[[Person], Approver], str]] = [
    (always, "says what was said"),
    (true, "says what was said"),
    (that_approves_silence, "silence decides nothing"),
    (on_errors, "what breaks approves nothing"),
    (on_interrupts, "an interrupt approves nothing"),
    (whoevers, "another's answer is not taken"),
    (with_a_memory, "each request is asked"),
    (with_one_place_for_all, "answers keep apart"),
    (that_cannot_be_cancelled, "cancellation passes"),
    (that_says_why_in_its_own_words, "says what was said"),
    (that_names_another, "an answer is for its request"),
    (that_saw_something_else, "an answer is for its request"),
    (that_mends_arguments, "the request stays as it is"),
    (that_remembers_by_itself, "nothing is remembered unasked"),
]


@pytest.mark.parametrize(("make", "check"), BAD, ids=lambda each: getattr(each, "__name__", ""))
def test_a_bad_approver_fails_the_check_that_is_about_it(make: MakeApprover, check: str) -> None:
    with pytest.raises(ApproverFails):
        CHECKS[check](make)
    with pytest.raises(ApproverFails) as caught:
        check_approver(make)
    assert check in [line.partition(":")[0] for line in str(caught.value).split("\n")]


def test_each_check_has_an_approver_that_fails_it() -> None:
    assert {check for _, check in BAD} == set(CHECKS)
