"""Approvals and questions below an agent: one list, kept in the store, and nobody is asked again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.agent.worlds import Bank, calls, conversation_is_well_formed
from toolwire import Agent, CallContext, Caller, InputRequired, Question, Store, ToolSpec
from toolwire.testing import ScriptedModel
from toolwire.types import AgentResult

PROGRAM = "print(pay(amount=4))"


class Company:
    """A lead with an agent `payer`, which has an agent `clerk`. All ask before they pay. A new one is a new process."""

    def __init__(self, store: Store, *, bank: Bank | None = None, is_resumed: bool = False) -> None:
        self.bank = bank or Bank("confirm")
        first: list[Any] = [] if is_resumed else [calls("pay", amount=1)]
        self.clerk_model = ScriptedModel([*first, "Clerk paid."])
        first = [] if is_resumed else [[("clerk", {"task": "Pay."}), ("pay", {"amount": 2})]]
        self.payer_model = ScriptedModel([*first, "Payer paid."])
        first = [] if is_resumed else [calls("code_execution", code=PROGRAM)]
        self.coder_model = ScriptedModel([*first, "Coder paid."])
        first = (
            [] if is_resumed else [[("payer", {"task": "Pay."}), ("coder", {"task": "Pay."}), ("pay", {"amount": 3})]]
        )
        self.lead_model = ScriptedModel([*first, "All paid."])
        clerk = Agent("clerk", self.clerk_model, self.bank.tools)
        payer = Agent("payer", self.payer_model, [clerk.as_tool("Pays."), *self.bank.tools])
        coder = Agent("coder", self.coder_model, self.bank.tools, programs=True)
        tools = [payer.as_tool("Pays."), coder.as_tool("Pays."), *self.bank.tools]
        self.lead = Agent("lead", self.lead_model, tools, store=store)

    @property
    def requests(self) -> list[int]:
        models = (self.lead_model, self.payer_model, self.clerk_model, self.coder_model)
        return [len(model.requests) for model in models]


def approvals(result: AgentResult[Any], verdict: str = "approve") -> list[dict[str, Any]]:
    return [{"request_id": request.id, "verdict": verdict} for request in result.pending]


async def test_all_approvals_are_in_one_list_and_no_model_is_asked_again(store: Store) -> None:
    first = Company(store)
    result = await first.lead.run("Pay all.", conversation="c", caller=Caller(principal="ann"))
    asked = sorted((request.caller.agent, request.arguments["amount"]) for request in result.pending)
    assert asked == [("clerk", 1), ("coder", 4), ("lead", 3), ("payer", 2)]
    assert {request.caller.principal for request in result.pending} == {"ann"}
    assert (result.stop, first.bank.paid, first.requests) == ("suspended", [], [1, 1, 1, 1])
    again = Company(store, is_resumed=True)
    ann = Caller(principal="ann")
    result = await again.lead.run(conversation="c", decisions=approvals(result), caller=ann)
    assert (result.stop, result.text, again.requests) == ("answered", "All paid.", [1, 1, 1, 1])
    assert sorted(again.bank.paid) == [1, 2, 3, 4]
    conversation_is_well_formed(result.messages)


async def test_approvals_may_come_one_by_one_each_in_another_process(store: Store) -> None:
    company = Company(store)
    result = await company.lead.run("Pay all.", conversation="c")
    bank = company.bank
    for left in (3, 2, 1, 0):
        company = Company(store, bank=bank, is_resumed=True)
        result = await company.lead.run(conversation="c", decisions=approvals(result)[:1])
        assert len(result.pending) == left
    assert (result.text, sorted(bank.paid)) == ("All paid.", [1, 2, 3, 4])


@pytest.mark.parametrize("protocol", ["openai", "attp", "anthropic"])
async def test_an_agent_inside_a_program_of_the_lead_asks_too(store: Store, protocol: str) -> None:
    code = "print(payer(task='Pay.'))"

    def lead(replies: list[Any], bank: Bank, child: ScriptedModel) -> Agent[Any]:
        payer = Agent("payer", child, bank.tools)
        model = ScriptedModel(replies, protocol=protocol)
        return Agent("lead", model, [payer.as_tool("Pays.")], store=store, programs=True)

    program = calls("code_execution", code=code)
    bank = Bank("confirm")
    result = await lead([program], bank, ScriptedModel([calls("pay", amount=5)])).run("Pay.", conversation="c")
    assert [(request.caller.agent, request.tool) for request in result.pending] == [("payer", "pay")]
    again = lead(["Done."], bank, ScriptedModel(["Paid."]))
    result = await again.run(conversation="c", decisions=approvals(result))
    assert (result.stop, result.text, bank.paid) == ("answered", "Done.", [5])


async def ask(context: CallContext) -> str:
    """Asks the user."""
    return f"They say {await context.ask('Which colour?')}."


def require(context: CallContext) -> Any:
    """Asks the user."""
    if not context.answers:
        return InputRequired({"colour": Question("Which colour?")})
    return f"They say {context.answers['colour']}."


@pytest.mark.parametrize("tool", [ask, require])
async def test_questions_at_any_depth_are_the_lead_s(store: Store, tool: Any) -> None:
    def lead(*, is_resumed: bool) -> tuple[Agent[Any], list[ScriptedModel]]:
        names = ["payer", "clerk", tool.__name__]
        scripts: list[list[Any]] = [[calls(name, **({"task": "Ask."} if name != names[2] else {}))] for name in names]
        models = [ScriptedModel([*([] if is_resumed else script), "Asked."]) for script in scripts]
        clerk = Agent("clerk", models[2], [tool])
        payer = Agent("payer", models[1], [clerk.as_tool("Asks.")])
        return Agent("lead", models[0], [payer.as_tool("Asks.")], store=store), models

    first, _ = lead(is_resumed=False)
    result = await first.run("Ask.", conversation="c")
    (request,) = result.pending
    assert (request.caller.agent, request.tool) == ("clerk", tool.__name__)
    again, models = lead(is_resumed=True)
    decision = {"request_id": request.id, "verdict": "answer", "answer": "red"}
    result = await again.run(conversation="c", decisions=[decision])
    assert (result.stop, result.text) == ("answered", "Asked.")
    assert models[2].requests[0].messages[-1]["content"] == "They say red."
    assert [len(model.requests) for model in models] == [1, 1, 1]


async def test_a_denial_is_told_to_the_child_and_the_work_goes_on(store: Store) -> None:
    result = await Company(store).lead.run("Pay all.", conversation="c")
    again = Company(store, is_resumed=True)
    result = await again.lead.run(conversation="c", decisions=approvals(result, "deny"))
    assert (result.stop, again.bank.paid, again.requests) == ("answered", [], [1, 1, 1, 1])


async def test_a_person_stops_the_run_in_a_child_and_with_it_the_lead(store: Store) -> None:
    result = await Company(store).lead.run("Pay all.", conversation="c")
    again = Company(store, is_resumed=True)
    result = await again.lead.run(conversation="c", decisions=approvals(result, "stop_run"))
    assert (result.stop, again.bank.paid, again.requests) == ("stopped", [], [0, 0, 0, 0])
    conversation_is_well_formed(result.messages)
    assert "was stopped by a person" in str(result.messages[2]["content"])


async def test_the_notes_of_two_turns_of_a_child_are_read_in_order(store: Store) -> None:
    bank = Bank("confirm")

    def lead(replies: list[Any], child: ScriptedModel) -> Agent[Any]:
        return Agent("lead", ScriptedModel(replies), [Agent("payer", child, bank.tools).as_tool("Pays.")], store=store)

    child = ScriptedModel([calls("pay", amount=1)])
    result = await lead([calls("payer", task="Pay.")], child).run("Pay.", conversation="c")
    for amount in (2, 3):
        child = ScriptedModel([calls("pay", amount=amount)])
        result = await lead([], child).run(conversation="c", decisions=approvals(result))
        assert [request.arguments["amount"] for request in result.pending] == [amount]
        assert len(child.requests) == 1
    child = ScriptedModel(["Paid."])
    result = await lead(["Done."], child).run(conversation="c", decisions=approvals(result))
    assert (result.text, bank.paid) == ("Done.", [1, 2, 3])
    roles = [message["role"] for message in child.requests[0].messages]
    assert roles == ["user", *["assistant", "tool"] * 3]


async def test_a_large_reply_of_a_child_is_noted_in_pieces(store: Store) -> None:
    written = list[str]()

    def write(text: str) -> int:
        """Writes."""
        written.append(text)
        return len(text)

    def lead(replies: list[Any], child: ScriptedModel) -> Agent[Any]:
        writer = Agent("writer", child, [ToolSpec.from_function(write, permission="confirm")])
        return Agent("lead", ScriptedModel(replies), [writer.as_tool("Writes.")], store=store)

    text = "".join(random.choices('abcdüé"\n', k=150_000))
    child = ScriptedModel([calls("write", text=text)])
    result = await lead([calls("writer", task="Write.")], child).run("Write.", conversation="c")
    child = ScriptedModel(["Written."])
    result = await lead(["Done."], child).run(conversation="c", decisions=approvals(result))
    assert (result.stop, written == [text], len(child.requests)) == ("answered", True, 1)


async def test_a_reply_of_3_mb_is_told_to_the_child_and_goes_on(store: Store) -> None:
    bank = Bank()
    child = ScriptedModel([calls("pay", amount="9" * 3_000_000), calls("pay", amount=5), "Paid."])
    payer = Agent("payer", child, bank.tools).as_tool("Pays.")
    result = await Agent("lead", ScriptedModel([calls("payer", task="Pay."), "Done."]), [payer], store=store).run(
        "Pay."
    )
    assert (result.text, bank.paid) == ("Done.", [5])
    assert "the limit is 262144" in child.requests[1].messages[-1]["content"]


async def test_the_events_after_a_decision_tell_whose_they_are(store: Store) -> None:
    result = await Company(store).lead.run("Pay all.", conversation="c")
    again = Company(store, is_resumed=True)
    events = [event async for event in again.lead.stream(conversation="c", decisions=approvals(result))]
    paths = {
        event.agent
        for event in events
        if event.tool is not None and event.tool.type == "TOOL_COMPLETE" and event.tool.tool == "pay"
    }
    assert paths == {("lead",), ("lead", "payer"), ("lead", "payer", "clerk"), ("lead", "coder")}
