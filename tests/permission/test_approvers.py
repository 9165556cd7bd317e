"""Asking at the terminal, with a person and without one."""

from __future__ import annotations

import io
import os
import threading
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.patience import PATIENCE_S
from tests.testing.typing_person import Keyboard, Screen
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.approvers import ConsoleApprover, console_approver, later
from toolwire.permission.deciding import rule_for
from toolwire.permission.rendering import render
from toolwire.vocabulary.values import digest

ARGUMENTS = {"amount": 5}
REQUEST = ApprovalRequest(
    id="a_1c",
    call_id="c1",
    tool="pay",
    arguments=ARGUMENTS,
    reasons=("rule confirm 'pay'",),
    arguments_digest=digest(ARGUMENTS),
    arguments_schema={
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
        "additionalProperties": False,
    },
)
KEYS = "[y] approve  [n] deny  [e] edit  [a] approve and remember  [s] stop the run  [l] later\n"
WRONG_DIGEST = "a request whose arguments do not match its digest cannot be written as JSON"
SHOWN = f"\nMay this call run?\n\n{render(REQUEST)}\n\n"


def asked(typed: str, request: ApprovalRequest = REQUEST, **more: Any) -> tuple[Decision | None, str]:
    """The decision, and the text on the screen."""
    screen = Screen()
    approver = ConsoleApprover(input=Keyboard(typed), output=screen, principal="user:42", **more)
    return approver(request), screen.getvalue()


def made(**said: Any) -> tuple[Any, ...]:
    decision = Decision(**said)
    return (decision.verdict, decision.arguments, decision.reason, decision.remember)


@pytest.mark.parametrize(
    ("typed", "said", "screen"),
    [
        ("y\n", {"verdict": "approve"}, f"{KEYS}? "),
        ("YES\n", {"verdict": "approve"}, f"{KEYS}? "),
        (
            "n\nToo much – 4 at most.\n",
            {"verdict": "deny", "reason": "Too much – 4 at most."},
            f"{KEYS}? reason for the model (may be empty): ",
        ),
        ("n\n\n", {"verdict": "deny"}, f"{KEYS}? reason for the model (may be empty): "),
        ("s\nenough\n", {"verdict": "stop_run", "reason": "enough"}, f"{KEYS}? reason for the model (may be empty): "),
        (
            'e\n{"amount": 4}\n',
            {"verdict": "edit", "arguments": {"amount": 4}},
            f"{KEYS}? all arguments as JSON, on one line (empty: back): ",
        ),
        ("what\n\ny\n", {"verdict": "approve"}, f"{KEYS}? {KEYS}? {KEYS}? "),
    ],
)
def test_the_typed_answer_is_the_decision(typed: str, said: dict[str, Any], screen: str) -> None:
    decision, shown = asked(typed)
    assert decision is not None
    assert (decision.verdict, decision.arguments, decision.reason, decision.remember) == made(**said)
    assert decision.by == Decider(principal="user:42", channel="console", authn="terminal")
    assert (decision.request_id, decision.seen_arguments_digest) == ("a_1c", REQUEST.arguments_digest)
    assert shown == f"{SHOWN}{screen}"


@pytest.mark.parametrize("typed", ["", "l\n", "n\n", "s\n", "e\n", "what\n", 'e\n{"amount": "much"}\n'])
def test_a_missing_answer_decides_nothing(typed: str) -> None:
    # After `n`, `s` and a wrong edit the input is at its end.
    assert asked(typed)[0] is None


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("{", "it is not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"amount": "4"}', "'amount' must be an integer, not '4'."),
        ("{}", "'amount' is missing: give an integer."),
        ('{"amount": 4, "to": 1}', "'to' is unknown: it takes 'amount'."),
        ('{"amount": 4, "amount": 5}', "it is not JSON: a key is given twice"),
        ('{"amount": NaN}', "it is not JSON: NaN is not a JSON number"),
        ("[1]", 'it is not a JSON object: write the arguments by name, {"amount": 4}'),
        ("[" * 100_000, "it is nested too deeply"),
        (f'{{"amount": {"9" * 5000}}}', None),
    ],
)  # fmt: skip
def test_a_wrong_edit_is_refused_at_once_and_can_be_made_again(edit: str, message: str | None) -> None:
    decision, shown = asked(f'e\n{edit}\ne\n{{"amount": 4}}\n')
    assert decision is not None
    assert decision.arguments == {"amount": 4}
    assert message is None or f"the edit of 'pay' is not valid: {message}\n{KEYS}" in shown


def test_an_edit_of_nothing_goes_back() -> None:
    decision, shown = asked("e\n\ny\n")
    assert decision is not None
    assert decision.verdict == "approve"
    assert shown.count(KEYS) == 2


@pytest.mark.parametrize(
    ("which", "scope", "same_arguments", "told"),
    [
        ("1", "run", True, "rule 'remembered:a_1c', auto 'pay' when arguments == {'amount': 5}, scope run"),
        ("2", "session", True, "rule 'remembered:a_1c', auto 'pay' when arguments == {'amount': 5}, scope session"),
        ("3", "run", False, "rule 'remembered:a_1c', auto 'pay', scope run"),
    ],
)
def test_the_remembered_rule_is_chosen_and_shown(which: str, scope: Any, same_arguments: bool, told: str) -> None:
    decision, shown = asked(f"a\nx\na\n{which}\n")
    assert decision is not None
    assert (decision.verdict, decision.remember) == (
        "approve",
        rule_for(REQUEST, scope=scope, same_arguments=same_arguments),
    )
    assert shown.endswith(f"remembered: {told}\n")


def test_remembering_may_be_left_out() -> None:
    decision, shown = asked("a\ny\n", remembers=False)
    assert decision is not None
    assert (decision.verdict, decision.remember) == ("approve", None)
    assert shown.count("[y] approve  [n] deny  [e] edit  [s] stop the run  [l] later\n") == 2


@pytest.mark.threat(14)
def test_a_request_that_cannot_be_shown_cannot_be_approved() -> None:
    forged = ApprovalRequest(
        id="a_1c", call_id="c1", tool="pay", arguments={"amount": 5}, reasons=(), arguments_digest="sha256:0"
    )
    assert asked("y\n", forged) == (
        None,
        f"the call of request a_1c cannot be shown, so it cannot be approved: {WRONG_DIGEST}\n",
    )


def test_an_expired_request_is_not_asked() -> None:
    late = ApprovalRequest(id="a_1c", call_id="c1", tool="pay", arguments={}, reasons=(), expires_at=1.0)
    assert asked("y\n", late) == (None, "request a_1c has expired; nothing to decide\n")


class Interrupted(Keyboard):
    def readline(self, size: int | None = -1, /) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise KeyboardInterrupt


def test_an_interrupt_decides_nothing() -> None:
    screen = Screen()
    assert ConsoleApprover(input=Interrupted(), output=screen)(REQUEST) is None
    assert screen.getvalue() == f"{SHOWN}{KEYS}? \nnot decided\n"


class Ascii(Screen):
    encoding = "ascii"  # pyright: ignore[reportAssignmentType,reportIncompatibleMethodOverride]


def test_a_terminal_that_lacks_the_letters_gets_them_spelled() -> None:
    request = ApprovalRequest(id="a_1c", call_id="c1", tool="pay", arguments={"to": "Zoë"}, reasons=())
    screen = Ascii()
    ConsoleApprover(input=Keyboard("y\n"), output=screen)(request)
    assert '  "to": "Zo\\xeb"\n' in screen.getvalue()


def closed() -> Any:
    stream = Keyboard("y\n")
    stream.close()
    return stream


@pytest.mark.threat(13)
@pytest.mark.parametrize(
    ("keyboard", "screen"),
    [(io.StringIO("y\n"), Screen()), (Keyboard("y\n"), io.StringIO()), (closed(), Screen())],
    ids=["no keyboard", "no screen", "closed"],
)
def test_no_question_is_asked_without_a_terminal(keyboard: Any, screen: Any) -> None:
    assert ConsoleApprover(input=keyboard, output=screen)(REQUEST) is None
    # The control: the very same input at a terminal approves.
    assert cast("Decision", asked("y\n")[0]).verdict == "approve"


@pytest.mark.threat(13)
def test_the_process_without_a_terminal_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert console_approver(REQUEST) is None


def test_later_answers_nothing() -> None:
    assert later(REQUEST) is None


def test_at_a_real_terminal_what_was_typed_before_the_question_does_not_count() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r", closefd=False) as keyboard, os.fdopen(theirs, "w", closefd=False) as screen:
        os.write(ours, b"y\n")
        found: list[Decision | None] = []
        approver = ConsoleApprover(input=keyboard, output=screen, principal="user:42")
        asking = threading.Thread(target=lambda: found.append(approver(REQUEST)))
        asking.start()
        shown = b""
        while not shown.endswith(b"? "):
            shown += os.read(ours, 4096)
        os.write(ours, b"n\n")
        while not shown.endswith(b"(may be empty): "):
            shown += os.read(ours, 4096)
        os.write(ours, b"not today\n")
        asking.join(PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    (decision,) = found
    assert decision is not None
    assert (decision.verdict, decision.reason) == ("deny", "not today")


@pytest.mark.threat(72)
def test_text_beside_a_call_cannot_control_the_terminal() -> None:
    expired = replace(REQUEST, id="a_\x1b]0;trusted\x07\u202e", expires_at=1.0)
    assert asked("y\n", expired) == (None, "request a_\\x1b]0;trusted\\x07\\u202e has expired; nothing to decide\n")
