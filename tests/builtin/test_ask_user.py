"""`ask_user`: a model asks the person."""

from __future__ import annotations

from typing import Any

import pytest

from tests.session.till import calls, program, texts
from toolwire import ApprovalRequest, Decision, RegistrationError, Session, ToolRegistry
from toolwire.testing import MemoryStore


def registry() -> ToolRegistry:
    made = ToolRegistry()
    made.configure(user_questions=True)
    return made


def asked(answer: Any = "tea", **arguments: Any) -> tuple[Any, list[ApprovalRequest]]:
    """The result of the call, and the requests to the person."""
    requests: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Decision:
        requests.append(request)
        return Decision(verdict="answer", answer=answer)

    made = registry()
    made.configure(approver=approver)
    return made.invoke("ask_user", arguments), requests


def test_a_model_asks_for_a_text() -> None:
    result, (request,) = asked(question="What to drink?")
    assert (result.success, result.data) == (True, "tea")
    assert (request.kind, request.question, request.answer_schema) == ("question", "What to drink?", {"type": "string"})


def test_options_are_the_only_answers() -> None:
    result, (request,) = asked(question="What?", options=["tea", "juice"])
    assert (result.data, request.answer_schema) == ("tea", {"type": "string", "enum": ["tea", "juice"]})
    refused, _ = asked("wine", question="What?", options=["tea", "juice"])
    assert refused.failure is not None
    assert refused.failure.kind == "approval_required"


def test_a_schema_asks_for_several_values() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    result, (request,) = asked({"size": 2}, question="Which?", schema=schema)
    assert (result.data, request.answer_schema) == ({"size": 2}, schema)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"question": ""},
        {"question": "  "},
        {"question": "x" * 16_385},
        {"question": "A?", "options": []},
        {"question": "A?", "options": ["one"]},
        {"question": "A?", "options": ["a", "a"]},
        {"question": "A?", "options": [str(place) for place in range(51)]},
        {"question": "A?", "options": ["a", "x" * 501]},
        {"question": "A?", "options": ["a", "b"], "schema": {"type": "string"}},
        {"question": "A?", "schema": {"type": "colour"}},
        {"question": "A?", "schema": {"$ref": "https://example.com/schema.json"}},
    ],
)
def test_a_wrong_question_is_told_to_the_model_and_asked_of_nobody(wrong: dict[str, Any]) -> None:
    result, requests = asked(**wrong)
    assert result.failure is not None
    assert (result.failure.kind, requests) == ("invalid_arguments", [])


@pytest.mark.parametrize(
    "right",
    [
        {"question": "x" * 16_384},
        {"question": "A?", "options": [*(str(place) for place in range(49)), "tea"]},
        {"question": "A?", "options": ["tea", "x" * 500]},
    ],
)
def test_a_question_at_the_limits_is_asked(right: dict[str, Any]) -> None:
    assert asked(**right)[0].success


def test_the_model_reads_that_the_approver_declined() -> None:
    made = registry()
    made.configure(approver=lambda _: Decision(verdict="deny", reason="busy"))
    result = made.invoke("ask_user", {"question": "Now?"})
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "denied",
        "'ask_user' was stopped at its question: the approver declined to answer 'Now?': busy.",
    )


async def test_a_question_waits_in_the_store_and_inside_a_program() -> None:
    store = MemoryStore()
    replies: list[tuple[str, Any]] = [
        ("openai", calls(("ask_user", {"question": "A?"}))),
        ("attp", program('print(await ask_user(question="A?"))')),
    ]
    for protocol, reply in replies:
        turn = await Session(registry(), protocol=protocol, store=store).turn(reply)
        assert turn.suspended is not None
        (request,) = turn.suspended.pending
        store.decide(request.id, Decision(verdict="answer", answer="tea"))
        turn = await Session(registry(), protocol=protocol, store=store).resume(request.run_id)
        assert "tea" in (texts(turn.messages)[0] if protocol == "openai" else turn.results[0].data)


def test_the_tool_is_switched_on_and_off_and_takes_no_name_of_a_host() -> None:
    made = registry()
    made.configure(user_questions=True)
    made.configure(user_questions=False)
    made.configure(user_questions=False)
    assert "ask_user" not in made

    def ask_user() -> str:
        """The host's own."""
        return "own"

    made.register(ask_user)
    with pytest.raises(RegistrationError):
        made.configure(user_questions=True)
    made.configure(user_questions=False)
    assert made.invoke("ask_user", {}).data == "own"
