"""A tool that calls the tools of another registry, below its own call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolwire import (
    ApprovalRequest,
    CallContext,
    ConfigurationError,
    Decision,
    Policy,
    Rule,
    Session,
    ToolRegistry,
    ToolSpec,
)
from toolwire.invocation.inner.own_tools import USING_DEPTH_LIMIT


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def over(child: Any) -> Callable[..., Any]:
    async def work(context: CallContext, amount: int = 5) -> str:
        """Works with tools of its own."""
        return (await context.using(child).call("pay", amount=amount)).text

    return work


def registry(*tools: Any, rules: tuple[Rule, ...] = ()) -> ToolRegistry:
    made = ToolRegistry(rules=list(rules))
    for tool in tools:
        made.register(tool)
    return made


DENY, CONFIRM, AUTO = (Rule(effect=effect, tool="pay") for effect in ("deny", "confirm", "auto"))


@pytest.mark.parametrize(
    ("parents", "childs", "runs"),
    [
        ((), (), True),
        ((DENY,), (), False),
        ((), (DENY,), False),
        ((DENY,), (AUTO,), False),
        ((AUTO,), (CONFIRM,), False),
        ((CONFIRM,), (AUTO,), False),
    ],
)
def test_a_call_runs_only_if_both_policies_let_it(
    parents: tuple[Rule, ...], childs: tuple[Rule, ...], runs: bool
) -> None:
    parent = registry(over(registry(pay, rules=childs)), rules=parents)
    assert (parent.invoke("work", {}).data == "paid 5") is runs


def test_a_rule_that_the_child_gets_counts_at_the_next_call() -> None:
    child = registry(pay)
    parent = registry(over(child))
    assert parent.invoke("work", {}).data == "paid 5"
    child.configure(rules=Policy([DENY]))
    assert parent.invoke("work", {}).data != "paid 5"


def test_the_parents_tools_are_not_the_childs() -> None:
    parent = registry(over(registry()), pay)
    assert parent.invoke("work", {}).data.startswith("There is no tool named 'pay'.")


def test_the_person_of_the_run_is_asked_about_an_inner_call() -> None:
    asked: list[tuple[str, str]] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.append((request.tool, request.caller.principal))
        return Decision(verdict="approve")

    child = registry(ToolSpec.from_function(pay, permission="confirm"))
    parent = ToolRegistry(approver=approve)
    parent.register(over(child))
    assert parent.invoke("work", {}).data == "paid 5"
    assert asked == [("pay", "")]
    unasked = registry(over(child))
    assert unasked.invoke("work", {}).data != "paid 5"


def test_what_a_person_keeps_for_a_session_does_not_count_for_other_users_of_the_registry() -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(request.tool)
        return Decision(verdict="approve", remember=Rule(effect="auto", tool="pay", scope="session"))

    async def twice(context: CallContext) -> str:
        """Pays twice."""
        inner = context.using(child)
        await inner.call("pay", amount=1)
        return (await inner.call("pay", amount=2)).text

    child = registry(ToolSpec.from_function(pay, permission="confirm"))
    parent = ToolRegistry(approver=approve)
    parent.register(twice)
    assert parent.invoke("twice", {}).data == "paid 2"
    assert asked == ["pay"]
    assert child.policy.rules_of_decisions == ()


@pytest.mark.parametrize("depth", [USING_DEPTH_LIMIT, USING_DEPTH_LIMIT + 1])
def test_catalogues_nest_up_to_the_limit(depth: int) -> None:
    child = registry(pay)

    async def nested(context: CallContext) -> str:
        """Goes down."""
        for _ in range(depth):
            context = context.using(child)
        return (await context.call("pay", amount=1)).text

    result = registry(nested).invoke("nested", {})
    if depth <= USING_DEPTH_LIMIT:
        assert result.data == "paid 1"
    else:
        assert result.failure is not None
        assert isinstance(result.failure.exception, ConfigurationError)
        assert str(result.failure.exception) == (
            "context.using(...): 5 catalogues are below each other already. "
            "Write context.call(...) here, or give this tool a registry without the tool that leads back to it."
        )


def test_a_tool_that_uses_its_own_registry_ends() -> None:
    own, seen = ToolRegistry(), []

    async def again(context: CallContext) -> str:
        """Calls itself."""
        seen.append(context.call_id)
        return (await context.using(own).call("again")).text

    own.register(again)
    own.invoke("again", {})
    assert len(seen) == USING_DEPTH_LIMIT + 1


def test_something_else_than_a_registry_is_refused() -> None:
    result = registry(over([pay])).invoke("work", {})
    assert result.failure is not None
    assert isinstance(result.failure.exception, ConfigurationError)
    with pytest.raises(ConfigurationError, match="has no run"):
        CallContext(call_id="1", call=None).using(ToolRegistry())  # type: ignore[arg-type]


def test_a_question_of_an_inner_call_waits_and_is_answered_in_a_later_session(tmp_path: Path) -> None:
    async def choose(context: CallContext) -> str:
        """Asks."""
        return f"chose {await context.ask('Which?')}"

    async def work(context: CallContext) -> str:
        """Works with tools of its own."""
        return (await context.using(child).call("choose")).text

    child, url = registry(choose), f"sqlite:///{tmp_path / 'runs.db'}"
    reply = "<tool_call><name>work</name><params></params></tool_call>"
    waiting = Session([work], protocol="xml", store=url).run_turn(reply).suspended
    assert waiting is not None
    (question,) = waiting.pending
    decision = {"request_id": question.id, "verdict": "answer", "answer": "red"}
    done = Session([work], protocol="xml", store=url).run_resume(waiting.run_id, [decision])
    assert [result.data for result in done.results] == ["chose red"]
