"""`context.note`: what a tool keeps for its next pass, after a question, an approval or in another process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.session.test_interrupt import reply
from toolwire import ApprovalRequest, CallContext, Decision, InputRequired, Session, ToolRegistry
from toolwire.invocation.asking.call_notes import NOTE_LIMIT_BYTES, NOTES_LIMIT
from toolwire.session.runs.resume import RunStore
from toolwire.vocabulary.questions import Question


def tools(seen: list[Any]) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission="confirm")
    def pay(n: int) -> int:
        """Pays."""
        return n

    @registry.register
    async def work(context: CallContext) -> str:
        """Takes two steps, each below an approval."""
        seen.append(context.notes)
        for step in range(len(context.notes), 2):
            context.note({"step": step})
        paid = await context.call("pay", n=1)
        return f"{paid.data} {context.notes}"

    @registry.register
    def ask(context: CallContext) -> Any:
        """Asks in rounds."""
        seen.append(context.notes)
        if not context.answers:
            context.note("asked")
            return InputRequired({"name": Question("Who?")}, state=7)
        return f"{context.answers['name']} {context.state} {context.notes}"

    return registry


async def test_notes_are_there_in_the_next_pass_and_in_another_process(store: RunStore) -> None:
    seen: list[Any] = []
    turn = await Session(tools(seen), protocol="openai", store=store, conversation="c").turn(reply("work"))
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    another = Session(tools(seen), protocol="openai", store=store, conversation="c")
    turn = await another.resume(turn.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert seen == [(), ({"step": 0}, {"step": 1})]
    assert turn.results[0].data == "1 ({'step': 0}, {'step': 1})"


async def test_notes_are_no_round_of_questions(store: RunStore) -> None:
    seen: list[Any] = []
    turn = await Session(tools(seen), protocol="openai", store=store, conversation="c").turn(reply("ask"))
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    another = Session(tools(seen), protocol="openai", store=store, conversation="c")
    turn = await another.resume(turn.run_id, [{"request_id": request.id, "verdict": "answer", "answer": "Ann"}])
    assert turn.results[0].data == "Ann 7 ('asked',)"
    assert seen == [(), ("asked",)]


def test_without_a_store_they_last_as_long_as_the_call() -> None:
    def answer(request: ApprovalRequest) -> Decision:
        return Decision(verdict="answer", answer="Ann", request_id=request.id)

    seen: list[Any] = []
    session = Session(tools(seen), protocol="openai", approver=answer)
    for _ in range(2):
        assert session.run_turn(reply("ask")).results[0].data == "Ann 7 ('asked',)"
    assert seen == [(), ("asked",)] * 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "is not JSON"),
        ("x" * (NOTE_LIMIT_BYTES - 1), f"has {NOTE_LIMIT_BYTES + 1:,} bytes as JSON; at most {NOTE_LIMIT_BYTES:,}"),
    ],
)
def test_a_value_that_cannot_be_kept_is_an_error_of_the_tool(value: Any, said: str) -> None:
    registry = ToolRegistry()

    @registry.register
    def work(context: CallContext) -> int:
        """Notes."""
        context.note("x" * (NOTE_LIMIT_BYTES - 2))
        context.note(value)
        return 1

    assert said in str(registry.invoke("work").error)


def test_a_call_has_a_limited_number_of_notes() -> None:
    registry = ToolRegistry()

    @registry.register
    def work(context: CallContext, n: int) -> int:
        """Notes."""
        for at in range(n):
            context.note(at)
        return len(context.notes)

    assert registry.invoke("work", {"n": NOTES_LIMIT}).data == NOTES_LIMIT
    assert f"at most {NOTES_LIMIT} notes" in str(registry.invoke("work", {"n": NOTES_LIMIT + 1}).error)
