"""An agent as a tool of another one: what it is given, what it shares with its lead, and what its lead reads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp import Client
from tests.agent.worlds import Bank, calls, conversation_is_well_formed
from toolwire import Agent, Budget, CallContext, Caller, Rule, Session, ToolRegistry, ToolServer, ToolSpec
from toolwire.middleware import Cache, Retry
from toolwire.models import ModelFailed, Price, Usage
from toolwire.testing import ScriptedModel
from toolwire.types import AgentResult


class Bill(BaseModel):
    """Pays a bill."""

    amount: int = Field(ge=1)
    to: str

    @field_validator("to")
    @classmethod
    def check_to(cls, value: str) -> str:
        if value == "eve":
            raise ValueError("we do not pay eve")
        return value


class Report(BaseModel):
    """The end of the work."""

    total: int


def last_result(result: AgentResult[Any]) -> str:
    """The text of the last result that the lead's model has read."""
    return [message["content"] for message in result.messages if message["role"] == "tool"][-1]


async def test_a_task_in_words_is_the_prompt_and_the_answer_is_the_result() -> None:
    bank = Bank()
    child = ScriptedModel([calls("pay", amount=5), "Paid 5."])
    payer = Agent("payer", child, bank.tools, instructions="You pay.")
    lead = ScriptedModel([calls("payer", task="Pay 5."), "Done."])
    result = await Agent("lead", lead, [payer.as_tool("Pays bills.")]).run("What is due?")
    assert (result.stop, result.text, bank.paid, last_result(result)) == ("answered", "Done.", [5], "Paid 5.")
    assert child.requests[0].system == "You pay."
    assert child.requests[0].messages == [{"role": "user", "content": "Pay 5."}]
    assert result.usage == Usage(input=400, output=40)
    conversation_is_well_formed(result.messages)


async def test_the_fields_of_a_model_are_checked_before_the_child_is_asked() -> None:
    child = ScriptedModel(["Paid."])
    tool = Agent("payer", child).as_tool("Pays bills.", input_model=Bill, name="pay_bill")
    wrong = [calls("pay_bill", amount=0, to="bob"), calls("pay_bill", amount=1, to="eve"), calls("pay_bill", amount=1)]
    lead = ScriptedModel([*wrong, calls("pay_bill", amount=5, to="bob"), "Done."])
    result = await Agent("lead", lead, [tool]).run("Pay.")
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert ["amount" in told[0], "we do not pay eve" in told[1], "to" in told[2], told[3]] == [
        True,
        True,
        True,
        "Paid.",
    ]
    assert [request.messages[0]["content"] for request in child.requests] == ['{"amount":5,"to":"bob"}']


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini", "xml", "json", "attp"])
async def test_a_child_without_a_model_has_that_of_the_agent_above(protocol: str) -> None:
    bank = Bank()
    script = [calls("payer", task="Pay."), calls("clerk", task="Pay."), calls("pay", amount=5), "Yes.", "Yes.", "Done."]
    model = ScriptedModel(script, protocol=protocol)
    payer = Agent("payer", None, [Agent("clerk", None, bank.tools).as_tool("Pays.")])
    result = await Agent("lead", model, [payer.as_tool("Pays.")]).run("Pay.")
    assert (result.text, bank.paid, len(model.requests)) == ("Done.", [5], 6)


async def test_a_child_may_speak_another_protocol() -> None:
    bank = Bank()
    child = ScriptedModel([calls("pay", amount=5), "Paid."], protocol="attp")
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."], protocol="anthropic")
    result = await Agent("lead", lead, [Agent("payer", child, bank.tools).as_tool("Pays.")]).run("Pay.")
    assert (result.text, bank.paid) == ("Done.", [5])


async def test_the_output_of_a_child_is_its_lead_s_result_and_not_its_lead_s_end() -> None:
    child = Agent("counter", ScriptedModel([calls("report", total=3)]), output=Report)
    model = ScriptedModel([calls("counter", task="Count."), calls("report", total=4)])
    result = await Agent("lead", model, [child.as_tool("Counts.")], output=Report).run("Count.")
    assert (result.stop, result.output, len(model.requests)) == ("answered", Report(total=4), 2)
    assert '"total":3' in str(result.messages[2]["content"]).replace(" ", "")


async def test_several_children_in_one_reply_run_side_by_side() -> None:
    met = asyncio.Barrier(3)

    async def meet() -> str:
        """Waits for the others."""
        async with asyncio.timeout(5):
            await met.wait()
        return "met"

    children = [Agent(name, ScriptedModel([calls("meet"), f"{name} met."]), [meet]) for name in ("one", "two", "three")]
    model = ScriptedModel([[(child.name, {"task": "Meet."}) for child in children], "Done."])
    result = await Agent("lead", model, [child.as_tool("Meets.") for child in children]).run("Meet.")
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert told == ["one met.", "two met.", "three met."]


@pytest.mark.parametrize(
    ("budget", "stop", "asked"),
    [(Budget(turns=3), "turns", 3), (Budget(tokens=300), "tokens", 3), (Budget(cost=0.0003), "cost", 3)],
)
async def test_the_budget_is_one_for_all(budget: Budget, stop: str, asked: int) -> None:
    price = Price(input=1.0, output=0.0)
    child = ScriptedModel(lambda _: calls("pay", amount=1), price=price)
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."], price=price)
    bank = Bank()
    payer = Agent("payer", child, bank.tools, budget=Budget(turns=1_000))
    result = await Agent("lead", lead, [payer.as_tool("Pays.")], budget=budget).run("Pay.")
    assert (result.stop, len(lead.requests) + len(child.requests), len(bank.paid)) == (stop, asked, asked - 1)
    assert result.usage.input == 100 * asked
    assert "stopped without an answer" in last_result(result)
    conversation_is_well_formed(result.messages)


async def test_a_child_s_own_budget_ends_the_child_alone() -> None:
    child = ScriptedModel(lambda _: calls("pay", amount=1))
    payer = Agent("payer", child, Bank().tools, budget=Budget(turns=2))
    result = await Agent("lead", ScriptedModel([calls("payer", task="Pay."), "Done."]), [payer.as_tool("Pays.")]).run(
        "Pay."
    )
    assert (result.stop, len(child.requests)) == ("answered", 2)
    assert "its turns are used up" in last_result(result)


async def test_the_seconds_of_the_lead_end_a_silent_child() -> None:
    from tests.agent.test_agent import SilentModel

    silent = SilentModel()
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."])
    payer = Agent("payer", silent).as_tool("Pays.")
    result = await Agent("lead", lead, [payer], budget=Budget(seconds=0.2)).run("Pay.")
    assert (result.stop, silent.is_closed, len(lead.requests)) == ("seconds", True, 1)
    conversation_is_well_formed(result.messages)


async def test_principal_and_state_are_those_of_the_run_and_the_agent_is_the_child() -> None:
    seen = list[Any]()

    def look(context: CallContext, token: str) -> str:
        """Looks."""
        seen.append((context.caller.principal, context.caller.agent, token))
        return "ok"

    look_up = ToolSpec.from_function(look).bind("token")
    clerk = Agent("clerk", ScriptedModel([calls("look"), "Looked."]), [look_up])
    payer = Agent("payer", ScriptedModel([calls("clerk", task="Look."), "Looked."]), [clerk.as_tool("Looks.")])
    lead = Agent("lead", ScriptedModel([calls("payer", task="Look."), "Done."]), [payer.as_tool("Looks.")])
    await lead.run("Look.", caller=Caller(principal="ann"), state={"token": "t"})
    assert seen == [("ann", "clerk", "t")]


async def test_the_state_of_an_agent_is_that_of_the_agents_below_it() -> None:
    seen = list[tuple[str, str]]()

    def look(token: str, user: str) -> str:
        """Looks."""
        seen.append((token, user))
        return "ok"

    tool = ToolSpec.from_function(look).bind("token").bind("user")
    clerk = Agent("clerk", ScriptedModel([calls("look"), "Looked."]), [tool])
    state = {"token": "of the payer", "user": "of the payer"}
    model = ScriptedModel([calls("clerk", task="Look."), "Looked."])
    payer = Agent("payer", model, [clerk.as_tool("Looks.")], state=state)
    lead = Agent("lead", ScriptedModel([calls("payer", task="Look."), "Done."]), [payer.as_tool("Looks.")])
    await lead.run("Look.", state={"user": "ann"})
    assert seen == [("of the payer", "ann")]


async def test_data_that_a_child_has_read_counts_for_its_lead_and_the_lead_s_for_the_child() -> None:
    sent = list[str]()

    def read() -> str:
        """Reads."""
        return "private"

    def send(text: str) -> str:
        """Sends."""
        sent.append(text)
        return text

    reads = ToolSpec.from_function(read, labels=["private", "untrusted"], effects=["read"])
    sends = ToolSpec.from_function(send, effects=["send"])
    reader = Agent("reader", ScriptedModel([calls("read"), "Read."]), [reads]).as_tool("Reads.")
    sender = Agent("sender", ScriptedModel([calls("send", text="x"), "Sent."]), [sends]).as_tool("Sends.")
    lead = ScriptedModel([calls("reader", task="Read."), calls("send", text="x"), calls("sender", task="Send."), "."])
    await Agent("lead", lead, [reader, sends, sender]).run("Read and send.")
    assert sent == []
    control = ScriptedModel([calls("send", text="x"), "Done."])
    await Agent("lead", control, [reader, sends]).run("Send.")
    assert sent == ["x"]


@pytest.mark.parametrize(
    ("rule", "paid"),
    [
        (Rule(effect="deny", tool="pay"), []),
        (Rule(effect="confirm", tool="pay"), []),
        (Rule(effect="deny", tool="pay", when=[{"path": "/arguments/amount", "op": ">", "value": 4}]), [3]),
        (Rule(effect="deny", tool="pay", agent="payer"), []),
        (Rule(effect="deny", tool="pay", agent="other"), [3, 5]),
    ],
    ids=["deny", "confirm", "condition", "agent", "other-agent"],
)
async def test_rules_of_the_lead_name_the_tools_of_a_child(rule: Rule, paid: list[int]) -> None:
    bank = Bank()
    child = ScriptedModel([calls("pay", amount=3), calls("pay", amount=5), "Done."])
    payer = Agent("payer", child, bank.tools, permissions={"pay": "auto"})
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."])
    await Agent("lead", lead, [payer.as_tool("Pays.")], policy=[rule]).run("Pay.")
    assert bank.paid == paid


async def test_a_circle_of_agents_ends_with_a_word() -> None:
    registry = ToolRegistry()
    model = ScriptedModel(lambda request: calls("payer", task="Pay.") if len(request.messages) == 1 else "Done.")
    payer = Agent("payer", model, registry)
    registry.register(payer.as_tool("Pays."))
    result = await payer.run("Pay.")
    assert (result.stop, result.text) == ("answered", "Done.")
    assert len(model.requests) == 2 * 6
    deepest = max(model.requests, key=lambda request: request.messages[-1]["content"].count("below"))
    assert "The agent 'payer' was not started: 5 agents are below each other already." in str(deepest.messages)


@pytest.mark.parametrize("layer", [Retry(attempts=3), Cache(ttl_s=60)], ids=["retry", "cache"])
async def test_middleware_of_the_lead_does_not_run_a_child_twice_in_one_call(layer: Any) -> None:
    bank = Bank()
    registry = ToolRegistry(middleware=[layer])
    child = ScriptedModel([calls("pay", amount=5), ModelFailed("overloaded", "busy")])
    registry.register(Agent("payer", child, bank.tools).as_tool("Pays."))
    result = await Agent("lead", ScriptedModel([calls("payer", task="Pay."), "Done."]), registry).run("Pay.")
    assert (bank.paid, len(child.requests), result.stop) == ([5], 2, "answered")


async def test_a_child_works_in_a_plain_session_and_called_directly() -> None:
    bank = Bank()
    child = ScriptedModel([calls("pay", amount=5), "Paid."] * 3)
    tool = Agent("payer", child, bank.tools, budget=Budget(turns=2)).as_tool("Pays.")
    function = {"name": "payer", "arguments": '{"task": "Pay."}'}
    reply = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    turn = await Session([tool], protocol="openai").turn(reply)
    assert (turn.results[0].data, bank.paid) == ("Paid.", [5])
    registry = ToolRegistry()
    registry.register(tool)
    assert (await registry.ainvoke("payer", {"task": "Pay."})).data == "Paid."
    async with Client(ToolServer(registry, "payers").in_memory()) as client:
        served = await client.call_tool("payer", {"task": "Pay."})
    assert (served.content[0].text, bank.paid) == ("Paid.", [5, 5, 5])  # type: ignore[union-attr]


async def test_a_child_without_a_model_below_no_agent_is_a_result_that_says_so() -> None:
    registry = ToolRegistry()
    registry.register(Agent("payer", None, []).as_tool("Pays."))
    result = await registry.ainvoke("payer", {"task": "Pay."})
    assert (result.success, "has no model" in str(result.error)) == (False, True)


async def test_the_events_tell_whose_they_are() -> None:
    bank = Bank()
    clerk = Agent(
        "clerk",
        ScriptedModel([calls("code_execution", code="pay(amount=5)"), calls("pay", amount=6), "Paid."]),
        bank.tools,
        programs=True,
    )
    payer = Agent("payer", ScriptedModel([calls("clerk", task="Pay."), "Paid."]), [clerk.as_tool("Pays.")])
    lead = Agent("lead", ScriptedModel([calls("payer", task="Pay."), "Done."]), [payer.as_tool("Pays.")])
    events = [event async for event in lead.stream("Pay.")]
    starts = [(event.agent, event.tool.tool) for event in events if event.tool and event.tool.type == "TOOL_START"]
    whole = ("lead", "payer", "clerk")
    assert starts == [
        (whole[:1], "payer"),
        (whole[:2], "clerk"),
        (whole, "code_execution"),
        (whole, "pay"),
        (whole, "pay"),
    ]
    assert [event.agent for event in events if event.type == "stopped"] == [whole, whole[:2], whole[:1]]
    texts = [(event.agent[-1], event.text) for event in events if event.type == "text"]
    assert texts == [("clerk", "Paid."), ("payer", "Paid."), ("lead", "Done.")]
    assert bank.paid == [5, 6]
