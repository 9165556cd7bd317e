"""The decisions that a person can make."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import Caller, Session, Toolkit, ToolRegistry
from toolwire.approvals import ConsoleApprover
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.policy import Rule
from toolwire.vocabulary.errors import ConfigurationError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"verdict": "yes"}, "Decision(verdict='yes'): write one of approve, edit, deny, stop_run, answer"),
        ({"verdict": None}, "Decision(verdict=None): write one of approve, edit, deny, stop_run, answer"),
        ({"verdict": "edit"}, "Decision(verdict='edit'): give the arguments to run instead, arguments={...}"),
        ({"verdict": True}, "Decision(verdict=True): write one of approve, edit, deny, stop_run, answer"),
        (
            {"verdict": "edit", "arguments": "amount=5"},
            "Decision(arguments='amount=5'): write arguments={'name': value}",
        ),
        ({"verdict": "approve", "by": "me"}, "Decision(by='me'): write by=Decider(principal='me')"),
        ({"verdict": "approve", "by": None}, "Decision(by=None): write by=Decider(principal='...')"),
        (
            {"verdict": "approve", "by": {"principal": "me"}},
            "Decision(by={'principal': 'me'}): write by=Decider(principal='...')",
        ),
        ({"verdict": "deny", "reason": None}, "Decision(reason=None): write text, reason='...'"),
        ({"verdict": "deny", "request_id": 7}, "Decision(request_id=7): write text, request_id='...'"),
        (
            {"verdict": "deny", "seen_arguments_digest": b"x"},
            "Decision(seen_arguments_digest=b'x'): write text, seen_arguments_digest='...'",
        ),
        ({"verdict": "approve", "remember": True}, "Decision(remember=True): write remember=rule_for(request)"),
        ({"verdict": "approve", "at": "now"}, "Decision(at='now'): write seconds since the epoch, at=time.time()"),
        ({"verdict": "approve", "at": True}, "Decision(at=True): write seconds since the epoch, at=time.time()"),
    ],
)
def test_a_decision_that_is_none_is_refused_where_it_is_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Decision(**given)
    assert str(caught.value) == message


def test_an_edit_to_no_arguments_at_all_is_one() -> None:
    assert Decision(verdict="edit", arguments={}).arguments == {}


def test_a_decision_with_all_its_fields_is_made() -> None:
    by = Decider(principal="me", channel="chat", authn="password")
    decision = Decision(verdict="approve", remember=Rule(effect="auto", tool="pay"), by=by, at=1, request_id="a_1")
    assert (decision.by.principal, decision.at) == ("me", 1)


@pytest.mark.parametrize("field", ["principal", "channel", "authn"])
def test_a_decider_is_described_in_text(field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Decider(**{field: 5})  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == f"Decider({field}=5): write text, {field}='...'"


def _takes_nothing() -> None: ...


def _takes_two(request: ApprovalRequest, who: str) -> None: ...


_WHAT_TO_GIVE = (
    "cannot be asked: give a function that takes an ApprovalRequest and returns a Decision, or console_approver. "
    "To run calls without asking, write permission='auto' or a rule with effect='auto'"
)

_WRONG_APPROVERS = [
    (True, f"approver=True {_WHAT_TO_GIVE}"),
    (False, f"approver=False {_WHAT_TO_GIVE}"),
    ("yes", f"approver='yes' {_WHAT_TO_GIVE}"),
    (["me"], f"approver=['me'] {_WHAT_TO_GIVE}"),
    (ConsoleApprover, "approver=ConsoleApprover is a class: give an instance, ConsoleApprover(...)"),
    (
        _takes_nothing,
        (
            f"approver={_takes_nothing!r:.80} cannot take one request (too many positional arguments): "
            "write def approver(request)"
        ),
    ),
    (
        _takes_two,
        (
            f"approver={_takes_two!r:.80} cannot take one request (missing a required argument: 'who'): "
            "write def approver(request)"
        ),
    ),
]


@pytest.mark.parametrize(
    "build", [lambda given: ToolRegistry(approver=given), lambda given: Session([], approver=given)]
)
@pytest.mark.parametrize(("given", "message"), _WRONG_APPROVERS)
def test_an_approver_that_cannot_be_asked_is_refused_when_it_is_given(given: Any, message: str, build: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build(given)
    assert str(caught.value) == message


class _Asked:
    def __init__(self) -> None:
        self.tools: list[str] = []

    def __call__(self, request: ApprovalRequest) -> Decision:
        self.tools.append(request.tool)
        return Decision(verdict="approve")

    async def later(self, request: ApprovalRequest, *, quietly: bool = True) -> Decision:
        return self(request)


@pytest.mark.parametrize("pick", [lambda asked: asked, lambda asked: asked.later, lambda asked: lambda one: asked(one)])
def test_whatever_takes_one_request_is_asked(pick: Any) -> None:
    def pay() -> str:
        """Pays."""
        return "paid"

    asked = _Asked()
    registry = ToolRegistry(approver=pick(asked))
    registry.register(pay, permission="confirm")
    assert (registry.invoke("pay").data, asked.tools) == ("paid", ["pay"])


@pytest.mark.parametrize("build", [lambda given: Session([], caller=given), lambda given: Toolkit(caller=given)])
def test_a_caller_that_is_a_plain_name_is_refused_when_it_is_given(build: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build("alice")
    assert str(caught.value) == "caller='alice': write caller=Caller(principal='...')"
    assert build(Caller(principal="alice")) is not None
