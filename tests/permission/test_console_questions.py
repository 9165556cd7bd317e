"""Questions at the terminal: each field is asked, and a wrong entry is asked again with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.typing_person import Keyboard, Screen
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.permission.approvers import ConsoleApprover
from toolwire.permission.rendering import render
from toolwire.vocabulary.values import digest

KEYS = "[a] answer  [n] decline  [s] stop the run  [l] later\n"
TEXT = {"type": "string"}


def request(schema: dict[str, Any], question: str = "Which?") -> ApprovalRequest:
    return ApprovalRequest(
        id="a_1c",
        kind="question",
        question=question,
        answer_schema=schema,
        call_id="r_1/1?1",
        tool="book",
        arguments={},
        reasons=(),
        arguments_digest=digest({"question": question, "schema": schema}),
    )


def asked(typed: str, schema: dict[str, Any], question: str = "Which?") -> tuple[Decision | None, str]:
    """The decision, and the text on the screen after the question."""
    screen, one = Screen(), request(schema, question)
    decision = ConsoleApprover(input=Keyboard(typed), output=screen, principal="user:42")(one)
    head = f"\nA tool asks you.\n\n{render(one)}\n\n{KEYS}? "
    assert screen.getvalue().startswith(head)
    return decision, screen.getvalue().removeprefix(head)


@pytest.mark.parametrize(
    ("schema", "typed", "answer"),
    [
        (TEXT, "tea, please", "tea, please"),
        (TEXT, "10", "10"),
        (TEXT, "", ""),
        ({"type": "integer"}, "3", 3),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "y", True),
        ({"type": "boolean"}, "No", False),
        ({"enum": ["tea", "juice"]}, "2", "juice"),
        ({"enum": ["tea", "juice"]}, "tea", "tea"),
        ({"enum": ["2", "1"]}, "2", "2"),
        ({"enum": [10, None]}, "1", 10),
        ({"oneOf": [{"const": "a", "title": "Aisle"}, {"const": "w", "title": "Window"}]}, "Window", "w"),
        ({"type": "array", "items": TEXT}, '["a", "b"]', ["a", "b"]),
        ({}, "null", None),
    ],
)
def test_an_answer_is_typed_in_the_form_of_its_schema(schema: dict[str, Any], typed: str, answer: Any) -> None:
    decision, _ = asked(f"a\n{typed}\n", schema)
    assert decision is not None
    assert (decision.verdict, decision.answer, decision.by.principal) == ("answer", answer, "user:42")


TABLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "description": "Whose table"},
        "guests": {"$ref": "#/$defs/count"},
        "window": {"type": "boolean"},
        "menu": {"enum": ["fish", "meat"]},
    },
    "required": ["name", "guests"],
    "$defs": {"count": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}


def test_an_object_is_asked_field_by_field_and_optional_fields_can_be_left_out() -> None:
    decision, screen = asked("a\nAda\n4\n\nmeat\n", TABLE)
    assert decision is not None
    assert decision.answer == {"name": "Ada", "guests": 4, "menu": "meat"}
    assert screen == (
        "name: Whose table\nname (text): guests (as JSON): window (y or n, empty: leave out): "
        "  [1] fish\n  [2] meat\nmenu (1 to 2, empty: leave out): "
    )


def test_a_wrong_entry_is_asked_again_with_the_reason() -> None:
    decision, screen = asked("a\nA\nAda\nmany\n0\n4\nmaybe\ny\n3\n1\n", TABLE)
    assert decision is not None
    assert decision.answer == {"name": "Ada", "guests": 4, "window": True, "menu": "fish"}
    for reason in ("at least 2", "it is not JSON", "write y or n", "write a number from 1 to 2"):
        assert reason in screen


def test_fields_that_do_not_fit_together_are_all_asked_again() -> None:
    schema = {
        "type": "object",
        "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
        "dependentRequired": {"from": ["to"]},
    }
    decision, _ = asked("a\n1\n\n1\n2\n", schema)
    assert decision is not None
    assert decision.answer == {"from": 1, "to": 2}


def test_a_person_declines_stops_or_waits() -> None:
    declined, _ = asked("n\nnone of your business\n", TEXT)
    assert declined is not None
    assert (declined.verdict, declined.reason) == ("deny", "none of your business")
    stopped, _ = asked("s\n\n", TEXT)
    assert stopped is not None
    assert stopped.verdict == "stop_run"
    assert asked("l\n", TEXT)[0] is None


@pytest.mark.parametrize("typed", ["", "a\n", "a\nmany\n"])
def test_the_end_of_the_input_answers_nothing(typed: str) -> None:
    assert asked(typed, {"type": "integer"})[0] is None


@pytest.mark.parametrize("key", ["y", "yes", "e", "approve", ""])
def test_a_question_offers_no_approval(key: str) -> None:
    decision, screen = asked(f"{key}\nl\n", TEXT)
    assert (decision, screen) == (None, f"{KEYS}? ")


def test_the_text_of_a_question_cannot_command_the_terminal() -> None:
    schema = {"type": "object", "properties": {"\x1b[2Jn": {"type": "string", "description": "\x1b[31mred"}}}
    _, screen = asked("a\nx\n", schema, question="Hello\x1b[2J\u202e")
    assert "\x1b" not in screen
    assert "\x1b" not in render(request(schema, "Hello\x1b[2J\u202e"))


def test_a_question_that_was_changed_is_not_asked() -> None:
    one = request(TEXT)
    changed = ApprovalRequest(
        **{name: getattr(one, name) for name in one.__slots__ if name != "question"}, question="Your password?"
    )
    screen = Screen()
    assert ConsoleApprover(input=Keyboard("a\nsecret\n"), output=screen)(changed) is None
    assert screen.getvalue() == (
        "the call of request a_1c cannot be shown, so it cannot be answered: a request whose question does not match "
        "its digest cannot be written as JSON\n"
    )
