"""`Session.turn(reply, below=context)`: the calls of a sub-agent's reply are calls of the running tool."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from tests.session.test_interrupt import reply
from toolwire import CallContext, Caller, ConfigurationError, Rule, Session, ToolRegistry, Turn
from toolwire.session.runs.resume import RunStore


def call(name: str, **arguments: Any) -> dict[str, Any]:
    import json

    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


class Report(BaseModel):
    """The end of the sub-agent's work."""

    total: int


class World:
    """A lead with a tool `delegate`, whose sub-agent pays by replies of a script."""

    def __init__(self, replies: list[Any], **options: Any) -> None:
        self.replies = replies
        self.paid: list[int] = []
        self.turns: list[Turn] = []
        self.inner = ToolRegistry()
        self.inner.register(self.pay, permission="confirm" if options.pop("asks", False) else "auto")
        self.options = options
        self.lead = ToolRegistry()
        self.lead.register(self.delegate)

    def pay(self, amount: int) -> int:
        """Pays."""
        self.paid.append(amount)
        return amount

    async def delegate(self, context: CallContext) -> str:
        """Lets another agent work."""
        caller = Caller(principal="ann", agent="payer")
        child = Session(self.inner, protocol="openai", caller=caller, **self.options)
        for at in range(len(self.replies)):
            turn = await child.turn(self.replies[at], below=context)
            self.turns.append(turn)
            if turn.is_final:
                return f"{turn.answer} {turn.final}"
        return "no answer"


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def test_the_calls_of_the_reply_run_and_the_answer_is_the_tools(store: RunStore) -> None:
    world = World([call("pay", amount=5), said("Paid.")])
    turn = await Session(world.lead, protocol="openai", store=store).turn(reply("delegate"))
    assert (turn.results[0].data, world.paid) == ("Paid. None", [5])
    first = world.turns[0]
    assert [message["content"] for message in first.messages] == ["5"]
    assert first.messages[0]["tool_call_id"] == "c"


async def test_approvals_below_are_the_leads_and_survive_a_restart(store: RunStore) -> None:
    two = call("pay", amount=1)
    two["tool_calls"] += [{**two["tool_calls"][0], "id": "d"}]
    world = World([two, said("Done.")], asks=True)
    turn = await Session(world.lead, protocol="openai", store=store, conversation="c").turn(reply("delegate"))
    assert turn.suspended is not None
    requests = turn.suspended.pending
    assert [(request.tool, request.caller.agent) for request in requests] == [("pay", "payer")] * 2
    assert world.paid == []
    again = World([two, said("Done.")], asks=True)
    decisions = [{"request_id": request.id, "verdict": "approve"} for request in requests]
    session = Session(again.lead, protocol="openai", store=store, conversation="c")
    turn = await session.resume(turn.run_id, decisions)
    assert (turn.results[0].data, again.paid) == ("Done. None", [1, 1])


async def test_the_leads_rules_hold_below() -> None:
    world = World([call("pay", amount=5), said("It was denied.")])
    policy = [Rule(effect="deny", tool="pay", note="no payments today", optional=True)]
    await Session(world.lead, protocol="openai", policy=policy).turn(reply("delegate"))
    (result,) = world.turns[0].results
    assert (result.success, world.paid) == (False, [])
    assert "no payments today" in result.text


async def test_the_control_without_the_rule_pays() -> None:
    world = World([call("pay", amount=5), said("Paid.")])
    await Session(world.lead, protocol="openai").turn(reply("delegate"))
    assert world.paid == [5]


async def test_its_end_is_its_own_and_not_the_leads() -> None:
    ends = call("report", total=3)
    ends["tool_calls"] += [{**call("pay", amount=9)["tool_calls"][0], "id": "late"}]
    world = World([ends], finish=Report)
    turn = await Session(world.lead, protocol="openai", finish="answer").turn(reply("delegate"))
    assert (turn.results[0].data, turn.final, turn.is_final) == ("None total=3", None, False)
    late = world.turns[0].results[1]
    assert ("was not run" in late.text, world.paid) == (True, [])


async def test_its_program_ends_its_work_and_not_the_leads() -> None:
    program = call("code_execution", code="pay(amount=4)\nreport(total=4)\npay(amount=9)")
    world = World([program], finish=Report, programs=True)
    turn = await Session(world.lead, protocol="openai", finish=Report).turn(reply("delegate"))
    assert (turn.results[0].data, turn.final, turn.is_final) == ("None total=4", None, False)
    assert world.paid == [4]


async def test_an_end_that_does_not_fit_is_told_to_its_model() -> None:
    world = World([call("report", total="many"), call("report", total=3)], finish=Report)
    await Session(world.lead, protocol="openai").turn(reply("delegate"))
    assert [turn.final for turn in world.turns] == [None, Report(total=3)]
    assert "total" in world.turns[0].results[0].text


async def test_an_unreadable_reply_is_told() -> None:
    world = World([{"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, said("Sorry.")])
    await Session(world.lead, protocol="openai").turn(reply("delegate"))
    assert [turn.reply.is_refused for turn in world.turns] == [True, False]


@pytest.mark.parametrize("option", [{"events": print}, {"caller": Caller(principal="eve")}])
async def test_options_of_the_running_call_are_refused(option: dict[str, Any]) -> None:
    registry, said_by = ToolRegistry(), list[str]()

    @registry.register
    async def delegate(context: CallContext) -> None:
        """Delegates."""
        try:
            await Session([], protocol="openai").turn(said("Hi."), below=context, **option)
        except ConfigurationError as error:
            said_by.append(str(error))

    await Session(registry, protocol="openai").turn(reply("delegate"))
    assert [f"leave {next(iter(option))}= out" in text for text in said_by] == [True]


@pytest.mark.parametrize(("above", "own"), [(0.1, 60.0), (60.0, 0.1), (None, 0.1)])
async def test_the_earlier_deadline_counts(above: float | None, own: float) -> None:
    registry, turns = ToolRegistry(), list[Turn]()

    @registry.register
    async def wait() -> None:
        """Waits."""
        await asyncio.Event().wait()

    lead = ToolRegistry()

    @lead.register
    async def delegate(context: CallContext) -> None:
        """Delegates."""
        turns.append(await Session(registry, protocol="openai").turn(call("wait"), deadline_s=own, below=context))

    await Session(lead, protocol="openai").turn(reply("delegate"), deadline_s=above)
    assert [turn.results[0].failure and turn.results[0].failure.kind for turn in turns] == ["timeout"] * (own < 1)


async def test_a_session_with_a_store_of_its_own_is_refused(store: RunStore) -> None:
    world = World([call("pay", amount=5)], store=store)
    turn = await Session(world.lead, protocol="openai").turn(reply("delegate"))
    assert "leave store= out" in str(turn.results[0].error)


async def test_a_circle_of_sub_agents_ends_with_a_word() -> None:
    registry = ToolRegistry()
    errors: list[str] = []

    @registry.register
    async def delegate(context: CallContext) -> str:
        """Delegates to itself."""
        try:
            await Session(registry, protocol="openai").turn(reply("delegate"), below=context)
        except ConfigurationError as error:
            errors.append(str(error))
        return "done"

    turn = await Session(registry, protocol="openai").turn(reply("delegate"))
    assert turn.results[0].data == "done"
    assert ["5 catalogues are below each other already" in error for error in errors] == [True]
