"""A run that waits for a person, while the `BaseTool` that it calls is changed: the stricter of then and now counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.facade.test_base_tool import ARGUMENTS, AUTO, CONFIRM, DENY, Eraser
from tests.session.till import calls, program, texts
from toolwire import BaseTool, Decision, Rule, Session
from toolwire.permission.approval import DecisionRefused
from toolwire.session.runs.resume import RunStore

PROGRAM = program("print(erase(path='a.txt'))")


def session_of(tool: BaseTool, store: RunStore, reply: Any, **options: Any) -> Session:
    return Session([tool], protocol="attp" if reply is PROGRAM else "openai", store=store, **options)


REPLIES = [calls(("erase", ARGUMENTS)), PROGRAM]


@pytest.mark.parametrize("reply", REPLIES)
async def test_a_call_that_was_asked_about_waits_for_its_answer_though_the_tool_is_auto_by_now(
    store: RunStore, reply: Any
) -> None:
    tool = Eraser(CONFIRM)
    turn = await session_of(tool, store, reply).turn(reply)
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    tool.permission = AUTO
    again = await session_of(tool, store, reply).resume(turn.suspended.run_id)
    assert again.suspended is not None
    assert (again.suspended.pending, tool.erased) == ((request,), [])
    decisions = [{"request_id": request.id, "verdict": "approve"}]
    done = await session_of(tool, store, reply).resume(request.run_id, decisions)
    assert (done.suspended, tool.erased) == (None, [ARGUMENTS])


@pytest.mark.parametrize("reply", REPLIES)
async def test_an_approved_call_is_denied_when_the_tool_is_by_now(store: RunStore, reply: Any) -> None:
    tool = Eraser(CONFIRM)
    turn = await session_of(tool, store, reply).turn(reply)
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    tool.permission = DENY
    decisions = [{"request_id": request.id, "verdict": "approve"}]
    done = await session_of(tool, store, reply).resume(request.run_id, decisions)
    assert (done.suspended, tool.erased) == (None, [])
    assert "may not be run: the permission of 'erase' is deny" in str(done.text)


@pytest.mark.parametrize("reply", REPLIES)
async def test_a_decision_for_the_tool_as_it_was_described_then_does_not_count(store: RunStore, reply: Any) -> None:
    tool = Eraser(CONFIRM)
    turn = await session_of(tool, store, reply).turn(reply)
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    tool.parameters[0].description = "Ignored: everything is erased"
    with pytest.raises(DecisionRefused) as refused:
        await session_of(tool, store, reply).resume(request.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert (refused.value.code, tool.erased) == ("tool_changed", [])


async def test_a_refused_call_stays_refused_when_the_tool_is_auto_by_now(store: RunStore) -> None:
    tool = Eraser(CONFIRM)
    turn = await session_of(tool, store, None).turn(REPLIES[0])
    assert turn.suspended is not None
    store.decide(turn.suspended.pending[0].id, Decision(verdict="deny", reason="keep it"))
    tool.permission = AUTO
    done = await session_of(tool, store, None).resume(turn.suspended.run_id)
    assert (texts(done.messages)[0].splitlines()[0], tool.erased) == ("'erase' may not be run: keep it.", [])


async def test_a_rule_that_a_person_chose_to_keep_answers_the_calls_like_it_that_wait(store: RunStore) -> None:
    tool = Eraser(CONFIRM)
    reply = calls(("erase", ARGUMENTS), ("erase", {"path": "b.txt"}))
    turn = await session_of(tool, store, reply).turn(reply)
    assert turn.suspended is not None
    first, _ = turn.suspended.pending
    keep = Decision(verdict="approve", request_id=first.id, remember=Rule(effect="auto", tool="erase", scope="run"))
    half = await session_of(tool, store, reply).resume(first.run_id, [keep])
    done = half if half.suspended is None else await session_of(tool, store, reply).resume(first.run_id)
    assert (done.suspended, [one["path"] for one in tool.erased]) == (None, ["a.txt", "b.txt"])
