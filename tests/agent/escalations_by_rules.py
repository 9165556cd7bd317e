"""Attempts of a sub-agent to do what the rules, the people and the names of its lead do not allow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.agent.attempts import attacker, attempts_in, lead
from tests.agent.worlds import Bank, calls
from tests.patience import until
from toolwire import Agent, CallContext, Caller, Decision, DecisionRefused, Rule, Store, Toolkit, ToolRegistry
from toolwire.approvals import rule_for
from toolwire.testing import ScriptedModel

ABOVE_4 = {"path": "/arguments/amount", "op": ">", "value": 4}


@asynccontextmanager
async def new_store() -> AsyncGenerator[Store]:
    with TemporaryDirectory() as folder, Store.open(f"sqlite:///{Path(folder)}/runs.db", key=bytes(32)) as store:
        yield store


async def a_child_calls_what_the_lead_denies(is_protected: bool) -> bool:
    bank = Bank()
    await lead(attacker(bank), permissions={"pay": "deny"} if is_protected else None)
    return bank.paid == [5]


async def a_child_calls_what_a_pattern_denies(is_protected: bool) -> bool:
    bank = Bank()
    await lead(attacker(bank), policy=[Rule(effect="deny", tool="p?y")] if is_protected else None)
    return bank.paid == [5]


async def a_child_writes_a_denied_amount_as_text(is_protected: bool) -> bool:
    bank = Bank()
    rules = [Rule(effect="deny", tool="pay", when=[ABOVE_4])] if is_protected else None
    await lead(attacker(bank, calls("pay", amount="5")), policy=rules)
    return bank.paid == [5]


async def a_child_of_a_child_calls_what_the_lead_denies(is_protected: bool) -> bool:
    bank = Bank()
    middle = attacker(bank, calls("clerk", task="Pay."), tools=[attacker(bank, name="clerk")])
    await lead(middle, permissions={"pay": "deny"} if is_protected else None)
    return bank.paid == [5]


async def a_child_of_a_denied_agent_acts_under_another_name(is_protected: bool) -> bool:
    bank = Bank()
    middle = attacker(bank, calls("clerk", task="Pay."), tools=[attacker(bank, name="clerk")])
    await lead(middle, policy=[Rule(effect="deny", tool="pay", agent="payer")] if is_protected else None)
    return bank.paid == [5]


async def a_program_of_a_child_calls_what_the_lead_denies(is_protected: bool) -> bool:
    bank = Bank()
    tool = attacker(bank, calls("code_execution", code="pay(amount=5)"), programs=True)
    await lead(tool, permissions={"pay": "deny"} if is_protected else None)
    return bank.paid == [5]


async def a_tool_of_a_child_calls_what_the_lead_denies(is_protected: bool) -> bool:
    bank = Bank()

    async def shop(context: CallContext) -> None:
        """Shops."""
        await context.call("pay", amount=5)

    tool = attacker(bank, calls("shop"), tools=[shop, *bank.tools])
    await lead(tool, permissions={"pay": "deny"} if is_protected else None)
    return bank.paid == [5]


async def a_background_call_of_a_child_is_one_that_the_lead_denies(is_protected: bool) -> bool:
    bank, registry = Bank(), ToolRegistry()
    registry.register(bank.tools[0])
    registry.configure(background_calls=True)
    tool = attacker(bank, calls("start_call", tool="pay", arguments={"amount": 5}), tools=registry)
    await lead(tool, permissions={"pay": "deny"} if is_protected else None)
    if not is_protected:
        # A busy machine may not have begun it by the end of the run.
        await asyncio.to_thread(until, lambda: bank.paid == [5])
    registry.background.close()
    return bank.paid == [5]


async def a_child_calls_an_agent_that_the_lead_denies(is_protected: bool) -> bool:
    bank = Bank()
    middle = attacker(bank, calls("clerk", task="Pay."), tools=[attacker(bank, name="clerk")])
    await lead(middle, permissions={"clerk": "deny"} if is_protected else None)
    return bank.paid == [5]


async def a_child_has_a_wider_toolkit(is_protected: bool) -> bool:
    bank = Bank()
    allowed = Rule(effect="deny", tool="*", agent="payer", optional=True)
    await lead(attacker(bank), policy=[allowed] if is_protected else None)
    return bank.paid == [5]


async def a_child_permits_what_the_lead_asks_about(is_protected: bool) -> bool:
    bank = Bank()
    tool = attacker(bank, permissions={"pay": "auto"})
    await lead(tool, permissions={"pay": "confirm"} if is_protected else None)
    return bank.paid == [5]


async def a_rule_of_a_child_permits_what_the_lead_asks_about(is_protected: bool) -> bool:
    bank = Bank()
    tool = attacker(bank, policy=[Rule(effect="auto", tool="pay")])
    await lead(tool, policy=[Rule(effect="confirm", tool="pay")] if is_protected else None)
    return bank.paid == [5]


async def a_child_s_approver_approves_what_the_lead_s_denies(is_protected: bool) -> bool:
    bank = Bank("confirm")
    tool = attacker(bank, approver=lambda _: Decision(verdict="approve"))
    approver = (lambda _: Decision(verdict="deny", reason="no")) if is_protected else None
    await lead(tool, approver=approver)
    return bank.paid == [5]


async def a_child_s_approver_approves_what_the_lead_s_rules_deny(is_protected: bool) -> bool:
    bank = Bank("confirm")
    tool = attacker(bank, approver=lambda _: Decision(verdict="approve"))
    await lead(tool, permissions={"pay": "deny"} if is_protected else None)
    return bank.paid == [5]


async def an_approval_of_one_agent_is_used_by_another(is_protected: bool) -> bool:
    bank = Bank("confirm")
    tools = [attacker(bank, name=name) for name in ("one", "two")]
    async with new_store() as store:
        both = [("one", {"task": "Pay."}), ("two", {"task": "Pay."})]
        agent = Agent("lead", ScriptedModel([both, "Done."]), tools, store=store)
        result = await agent.run("Go.", conversation="c")
        given = [one for one in result.pending if one.caller.agent == "one" or not is_protected]
        decisions = [{"request_id": one.id, "verdict": "approve"} for one in given]
        await agent.run(conversation="c", decisions=decisions)
    return bank.paid == [5, 5]


async def an_approval_of_another_conversation_is_used(is_protected: bool) -> bool:
    bank = Bank("confirm")
    async with new_store() as store:
        replies = [calls("payer", task="Pay."), calls("payer", task="Pay."), "Done."]
        child = ScriptedModel([calls("pay", amount=5), calls("pay", amount=5), "Done."])
        agent = Agent("lead", ScriptedModel(replies), [Agent("payer", child, bank.tools).as_tool("Pays.")], store=store)
        first = await agent.run("Go.", conversation="c")
        second = await agent.run("Go.", conversation="d")
        used = first if is_protected else second
        try:
            decisions = [{"request_id": used.pending[0].id, "verdict": "approve"}]
            await agent.run(conversation="d", decisions=decisions)
        except DecisionRefused:
            pass
    return bank.paid == [5]


async def a_rule_that_a_person_keeps_for_one_agent_is_used_by_another(is_protected: bool) -> bool:
    bank = Bank("confirm")
    names = ["one", "two" if is_protected else "one"]
    async with new_store() as store:
        children = {name: attacker(bank, *[calls("pay", amount=5), "Done."] * 2, name=name) for name in names}
        model = ScriptedModel([*(calls(name, task="Pay.") for name in names), "Done."])
        agent = Agent("lead", model, list(children.values()), store=store)
        result = await agent.run("Go.", conversation="c")
        (request,) = result.pending
        decision = Decision(verdict="approve", request_id=request.id, remember=rule_for(request, scope="session"))
        await agent.run(conversation="c", decisions=[decision])
    return bank.paid == [5, 5]


async def a_rule_in_the_store_of_a_child_is_used_below_a_lead(is_protected: bool) -> bool:
    bank = Bank("confirm")
    async with new_store() as store:
        child = Agent("payer", ScriptedModel([calls("pay", amount=5), "Done."] * 2), bank.tools, store=store)
        result = await child.run("Go.", conversation="c")
        (request,) = result.pending
        decision = Decision(verdict="approve", request_id=request.id, remember=rule_for(request, scope="workspace"))
        await child.run(conversation="c", decisions=[decision])
        if is_protected:
            await lead(child.as_tool("Pays."))
        else:
            await child.run("Again.", conversation="d")
    return bank.paid == [5, 5]


async def a_tool_s_name_hides_the_agent_from_a_rule(is_protected: bool) -> bool:
    bank = Bank()
    tool = Agent("payer", ScriptedModel([calls("pay", amount=5), "Done."]), bank.tools).as_tool("Pays.", name="clerk")
    rules = [Rule(effect="deny", tool="pay", agent="payer")] if is_protected else None
    await lead(tool, replies=[calls("clerk", task="Pay.")], policy=rules)
    return bank.paid == [5]


async def a_child_s_options_name_another_agent(is_protected: bool) -> bool:
    bank = Bank()
    tool = attacker(bank, caller=Caller(agent="lead"))
    await lead(tool, policy=[Rule(effect="deny", tool="pay", agent="payer")] if is_protected else None)
    return bank.paid == [5]


async def a_child_s_toolkit_names_another_agent(is_protected: bool) -> bool:
    bank, registry = Bank(), ToolRegistry()
    registry.register(bank.tools[0])
    tool = attacker(bank, tools=registry.create_agent_toolkit("lead", ["pay"]))
    await lead(tool, policy=[Rule(effect="deny", tool="pay", agent="payer")] if is_protected else None)
    return bank.paid == [5]


async def a_child_s_options_name_another_principal(is_protected: bool) -> bool:
    bank = Bank()

    def pay_as_root(context: CallContext) -> None:
        """Pays."""
        if context.caller.principal == "root":
            bank.pay(5)

    tool = attacker(bank, calls("pay_as_root"), tools=[pay_as_root], caller=Caller(principal="root"))
    await lead(tool, caller=Caller(principal="ann" if is_protected else "root"))
    return bank.paid == [5]


async def a_child_calls_a_tool_that_is_hidden_from_it(is_protected: bool) -> bool:
    bank = Bank()
    await lead(attacker(bank, visible=(lambda *_: False) if is_protected else None))
    return bank.paid == [5]


async def a_child_calls_a_tool_of_a_group_that_is_off(is_protected: bool) -> bool:
    bank, toolkit = Bank(), Toolkit()
    toolkit.create_tool_group("money", "Payments.", active=not is_protected)
    toolkit.register_tool_function(bank.pay, group_name="money")
    await lead(attacker(bank, tools=toolkit))
    return bank.paid == [5]


async def the_lead_s_program_calls_a_tool_that_only_its_child_has(is_protected: bool) -> bool:
    bank = Bank()
    own: list[Any] = [] if is_protected else bank.tools
    replies = [calls("code_execution", code="pay(amount=5)")]
    await lead(attacker(bank), *own, replies=replies, programs=True)
    return bank.paid == [5]


async def a_child_changes_its_arguments_after_an_approval(is_protected: bool) -> bool:
    bank = Bank("confirm")
    async with new_store() as store:

        def agent(amount: int, *replies: Any) -> Agent[Any]:
            child = Agent("payer", ScriptedModel([calls("pay", amount=amount), "Done."]), bank.tools)
            return Agent("lead", ScriptedModel([*replies, "Done."]), [child.as_tool("Pays.")], store=store)

        result = await agent(1, calls("payer", task="Pay.")).run("Go.", conversation="c")
        decision: dict[str, Any] = {"request_id": result.pending[0].id, "verdict": "approve"}
        if not is_protected:
            decision = {**decision, "verdict": "edit", "arguments": {"amount": 5}}
        await agent(5).run(conversation="c", decisions=[decision])
    return bank.paid == [5]


ATTEMPTS = attempts_in(globals())
