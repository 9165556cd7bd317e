"""A sub-agent that stops is a result that says why, and one that is interrupted leaves its lead a whole history."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.agent.test_agent import SilentModel
from tests.agent.test_subagents import last_result
from tests.agent.worlds import Bank, calls, conversation_is_well_formed
from toolwire import Agent, Budget, Store, ToolRegistry
from toolwire.models import ModelFailed, Request
from toolwire.testing import ScriptedModel


class MutteringModel(ScriptedModel):
    """A model whose replies are empty."""

    async def stream(self, request: Request, /) -> Any:
        self.requests.append(request)
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}


class FilteredModel(ScriptedModel):
    """A model whose provider filters its replies."""

    async def stream(self, request: Request, /) -> Any:
        self.requests.append(request)
        choice = {"index": 0, "delta": {"role": "assistant", "content": "I"}, "finish_reason": "content_filter"}
        yield {"choices": [choice]}


@pytest.mark.parametrize(
    ("model", "budget", "words"),
    [
        (ScriptedModel(lambda _: calls("pay", amount=1)), Budget(turns=2), "its turns are used up"),
        (ScriptedModel(lambda _: calls("pay", amount=1)), Budget(tokens=1), "the tokens of the budget are used up"),
        (SilentModel(), Budget(seconds=0.05), "the time of the budget is over"),
        (MutteringModel([]), Budget(), "wrote four replies in a row that could not be read"),
        (FilteredModel([]), Budget(), "could not do it"),
        (ScriptedModel([ModelFailed("auth", "no key")]), Budget(), "could not be reached: no key"),
    ],
    ids=["turns", "tokens", "seconds", "unreadable", "declined", "model"],
)
async def test_a_child_that_stops_is_a_result_that_says_why(model: Any, budget: Budget, words: str) -> None:
    payer = Agent("payer", model, Bank().tools, budget=budget)
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."])
    result = await Agent("lead", lead, [payer.as_tool("Pays.")]).run("Pay.")
    assert (result.stop, result.text) == ("answered", "Done.")
    assert f"The agent 'payer' {words}" in last_result(result).replace("stopped without an answer: ", "")
    conversation_is_well_formed(result.messages)


async def test_an_agent_that_cannot_be_reached_is_marked() -> None:
    registry = ToolRegistry()
    registry.register(Agent("payer", ScriptedModel([ModelFailed("network", "no route")])).as_tool("Pays."))
    result = await registry.ainvoke("payer", {"task": "Pay."})
    assert (result.failure and result.failure.kind, result.metadata["unavailable"]) == ("unavailable", True)


async def test_a_child_with_more_replies_than_notes_ends_with_a_word(agent_store: Any) -> None:
    bank = Bank()
    child = ScriptedModel(lambda _: calls("pay", amount=1))
    payer = Agent("payer", child, bank.tools, budget=Budget(turns=None)).as_tool("Pays.")
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."])
    result = await Agent("lead", lead, [payer], budget=Budget(turns=None), store=agent_store).run("Pay.")
    assert (result.stop, len(bank.paid), len(child.requests)) == ("answered", 100, 101)
    assert "stopped without an answer" in last_result(result)


async def begun_and_cancelled(lead: Agent[Any], begun: asyncio.Event) -> None:
    running = asyncio.create_task(lead.run("Pay.", conversation="c"))
    async with asyncio.timeout(5):
        await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_lead_cancelled_while_a_tool_of_its_child_runs(agent_store: Any) -> None:
    paid, begun = list[int](), asyncio.Event()

    async def pay(amount: int) -> int:
        """Pays."""
        paid.append(amount)
        begun.set()
        await asyncio.Event().wait()
        return amount

    child, model = ScriptedModel([calls("pay", amount=5)]), ScriptedModel([calls("payer", task="Pay.")])
    lead = Agent("lead", model, [Agent("payer", child, [pay]).as_tool("Pays.")], store=agent_store)
    await begun_and_cancelled(lead, begun)
    lead.model = ScriptedModel(["Done."])
    result = await lead.run("Go on.", conversation="c")
    assert (result.stop, paid, len(child.requests)) == ("answered", [5], 1)
    conversation_is_well_formed(result.messages)
    told = last_result(result)
    assert "may have taken effect" in told
    assert "be repeated" not in told.replace("may not be repeated", "")
    assert "was not run" not in told


async def test_a_lead_cancelled_while_the_model_of_its_child_is_silent(agent_store: Any) -> None:
    bank, silent = Bank(), SilentModel()

    class PaysOnce(ScriptedModel):
        async def stream(self, request: Request, /) -> Any:
            source = super() if not self.requests else silent
            async with aclosing(source.stream(request)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece

    child = PaysOnce([calls("pay", amount=5)])
    model = ScriptedModel([calls("payer", task="Pay.")])
    lead = Agent("lead", model, [Agent("payer", child, bank.tools).as_tool("Pays.")], store=agent_store)
    await begun_and_cancelled(lead, silent.begun)
    assert silent.is_closed
    lead.model = ScriptedModel(["Done."])
    result = await lead.run("Go on.", conversation="c")
    assert (result.stop, bank.paid) == ("answered", [5])
    conversation_is_well_formed(result.messages)
    told = last_result(result)
    assert "may have taken effect" in told
    assert "be repeated" not in told.replace("may not be repeated", "")


async def test_leaving_the_events_closes_the_stream_of_a_child() -> None:
    silent = SilentModel()
    model = ScriptedModel([calls("payer", task="Pay.")])
    lead = Agent("lead", model, [Agent("payer", silent).as_tool("Pays.")])
    async with aclosing(lead.stream("Pay.")) as events:
        async for event in events:
            if event.agent == ("lead", "payer"):
                break
    assert silent.is_closed or not silent.begun.is_set()


async def test_a_crash_of_a_child_s_model_is_the_owner_s_error_and_the_lead_goes_on(store: Store) -> None:
    lead = ScriptedModel([calls("payer", task="Pay."), "Done."])
    payer = Agent("payer", ScriptedModel([RuntimeError("a bug")])).as_tool("Pays.")
    result = await Agent("lead", lead, [payer], store=store).run("Pay.")
    assert (result.stop, result.text) == ("answered", "Done.")
    conversation_is_well_formed(result.messages)


@pytest.mark.parametrize(("acts", "hint"), [(True, "may have taken effect"), (False, "Try again later")])
async def test_an_agent_that_had_acted_before_it_failed_is_told_so(acts: bool, hint: str) -> None:
    bank = Bank()
    failed = ModelFailed("overloaded", "busy")
    payer = Agent("payer", ScriptedModel([calls("pay", amount=5), failed] if acts else [failed]), bank.tools)
    model = ScriptedModel([calls("payer", task="Pay."), "Done."])
    result = await Agent("lead", model, [payer.as_tool("Pays.")]).run("Pay.")
    assert bank.paid == ([5] if acts else [])
    assert hint in result.messages[2]["content"]
