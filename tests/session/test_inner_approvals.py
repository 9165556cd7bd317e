"""Approvals of the calls that a tool makes: the turn waits, and the tool is called again when a person has decided."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.session.till import calls, program, texts
from toolwire import (
    ApprovalRequest,
    CallContext,
    Decision,
    DecisionRefused,
    InputRequired,
    Question,
    Session,
    Store,
    ToolRegistry,
    ToolSpec,
    Turn,
)
from toolwire.approvals import Decider
from toolwire.permission.policy import Policy, Rule
from toolwire.session.runs.resume import RunStore


class Office:
    """A tool that makes calls, in the session's catalogue and in one of its own. `did` lists all effects, in order."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.today = "Monday"
        self.own = ToolRegistry()
        self.own.register(ToolSpec.from_function(self.wire, name="pay", permission="confirm", effects=["spend"]))
        self.own.register(self.note)

    def note(self, text: str) -> str:
        """Notes a text."""
        self.did.append(("note", text))
        return f"noted {text}"

    def pay(self, amount: int) -> str:
        """Pays."""
        self.did.append(("pay", amount))
        return f"paid {amount}"

    def wire(self, amount: int, to: str = "bank") -> str:
        """Pays by wire."""
        self.did.append(("wire", amount, to))
        return f"wired {amount}"

    async def buy(self, amount: int, context: CallContext) -> str:
        """Notes, pays, and notes again."""
        first = await context.call("note", text="before")
        paid = await context.call("pay", amount=amount)
        last = await context.call("note", text="after")
        return "; ".join(one.text for one in (first, paid, last))

    async def buy_apart(self, amount: int, context: CallContext) -> str:
        """Pays by the tools of its own."""
        own = context.using(self.own)
        await own.call("note", text="apart")
        return str((await own.call("pay", amount=amount)).text)

    async def buy_both(self, context: CallContext) -> str:
        """Pays twice side by side, and notes meanwhile."""
        one, two, _ = await asyncio.gather(
            context.call("pay", amount=1), context.call("pay", amount=2), context.call("note", text="beside")
        )
        return f"{one.text}, {two.text}"

    async def buy_deep(self, amount: int, context: CallContext) -> str:
        """Buys through `buy`."""
        return str((await context.call("buy", amount=amount)).text)

    async def buy_today(self, context: CallContext) -> str:
        """Pays an amount that depends on the day."""
        await context.call("note", text=self.today)
        return str((await context.call("pay", amount=5)).text)

    def session(self, store: RunStore | None, **options: Any) -> Session:
        pay = ToolSpec.from_function(self.pay, permission="confirm", effects=["spend"])
        tools = [self.note, self.buy, self.buy_apart, self.buy_both, self.buy_deep, self.buy_today]
        return Session(
            [*tools, pay, *options.pop("tools", ())], protocol=options.pop("protocol", "openai"), store=store, **options
        )


def waiting(turn: Turn) -> tuple[ApprovalRequest, ...]:
    assert turn.suspended is not None
    return turn.suspended.pending


def approved(*requests: ApprovalRequest, **more: Any) -> list[dict[str, Any]]:
    return [{"request_id": request.id, "verdict": "approve", **more} for request in requests]


@pytest.mark.parametrize(
    ("tool", "result", "did"),
    [
        ("buy", "noted before; paid 7; noted after", [("note", "before"), ("pay", 7), ("note", "after")]),
        ("buy_apart", "wired 7", [("note", "apart"), ("wire", 7, "bank")]),
        ("buy_deep", "noted before; paid 7; noted after", [("note", "before"), ("pay", 7), ("note", "after")]),
    ],
)
async def test_an_inner_call_waits_and_its_tool_goes_on_in_another_session(
    store: RunStore, tool: str, result: str, did: list[Any]
) -> None:
    office = Office()
    turn = await office.session(store).turn(calls((tool, {"amount": 7})))
    (request,) = waiting(turn)
    assert (request.tool, dict(request.arguments)["amount"]) == ("pay", 7)
    assert office.did == did[:1]
    turn = await office.session(store).resume(request.run_id, approved(request))
    assert (texts(turn.messages), office.did) == ([result], did)


async def test_in_a_program_too(store: RunStore) -> None:
    office = Office()
    turn = await office.session(store, protocol="attp").turn(program("print(buy(amount=7))\nprint(note(text='end'))"))
    (request,) = waiting(turn)
    turn = await office.session(store, protocol="attp").resume(request.run_id, approved(request))
    assert "noted before; paid 7; noted after" in turn.text
    assert office.did == [("note", "before"), ("pay", 7), ("note", "after"), ("note", "end")]


async def test_without_a_store_such_a_call_does_not_run_and_its_tool_goes_on() -> None:
    office = Office()
    turn = await office.session(None).turn(calls(("buy", {"amount": 7})))
    (text,) = texts(turn.messages)
    assert "a person has to allow it" in text
    assert office.did == [("note", "before"), ("note", "after")]


async def test_a_denied_inner_call_does_not_run_and_its_tool_reads_so(store: RunStore) -> None:
    office = Office()
    (request,) = waiting(await office.session(store).turn(calls(("buy", {"amount": 7}))))
    denied = [{"request_id": request.id, "verdict": "deny", "reason": "too much"}]
    turn = await office.session(store).resume(request.run_id, denied)
    assert "too much" in texts(turn.messages)[0]
    assert office.did == [("note", "before"), ("note", "after")]


async def test_a_tool_is_called_again_when_all_that_it_waits_for_is_decided(store: RunStore) -> None:
    office = Office()
    first, second = waiting(await office.session(store).turn(calls(("buy_both", {}))))
    assert office.did == [("note", "beside")]
    turn = await office.session(store).resume(first.run_id, approved(second))
    assert waiting(turn) == (first,)
    assert office.did == [("note", "beside")]
    turn = await office.session(store).resume(first.run_id, approved(first))
    assert texts(turn.messages) == ["paid 1, paid 2"]
    assert sorted(office.did) == [("note", "beside"), ("pay", 1), ("pay", 2)]


async def test_nothing_of_a_tool_runs_on_when_its_turn_waits(store: RunStore) -> None:
    office, asked = Office(), asyncio.Event()

    async def slow(context: CallContext) -> str:
        """Is slower than the request beside it."""
        await asked.wait()
        for _ in range(1_000):
            await asyncio.sleep(0)
        office.did.append("slow")
        return "slow"

    async def both(context: CallContext) -> str:
        """Pays beside a slow call."""
        one, _ = await asyncio.gather(context.call("pay", amount=1), context.call("slow"))
        return str(one.text)

    registry = ToolRegistry()
    for tool in (slow, both, ToolSpec.from_function(office.pay, permission="confirm")):
        registry.register(tool)
    session = Session(registry, protocol="openai", store=store, approver=lambda _: asked.set())
    (request,) = waiting(await session.turn(calls(("both", {}))))
    assert office.did == ["slow"]
    turn = await session.resume(request.run_id, approved(request))
    assert (texts(turn.messages), office.did) == (["paid 1"], ["slow", ("pay", 1)])


async def test_an_edit_of_an_inner_call_is_judged_where_it_runs(store: RunStore) -> None:
    office = Office()
    (request,) = waiting(await office.session(store).turn(calls(("buy_apart", {"amount": 7}))))
    session = office.session(store)
    # The session's own `pay` has no parameter `to`.
    wrong = [{"request_id": request.id, "verdict": "edit", "arguments": {"amount": "many", "to": "Ada"}}]
    with pytest.raises(DecisionRefused) as refused:
        await session.resume(request.run_id, wrong)
    assert refused.value.code == "invalid_edit"
    edited = [{"request_id": request.id, "verdict": "edit", "arguments": {"amount": 3, "to": "Ada"}}]
    turn = await session.resume(request.run_id, edited)
    assert (texts(turn.messages), office.did) == (["wired 3"], [("note", "apart"), ("wire", 3, "Ada")])


async def test_a_decision_that_the_tools_own_policy_refuses_lets_nothing_run(store: RunStore) -> None:
    office = Office()
    office.own.configure(rules=Policy([Rule(tool="pay", effect="confirm")], approvers={"spend": {"ada"}}))
    (request,) = waiting(await office.session(store).turn(calls(("buy_apart", {"amount": 7}))))
    bob, ada = ({"principal": name, "channel": "console"} for name in ("bob", "ada"))
    with pytest.raises(DecisionRefused, match="not among those who may approve"):
        await office.session(store).resume(request.run_id, approved(request, by=bob))
    with pytest.raises(DecisionRefused, match="not among those who may approve"):
        store.decide(request.id, Decision(verdict="approve", by=Decider(**bob)))
    # The request goes on waiting. A policy that is stricter when the call runs counts then.
    store.decide(request.id, Decision(verdict="approve", by=Decider(**ada)))
    office.own.configure(rules=Policy([Rule(tool="pay", effect="confirm")], approvers={"spend": {"eve"}}))
    turn = await office.session(store).resume(request.run_id)
    assert "not among those who may approve" in texts(turn.messages)[0]
    assert office.did == [("note", "apart")]


async def test_those_whom_the_tools_own_policy_names_may_approve(store: RunStore) -> None:
    office = Office()
    office.own.configure(rules=Policy([Rule(tool="pay", effect="confirm")], approvers={"spend": {"ada"}}))
    (request,) = waiting(await office.session(store).turn(calls(("buy_apart", {"amount": 7}))))
    by = {"principal": "ada", "channel": "console"}
    turn = await office.session(store).resume(request.run_id, approved(request, by=by))
    assert texts(turn.messages) == ["wired 7"]


async def test_a_tool_of_its_own_that_changed_since_the_request_does_not_run(store: RunStore) -> None:
    office = Office()
    (request,) = waiting(await office.session(store).turn(calls(("buy_apart", {"amount": 7}))))
    office.own.register(
        ToolSpec.from_function(office.wire, name="pay", description="Other.", permission="confirm"), replace=True
    )
    turn = await office.session(store).resume(request.run_id, approved(request))
    assert "have changed since approval was requested" in texts(turn.messages)[0]
    assert office.did == [("note", "apart")]


async def test_a_tool_that_makes_another_call_than_before_is_stopped_and_the_turn_goes_on(store: RunStore) -> None:
    office = Office()
    replied = calls(("buy_today", {}), ("note", {"text": "own"}))
    (request,) = waiting(await office.session(store).turn(replied))
    office.today = "Tuesday"
    turn = await office.session(store).resume(request.run_id, approved(request))
    other, own = texts(turn.messages)
    assert "it made another call than the one on record" in other
    assert own == "noted own"
    assert sorted(office.did) == [("note", "Monday"), ("note", "own")]


async def test_a_decision_in_the_store_counts_for_inner_calls_as_well(store: RunStore) -> None:
    office = Office()
    (request,) = waiting(await office.session(store).turn(calls(("buy_apart", {"amount": 7}))))
    with pytest.raises(DecisionRefused):
        store.decide(request.id, Decision(verdict="edit", arguments={"amount": "many"}))
    store.decide(request.id, Decision(verdict="approve"))
    turn = await office.session(store).resume(request.run_id)
    assert (texts(turn.messages), office.did[1:]) == (["wired 7"], [("wire", 7, "bank")])


async def test_the_calls_of_a_tool_are_on_record_with_their_parents(tmp_path: Path) -> None:
    office = Office()
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        (request,) = waiting(await office.session(store).turn(calls(("buy_deep", {"amount": 7}))))
        run = request.run_id
        await office.session(store).resume(run, approved(request))
        found = {call.id: (call.parent, call.tool) for call in store.calls(run)}
    assert found == {
        f"{run}/1": ("", "buy_deep"),
        f"{run}/1/1": (f"{run}/1", "buy"),
        f"{run}/1/1/1": (f"{run}/1/1", "note"),
        f"{run}/1/1/2": (f"{run}/1/1", "pay"),
        f"{run}/1/1/3": (f"{run}/1/1", "note"),
    }


async def test_a_tool_that_asks_in_rounds_makes_no_call_twice(store: RunStore) -> None:
    office = Office()

    async def order(context: CallContext) -> Any:
        """Notes in each round, and pays in the last one."""
        if context.state is None:
            await context.call("note", text="first round")
            return InputRequired({"sure": Question("Sure?", {"type": "boolean"})}, state=1)
        await context.call("note", text="second round")
        return (await context.call("pay", amount=9)).text

    session = office.session(store, tools=[order])
    (question,) = waiting(await session.turn(calls(("order", {}))))
    answer = [{"request_id": question.id, "verdict": "answer", "answer": True}]
    (request,) = waiting(await office.session(store, tools=[order]).resume(question.run_id, answer))
    turn = await office.session(store, tools=[order]).resume(question.run_id, approved(request))
    assert texts(turn.messages) == ["paid 9"]
    assert office.did == [("note", "first round"), ("note", "second round"), ("pay", 9)]


async def test_a_tool_that_is_tried_again_makes_its_calls_again(store: RunStore) -> None:
    office, tries = Office(), []

    async def flaky(context: CallContext) -> str:
        """Fails once behind its first call, and then pays."""
        tries.append(1)
        await context.call("note", text=f"try {len(tries)}")
        if len(tries) == 1:
            raise OSError("lost")
        return str((await context.call("pay", amount=9)).text)

    async def again(call: Any, call_next: Any) -> Any:
        first = await call_next(call)
        return first if first.success or first.failure.kind != "tool_error" else await call_next(call)

    def session() -> Session:
        tries.clear()
        registry = ToolRegistry()
        for tool in (flaky, office.note, ToolSpec.from_function(office.pay, permission="confirm")):
            registry.register(tool)
        registry.configure(middleware=[again])
        return Session(registry, protocol="openai", store=store)

    (request,) = waiting(await session().turn(calls(("flaky", {}))))
    assert office.did == [("note", "try 1"), ("note", "try 2")]
    turn = await session().resume(request.run_id, approved(request))
    assert texts(turn.messages) == ["paid 9"]
    assert office.did == [("note", "try 1"), ("note", "try 2"), ("pay", 9)]


async def test_an_approver_is_asked_while_the_tool_waits(store: RunStore) -> None:
    office, seen = Office(), []

    def approver(request: ApprovalRequest) -> Decision:
        seen.append((request.tool, request.parent, request.depth, store.pending()))
        return Decision(verdict="approve")

    turn = await office.session(store, approver=approver).turn(calls(("buy_apart", {"amount": 7})))
    assert texts(turn.messages) == ["wired 7"]
    ((tool, parent, depth, pending),) = seen
    assert (tool, parent.endswith("/1"), depth) == ("pay", True, 1)
    assert [request.tool for request in pending] == ["pay"]
