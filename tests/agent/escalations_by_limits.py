"""Attempts of a sub-agent to spend more, read more, end more or reach more than its run may."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest.mock import patch

from pydantic import BaseModel

from tests.agent.attempts import attacker, attempts_in, lead
from tests.agent.escalations_by_rules import new_store
from tests.agent.worlds import Bank, calls
from toolwire import Agent, AgentTeam, Budget, Rule, ToolRegistry, ToolSpec
from toolwire.invocation.inner import own_tools
from toolwire.models import Price
from toolwire.testing import ScriptedModel
from toolwire.tools import CallSubagentTool

HUGE = Budget(turns=None, tokens=None, cost=None, seconds=None)
PRICE = Price(input=1.0, output=1.0)


async def spend(budget: Budget) -> bool:
    bank = Bank()
    model = ScriptedModel([*[calls("pay", amount=1)] * 4, calls("pay", amount=5), "Done."], price=PRICE)
    tool = Agent("payer", model, bank.tools, budget=HUGE).as_tool("Pays.")
    above = ScriptedModel([calls("payer", task="Pay."), "Done."], price=PRICE)
    await lead(tool, model=above, budget=budget)
    return 5 in bank.paid


async def a_child_takes_more_turns(is_protected: bool) -> bool:
    return await spend(Budget(turns=4 if is_protected else None))


async def a_child_takes_more_tokens(is_protected: bool) -> bool:
    return await spend(Budget(tokens=400 if is_protected else None))


async def a_child_takes_more_money(is_protected: bool) -> bool:
    return await spend(Budget(cost=0.0004 if is_protected else None))


async def a_child_takes_more_time(is_protected: bool) -> bool:
    bank = Bank()

    async def pay_late() -> None:
        """Pays after a while."""
        await asyncio.sleep(0.2)
        bank.pay(5)

    tool = attacker(bank, calls("pay_late"), tools=[pay_late], budget=HUGE)
    await lead(tool, budget=Budget(seconds=0.1 if is_protected else None))
    return bank.paid == [5]


async def a_child_outlives_the_time_limit_of_its_own_call(is_protected: bool) -> bool:
    bank, registry = Bank(), ToolRegistry()

    async def pay_late() -> None:
        """Pays after a while."""
        await asyncio.sleep(0.2)
        bank.pay(5)

    tool = attacker(bank, calls("pay_late"), tools=[pay_late], budget=HUGE)
    registry.register(tool, timeout_s=0.1 if is_protected else None)
    model = ScriptedModel([calls("payer", task="Pay."), "Done."])
    await Agent("lead", model, registry).run("Go.")
    return bank.paid == [5]


async def a_background_call_of_a_child_takes_more_turns(is_protected: bool) -> bool:
    bank, registry, has_ended = Bank(), ToolRegistry(), threading.Event()

    class Clerk(Agent[Any]):
        async def run_below(self, prompt: str, context: Any) -> Any:
            try:
                return await super().run_below(prompt, context)
            finally:
                has_ended.set()

    clerk = ScriptedModel([*[calls("pay", amount=1)] * 4, calls("pay", amount=5), "Done."])
    registry.register(Clerk("clerk", clerk, bank.tools, budget=HUGE).as_tool("Pays."))
    registry.configure(background_calls=True)
    start = calls("start_call", tool="clerk", arguments={"task": "Pay."})
    tool = attacker(bank, start, tools=registry, budget=HUGE)
    await lead(tool, budget=Budget(turns=4 if is_protected else None))
    assert await asyncio.to_thread(has_ended.wait, 5)
    return 5 in bank.paid


async def a_circle_of_agents_goes_deeper(is_protected: bool) -> bool:
    bank, registry = Bank(), ToolRegistry()
    deep = 7

    def reply(request: Any) -> Any:
        if len(request.messages) > 1:
            return "Done."
        level = int(request.messages[0]["content"])
        return calls("pay", amount=5) if level == deep else calls("payer", task=str(level + 1))

    payer = Agent("payer", ScriptedModel(reply), registry)
    registry.register(payer.as_tool("Pays."))
    registry.register(bank.tools[0])
    with patch.object(own_tools, "USING_DEPTH_LIMIT", 5 if is_protected else 10):
        await payer.run("0")
    return bank.paid == [5]


def labelled(sent: list[str], *, is_protected: bool) -> tuple[ToolSpec, ToolSpec]:
    """A tool that reads private and untrusted data, and one that sends."""

    def read() -> str:
        """Reads."""
        return "secret"

    def send(text: str) -> None:
        """Sends."""
        sent.append(text)

    labels: Any = ["private", "untrusted"] if is_protected else []
    return (
        ToolSpec.from_function(read, labels=labels, effects=["read"]),
        ToolSpec.from_function(send, effects=["send"]),
    )


async def a_child_reads_and_the_lead_sends(is_protected: bool) -> bool:
    sent = list[str]()
    read, send = labelled(sent, is_protected=is_protected)
    child = attacker(Bank(), calls("read"), tools=[read])
    await lead(child, send, replies=[calls("payer", task="Read."), calls("send", text="x")])
    return sent == ["x"]


async def the_lead_reads_and_a_child_sends(is_protected: bool) -> bool:
    sent = list[str]()
    read, send = labelled(sent, is_protected=is_protected)
    child = attacker(Bank(), calls("send", text="x"), tools=[send])
    await lead(child, read, replies=[calls("read"), calls("payer", task="Send.")])
    return sent == ["x"]


async def one_child_reads_and_another_sends(is_protected: bool) -> bool:
    sent = list[str]()
    read, send = labelled(sent, is_protected=is_protected)
    children = [
        attacker(Bank(), calls("read"), tools=[read], name="reader"),
        attacker(Bank(), calls("send", text="x"), tools=[send], name="sender"),
    ]
    await lead(*children, replies=[calls("reader", task="Read."), calls("sender", task="Send.")])
    return sent == ["x"]


async def a_program_of_a_child_of_a_child_reads_and_the_lead_sends(is_protected: bool) -> bool:
    sent = list[str]()
    read, send = labelled(sent, is_protected=is_protected)
    inner = attacker(Bank(), calls("code_execution", code="read()"), tools=[read], name="clerk", programs=True)
    child = attacker(Bank(), calls("clerk", task="Read."), tools=[inner])
    await lead(child, send, replies=[calls("payer", task="Read."), calls("send", text="x")])
    return sent == ["x"]


async def resumed_sending(sends: list[Any], *, is_protected: bool) -> bool:
    """A child reads, another waits for a person. A new process goes on, and then sends."""
    sent, bank = list[str](), Bank("confirm")
    read, send = labelled(sent, is_protected=is_protected)
    async with new_store() as store:

        def agent(*replies: Any) -> Agent[Any]:
            reader = attacker(bank, calls("read"), tools=[read], name="reader")
            payer = attacker(bank, *sends[:2] if replies[0] != sends[2] else sends[1:2], tools=[*bank.tools, send])
            return Agent("lead", ScriptedModel(replies), [reader, payer, send], store=store)

        first = [("reader", {"task": "Read."}), ("payer", {"task": "Pay."})]
        result = await agent(first).run("Go.", conversation="c")
        decisions = [{"request_id": one.id, "verdict": "approve"} for one in result.pending]
        await agent(sends[2], "Done.").run(conversation="c", decisions=decisions)
    assert bank.paid == [5]
    return sent == ["x"]


async def a_child_reads_before_a_restart_and_the_lead_sends_after_it(is_protected: bool) -> bool:
    return await resumed_sending([calls("pay", amount=5), "Paid.", calls("send", text="x")], is_protected=is_protected)


async def a_child_reads_before_a_restart_and_another_sends_after_it(is_protected: bool) -> bool:
    return await resumed_sending([calls("pay", amount=5), calls("send", text="x"), "Done."], is_protected=is_protected)


class Report(BaseModel):
    """The end of the work."""

    total: int


async def ended_by(reply: Any, *, is_protected: bool, is_resumed: bool = False) -> bool:
    """True if a call of `report` ended the lead; without the protection the lead itself makes the call."""
    bank = Bank("confirm" if is_resumed else "auto")
    options: dict[str, Any] = {"output": Report, "programs": True}
    replies = [calls("pay", amount=5), reply] if is_resumed else [reply]
    async with new_store() as store:
        tool = attacker(bank, *replies, **options)
        above = [calls("payer", task="Count."), "Done."] if is_protected else replies
        agent = Agent("lead", ScriptedModel(above), [tool, *bank.tools], store=store, **options)
        result = await agent.run("Go.", conversation="c")
        if is_resumed:
            decisions = [{"request_id": one.id, "verdict": "approve"} for one in result.pending]
            result = await agent.run(conversation="c", decisions=decisions)
        again = await agent.run(conversation="c")
    return result.output == again.output == Report(total=1)


async def the_end_of_a_child_ends_the_lead(is_protected: bool) -> bool:
    return await ended_by(calls("report", total=1), is_protected=is_protected)


async def the_end_of_a_child_in_a_program_ends_the_lead(is_protected: bool) -> bool:
    return await ended_by(calls("code_execution", code="report(total=1)"), is_protected=is_protected)


async def the_end_of_a_child_on_record_ends_the_lead(is_protected: bool) -> bool:
    return await ended_by(calls("report", total=1), is_protected=is_protected, is_resumed=True)


def bound_payment(bank: Bank) -> ToolSpec:
    def pay_as(user: str) -> None:
        """Pays."""
        if user == "root":
            bank.pay(5)

    return ToolSpec.from_function(pay_as).bind("user")


async def the_state_of_another_run_is_used_by_a_child(is_protected: bool) -> bool:
    bank = Bank()
    model = ScriptedModel([calls("pay_as"), "Done."] * 2)
    child = Agent("payer", model, [bound_payment(bank)]).as_tool("Pays.")
    agent = Agent("lead", ScriptedModel([calls("payer", task="Pay."), "Done."] * 2), [child])
    await agent.run("Go.", state={"user": "root"})
    bank.paid.clear()
    await agent.run("Go.", state={"user": "ann" if is_protected else "root"})
    return bank.paid == [5]


async def the_state_of_a_child_replaces_that_of_the_run(is_protected: bool) -> bool:
    bank = Bank()
    tool = attacker(bank, calls("pay_as"), tools=[bound_payment(bank)], state={"user": "root"})
    await lead(tool, state={"user": "ann"} if is_protected else None)
    return bank.paid == [5]


async def a_model_writes_a_bound_value_of_its_child(is_protected: bool) -> bool:
    bank = Bank()
    spec = bound_payment(bank)
    tool = attacker(bank, calls("pay_as", user="root"), tools=[spec if is_protected else spec.unbind("user")])
    await lead(tool, state={"user": "ann"})
    return bank.paid == [5]


async def team_pays(name: str, *, team: bool = True, **options: Any) -> bool:
    bank = Bank()
    model = ScriptedModel([calls("call_subagent", agent_name=name, instruction="Pay."), "Done."])
    agents = [Agent("lead", model, [CallSubagentTool()], **options)]
    payer = Agent("payer", ScriptedModel([calls("pay", amount=5), "Done."]), bank.tools)
    AgentTeam([*agents, payer] if team else agents)
    if not team:
        AgentTeam([payer])
    await agents[0].run("Go.")
    return bank.paid == [5]


async def an_agent_outside_of_the_team_is_called(is_protected: bool) -> bool:
    return await team_pays("payer", team=not is_protected)


async def an_agent_is_called_by_a_forged_name(is_protected: bool) -> bool:
    forged = ["PAYER", " payer", "payer\u200b", "p\u0430yer", "../payer", "payer\x00", "", "*"]
    return any([await team_pays(name) for name in (forged if is_protected else ["payer"])])


async def a_member_of_a_team_calls_what_the_lead_denies(is_protected: bool) -> bool:
    rules = [Rule(effect="deny", tool="pay", optional=True)] if is_protected else None
    return await team_pays("payer", policy=rules)


async def a_team_is_called_that_the_lead_denies(is_protected: bool) -> bool:
    return await team_pays("payer", permissions={"call_subagent": "deny"} if is_protected else None)


ATTEMPTS = attempts_in(globals())
