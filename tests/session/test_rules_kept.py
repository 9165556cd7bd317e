"""A remembered rule is in force for its chosen time, over restarts, and for no other call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import update

from tests.journal.world import done
from tests.session.test_suspended import waiting
from tests.session.till import Till, calls, program
from toolwire import ApprovalRequest, Caller, Decision, DecisionRefused, Policy, Session, ToolSpec, Turn
from toolwire.approvals import Decider, rule_for
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import RULES
from toolwire.journal.store import Store
from toolwire.permission.rule import RuleScope
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

PAY = ("pay", {"amount": 5})
NEAR: list[dict[str, Any]] = [
    *({"amount": amount} for amount in (4, 6, 0, -5, 50, 55, 500, 5_000, 10**20)),
    *(
        {"amount": 5, "to": to}
        for to in ("Shop", "SHOP", "shop ", " shop", "sh\u043ep", "shop\u200b", "shops", "", "*")
    ),
    *({"amount": 5, "to": to} for to in ("thief", "shop\n", "shop\x00", "sho", "s\u0127op", "\uff53hop", "shop.")),
    *({"amount": amount, "to": "thief"} for amount in (1, 4, 6, 5_000, 7)),
]


async def always(till: Till, store: RunStore, scope: RuleScope, **options: Any) -> Turn:
    """The turn in which a person answered: always."""
    turn = await till.session(store, **options).turn(calls(PAY))
    (request,) = waiting(turn)
    remember = rule_for(request, scope=scope)
    decision = Decision(verdict="approve", request_id=request.id, remember=remember, by=Decider(principal="ada"))
    return await till.session(store, **options).resume(request.run_id, [decision])


@pytest.mark.threat(9)
async def test_a_rule_for_the_workspace_is_in_force_in_the_next_session(store: RunStore) -> None:
    till = Till()
    await always(till, store, "workspace")
    turn = await till.session(store).turn(calls(PAY, PAY))
    assert (turn.suspended, till.paid) == (None, [5, 5, 5])


ANN = Caller(principal="ann", tenant="acme")
OTHERS = [Caller(principal="mallory", tenant="other"), Caller(principal="ann", tenant="other"), Caller(tenant="acme")]


@pytest.mark.threat(9)
async def test_a_rule_for_the_workspace_is_of_one_principal_and_tenant(store: RunStore) -> None:
    till = Till()
    await always(till, store, "workspace", caller=ANN)
    for other in OTHERS:
        turn = await till.session(store, caller=other).turn(calls(PAY))
        assert (len(waiting(turn)), till.paid) == (1, [5]), other
    turn = await till.session(store, caller=ANN).turn(calls(PAY))
    assert (turn.suspended, till.paid) == (None, [5, 5])


@pytest.mark.threat(9)
async def test_a_turn_has_the_rules_of_its_caller_alone(store: RunStore) -> None:
    till = Till()
    await always(till, store, "workspace", caller=ANN)
    for caller in OTHERS:
        turn = await till.session(store).turn(calls(PAY), caller=caller)
        assert (len(waiting(turn)), till.paid) == (1, [5]), caller
    session = till.session(store, caller=OTHERS[0])
    for paid in (2, 3):
        turn = await session.turn(calls(PAY), caller=ANN)
        assert (turn.suspended, till.paid) == (None, [5] * paid)


@pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)
async def test_a_session_opens_the_rules_of_its_caller_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    till, opened, open_it = Till(), list[str](), Sealer.open
    run_id = (await always(till, store, "run", caller=ANN)).run_id
    for caller in (ANN, *OTHERS):
        await always(till, store, "workspace", caller=caller)

    def note(sealer: Sealer, sealed: bytes, *place: str) -> bytes:
        opened.append(place[0])
        return open_it(sealer, sealed, *place)

    def read(*run_ids: str) -> list[str]:
        opened.clear()
        till.session(store, caller=ANN)._restore_rules(run_ids)
        return sorted(opened)

    monkeypatch.setattr(Sealer, "open", note)
    # One for the session, and one for the runs of an agent.
    assert read() == ["decisions", "decisions", "requests", "requests"]
    assert read(run_id) == ["decisions", *["decisions"] * 2, "requests", *["requests"] * 2]
    # The control: of the rules of older stores, only the sealed ones say whose they are.
    done(store._database.run(lambda connection: connection.execute(update(RULES).values(scope=None))))
    assert read().count("decisions") == 2 * len([ANN, *OTHERS, ANN])
    turn = await till.session(store, caller=ANN).turn(calls(PAY))
    assert turn.suspended is None


@pytest.mark.threat(9)
async def test_a_rule_in_a_shared_policy_is_of_one_principal_and_tenant() -> None:
    till, policy = Till(), Policy()

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(request.caller)
        return Decision(verdict="approve", remember=rule_for(request, scope="workspace"), by=Decider(principal="ada"))

    asked: list[Caller] = []
    for caller in (ANN, ANN, *OTHERS):
        await till.session(None, policy=policy, approver=approve, caller=caller).turn(calls(PAY))
    assert asked == [ANN, *OTHERS]


@pytest.mark.parametrize("named", [{"principal": "mallory"}, {"tenant": "other"}, {"principal": ""}])
async def test_no_decision_makes_a_rule_for_another_principal(store: RunStore, named: dict[str, str]) -> None:
    till = Till()
    (request,) = waiting(await till.session(store, caller=ANN).turn(calls(PAY)))
    rule = replace(rule_for(request, scope="workspace"), **named)
    decision = Decision(verdict="approve", request_id=request.id, remember=rule, by=Decider(principal="ada"))
    with pytest.raises(DecisionRefused, match="for another principal"):
        await till.session(store, caller=ANN).resume(request.run_id, [decision])
    assert till.paid == []


@pytest.mark.threat(9)
async def test_a_rule_of_the_policy_is_for_all_or_for_those_that_it_names() -> None:
    till, refusals = Till(), list[str]()

    def refuse(request: ApprovalRequest) -> Decision:
        refusals.append(request.caller.principal)
        return Decision(verdict="deny", by=Decider(principal="ada"))

    for policy, paid in ((Policy([ALL]), 2), (Policy([{**ALL, "principal": "ann", "tenant": "acme"}]), 1)):
        till.paid.clear()
        for caller in (ANN, OTHERS[0]):
            await till.session(None, policy=policy, approver=refuse, caller=caller).turn(calls(PAY))
        assert len(till.paid) == paid
    assert refusals == ["mallory"]


ALL: dict[str, Any] = {"tool": "pay", "effect": "auto"}


@pytest.mark.threat(9)
@pytest.mark.parametrize("scope", ["run", "session"])
async def test_a_rule_for_a_run_or_a_session_ends_with_it(store: RunStore, scope: RuleScope) -> None:
    till = Till()
    await always(till, store, scope)
    turn = await till.session(store).turn(calls(PAY))
    assert (len(waiting(turn)), till.paid) == (1, [5])


@pytest.mark.threat(9)
@pytest.mark.parametrize("scope", ["run", "session", "workspace"])
async def test_a_rule_goes_on_with_its_run_in_another_process(store: RunStore, scope: RuleScope) -> None:
    till = Till()
    code = "print(pay(5))\nprint(pay(6))\nprint(pay(5))"
    turn = await till.session(store, protocol="attp").turn(program(code))
    (request,) = waiting(turn)
    first = Decision(verdict="approve", request_id=request.id, remember=rule_for(request, scope=scope))
    turn = await till.session(store, protocol="attp").resume(request.run_id, [first])
    (second,) = waiting(turn)
    assert (second.arguments["amount"], till.paid) == (6, [5])
    approve = Decision(verdict="approve", request_id=second.id)
    done = await till.session(store, protocol="attp").resume(request.run_id, [approve])
    assert (done.suspended, till.paid) == (None, [5, 6, 5])


@pytest.mark.threat(9)
async def test_no_call_that_is_only_near_the_remembered_one_runs_unasked() -> None:
    till, store = Till(), MemoryStore()
    await always(till, store, "workspace")
    assert len(NEAR) >= 30
    for given in NEAR:
        turn = await till.session(store).turn(calls(("pay", given)))
        assert turn.suspended is not None, given
    assert till.paid == [5]
    # The control: the very call, the default written out.
    await till.session(store).turn(calls(("pay", {"amount": 5, "to": "shop"})))
    assert till.paid == [5, 5]


async def test_a_decision_of_somebody_who_may_not_approve_is_refused_and_the_request_waits_on(store: RunStore) -> None:
    till, policy = Till(), Policy(approvers={"*": ["boss"]})
    (request,) = waiting(await till.session(store, policy=policy).turn(calls(PAY)))
    for principal in ("clerk", ""):
        by = Decider(principal=principal, channel="cli")
        with pytest.raises(DecisionRefused) as refused:
            store.decide(request.id, Decision(verdict="approve", by=by))
        assert (refused.value.code, refused.value.decided) == ("not_permitted", None)
    assert [one.id for one in store.pending(request.run_id)] == [request.id]
    store.decide(request.id, Decision(verdict="approve", by=Decider(principal="boss", channel="cli")))
    await till.session(store, policy=policy).resume(request.run_id)
    assert till.paid == [5]


@pytest.mark.threat(9)
async def test_a_rule_of_somebody_who_may_not_approve_here_is_not_in_force(store: RunStore) -> None:
    till = Till()
    await always(till, store, "workspace")
    for approvers, is_asked in (({"*": ["bob"]}, True), ({"*": ["ada"]}, False)):
        turn = await till.session(store, policy=Policy(approvers=approvers)).turn(calls(PAY))
        assert (turn.suspended is not None) is is_asked


async def test_a_rule_that_is_in_force_again_is_not_told_of_again(store: RunStore) -> None:
    told: list[Any] = []
    till = Till()
    await always(till, store, "workspace", policy=Policy(on_remember=told.append))
    till.session(store, policy=Policy(on_remember=told.append))
    assert len(told) == 1


class Door:
    """Opens for a password."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open_door(self, password: SecretStr) -> None:
        self.opened.append(password.get_secret_value())

    def session(self, store: RunStore) -> Session:
        return Session([ToolSpec.from_function(self.open_door, permission="confirm")], protocol="openai", store=store)


@pytest.mark.threat(66)
async def test_a_decision_about_a_secret_holds_in_the_next_session_and_for_no_other_secret(store: RunStore) -> None:
    door, alice = Door(), calls(("open_door", {"password": "alice"}))
    (request,) = waiting(await door.session(store).turn(alice))
    assert "alice" not in str(request.arguments)
    decision = Decision(verdict="approve", request_id=request.id, remember=rule_for(request, scope="workspace"))
    await door.session(store).resume(request.run_id, [decision])
    assert door.opened == ["alice"]
    assert (await door.session(store).turn(alice)).suspended is None
    turn = await door.session(store).turn(calls(("open_door", {"password": "mallory"})))
    assert (len(waiting(turn)), door.opened) == (1, ["alice", "alice"])
