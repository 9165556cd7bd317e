"""An edit is judged when it is handed in by the same facts as when its call runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import SecretStr

from tests.session.till import Till, calls, texts
from toolwire import ApprovalRequest, Rule, Session, ToolSpec, Turn
from toolwire.permission.approval import DecisionRefused
from toolwire.permission.condition import Condition
from toolwire.permission.policy import Policy
from toolwire.permission.rule import Subject
from toolwire.session.runs.resume import RunStore

PAY = ("pay", {"amount": 5})
MUCH = Condition(path="/arguments/amount", op=">", value=50)


def asked(turn: Turn) -> ApprovalRequest:
    assert turn.suspended is not None
    return turn.suspended.pending[0]


def edit(request: ApprovalRequest, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"request_id": request.id, "verdict": "edit", "arguments": arguments}]


@pytest.mark.parametrize(("amount", "is_refused"), [(60, True), (40, False)])
@pytest.mark.parametrize("scope", ["run", "session"])
async def test_a_rule_of_the_run_or_of_the_tool_as_shown_judges_an_edit_when_it_is_handed_in(
    store: RunStore, amount: int, is_refused: bool, scope: str
) -> None:
    till = Till()
    request = asked(await till.session(store).turn(calls(PAY)))
    policy = Policy()
    policy.remember(
        Rule(effect="deny", tool="pay", when=(MUCH,), scope="run", run_id=request.run_id)
        if scope == "run"
        else Rule(effect="deny", tool="pay", when=(MUCH,), scope="session", tool_digest=request.tool_digest)
    )
    session = till.session(store, policy=policy)
    if is_refused:
        with pytest.raises(DecisionRefused) as refused:
            await session.resume(request.run_id, edit(request, {"amount": amount}))
        assert (refused.value.code, till.paid) == ("invalid_edit", [])
        assert asked(await till.session(store).resume(request.run_id)) == request
    else:
        await session.resume(request.run_id, edit(request, {"amount": amount}))
        assert till.paid == [amount]


@pytest.mark.parametrize("other", ["run", "tool"])
async def test_a_rule_of_another_run_or_another_tool_refuses_no_edit(store: RunStore, other: str) -> None:
    till = Till()
    request = asked(await till.session(store).turn(calls(PAY)))
    policy = Policy()
    policy.remember(
        Rule(effect="deny", tool="pay", when=(MUCH,), scope="run", run_id="r_other")
        if other == "run"
        else Rule(effect="deny", tool="pay", when=(MUCH,), scope="session", tool_digest="sha256:" + "0" * 64)
    )
    await till.session(store, policy=policy).resume(request.run_id, edit(request, {"amount": 60}))
    assert till.paid == [60]


@pytest.mark.parametrize("is_denied", [True, False])
async def test_an_edit_that_keeps_a_secret_is_judged_by_the_secret_and_not_by_its_stars(
    store: RunStore, is_denied: bool
) -> None:
    sent: list[str] = []

    def send(token: SecretStr, text: str) -> str:
        """Sends."""
        sent.append(f"{token.get_secret_value()}: {text}")
        return "sent"

    def session(*rules: Rule) -> Session:
        tools = [ToolSpec.from_function(send, permission="confirm")]
        return Session(tools, protocol="openai", store=store, policy=rules)

    request = asked(await session().turn(calls(("send", {"token": "s3cret", "text": "a"}))))
    shown = request.arguments["token"]
    assert "s3cret" not in shown
    compared = Condition(path="/arguments/token", op="==" if is_denied else "!=", value=shown)
    ruled = session(Rule(effect="deny", tool="send", when=(compared,)))
    handed_in = edit(request, {"token": shown, "text": "b"})
    if is_denied:
        with pytest.raises(DecisionRefused) as refused:
            await ruled.resume(request.run_id, handed_in)
        assert (refused.value.code, sent) == ("invalid_edit", [])
    else:
        assert texts((await ruled.resume(request.run_id, handed_in)).messages) == ["sent"]
        assert sent == ["s3cret: b"]


async def test_the_policy_sees_the_same_facts_when_an_edit_is_handed_in_and_when_it_runs(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = {"name": "remote", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    sent: list[str] = []

    def mailbox() -> str:
        """Reads mail."""
        return "a letter"

    def remote(text: str) -> str:
        """Sends."""
        sent.append(text)
        return "sent"

    tools = [
        ToolSpec.from_function(mailbox, effects=["read"], labels=["untrusted", "private"]),
        ToolSpec.from_mcp(outside, remote, permission="confirm"),
    ]

    def session() -> Session:
        return Session(tools, protocol="openai", store=store)

    # Two turns of one session: the second run starts with the labels of the first.
    first = session()
    await first.turn(calls(("mailbox", {})))
    request = asked(await first.turn(calls(("remote", {"text": "a"}))))
    seen: list[Subject | None] = []
    judge = Policy.judge

    def recorded(policy: Policy, tool: str, own: Any, subject: Subject | None = None, **more: Any) -> Any:
        if tool == "remote" and subject is not None and subject.arguments == {"text": "b"}:
            seen.append(subject)
        return judge(policy, tool, own, subject, **more)

    monkeypatch.setattr(Policy, "judge", recorded)
    await session().resume(request.run_id, edit(request, {"text": "b"}))
    handed_in, ran = seen
    assert (handed_in, sent) == (ran, ["b"])
    assert handed_in is not None
    assert (handed_in.run_id, handed_in.is_outside, set(handed_in.taints)) == (
        request.run_id,
        True,
        {"untrusted", "private"},
    )
