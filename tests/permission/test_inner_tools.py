"""Rules may name the tools below a tool, at any depth, and are checked against them."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import CallContext, ConfigurationError, Policy, Rule, Session, ToolRegistry, ToolSpec
from toolwire.permission.check import tools_by_path


def pay(amount: int, to: str = "") -> str:
    """Pays."""
    return f"paid {amount}"


def refund(amount: int) -> str:
    """Pays back."""
    return f"refunded {amount}"


def search(query: str) -> str:
    """Searches."""
    return query


def find(topic: str) -> str:
    """Finds."""
    return topic


def registry(*tools: Any, **options: Any) -> ToolRegistry:
    made = ToolRegistry(**options)
    for tool in tools:
        made.register(tool)
    return made


def agent(name: str, below: ToolRegistry) -> ToolSpec:
    """A tool that calls one tool of another registry."""

    async def work(context: CallContext, tool: str, arguments: dict[str, Any]) -> str:
        """Works with tools of its own."""
        return (await context.using(below).call(tool, **arguments)).text

    made = ToolSpec.from_function(work, name=name)
    made.__tool__().inner_tools = lambda: {name: spec.__tool__() for name, spec in below.to_toolspecs().items()}
    return made


def lead() -> ToolRegistry:
    """`search` and `payer`, which has `pay` and `clerk`, which has `refund`."""
    return registry(search, agent("payer", registry(pay, agent("clerk", registry(refund)))))


def when(tool: str, path: str, **more: Any) -> dict[str, Any]:
    return {"effect": "deny", "tool": tool, "when": [{"path": path, "op": ">", "value": 10}], **more}


@pytest.mark.parametrize(
    "rule",
    [
        {"effect": "deny", "tool": "pay"},
        {"effect": "confirm", "tool": "refund"},
        {"effect": "auto", "tool": "ref*"},
        when("pay", "/arguments/amount", match=[{"arguments": {"amount": 11}}]),
        when("refund", "/arguments/amount", not_match=[{"arguments": {"amount": 10}}]),
    ],
)
def test_a_rule_about_a_tool_below_is_no_mistake(rule: dict[str, Any]) -> None:
    lead().configure(rules=[rule])
    Session(lead(), policy=[rule])
    assert Policy([rule]).check(lead().to_toolspecs()) == []


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"effect": "deny", "tool": "pey"}, "there is no tool 'pey': did you mean 'pay'? mend the name"),
        ({"effect": "deny", "tool": "refnd"}, "there is no tool 'refnd': did you mean 'refund'? mend the name"),
        ({"effect": "deny", "tool": "serch"}, "there is no tool 'serch': did you mean 'search'? mend the name"),
        ({"effect": "deny", "tool": "shop_*"}, "no tool fits 'shop_*': it never hits; mend the pattern"),
        (
            when("pay", "/arguments/amont"),
            "no tool that it is about ('payer > pay') takes '/arguments/amont'; did you mean '/arguments/amount'?",
        ),
        (
            when("refund", "/arguments/to"),
            "no tool that it is about ('payer > clerk > refund') takes '/arguments/to'; there are amount",
        ),
        (
            when("pay", "/arguments/to"),
            "it can never hit 'payer > pay': to > 10 looks at a number, and '/arguments/to' is a string in its schema",
        ),
        (
            when("pay", "/arguments/amount", match=[{"arguments": {"amount": 10}}]),
            "match {'arguments': {'amount': 10}}: the rule does not hit it: amount > 10 does not hold",
        ),
    ],
)
def test_a_wrong_rule_about_a_tool_below_is_one(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Session(lead(), policy=[rule])
    assert str(error.value).removesuffix(", or set optional = true") == f"rule 1: {message}"


def test_two_tools_of_one_name_are_told_apart() -> None:
    own = registry(search, agent("finder", registry(ToolSpec.from_function(find, name="search"))))
    rule = {"effect": "deny", "tool": "search", "when": [{"path": "/arguments/query", "op": "contains", "value": "x"}]}
    with pytest.raises(ConfigurationError) as error:
        own.configure(rules=[rule])
    assert str(error.value) == (
        "rule 1: 'finder > search' have no 'query', so that it would hit all their calls: name the tools it is about, "
        "or add {path = '/arguments/query', op = 'exists'}"
    )
    there = {"path": "/arguments/query", "op": "exists"}
    examples = [{"arguments": {"query": "x"}}], [{"arguments": {"topic": "x"}}]
    own.configure(rules=[{**rule, "when": [*rule["when"], there], "match": examples[0], "not_match": examples[1]}])


def test_a_tool_below_that_comes_later_counts() -> None:
    below = registry(pay)
    own = registry(agent("payer", below))
    with pytest.raises(ConfigurationError, match="there is no tool 'refund'"):
        own.configure(rules=[Rule(effect="deny", tool="refund")])
    below.register(refund)
    own.configure(rules=[Rule(effect="deny", tool="refund")])


def test_a_circle_of_tools_ends() -> None:
    first, second = registry(pay), registry(refund)
    first.register(agent("second", second))
    second.register(agent("first", first))
    found = tools_by_path({name: spec.__tool__() for name, spec in first.to_toolspecs().items()})
    assert [" > ".join(path) for path in found] == [
        *("pay", "second", "second > refund", "second > first"),
        *("second > first > pay", "second > first > second"),
    ]
    Session(first, policy=[Rule(effect="deny", tool="refund")])


def test_a_chain_that_is_made_anew_each_time_ends_at_the_limit_of_calls() -> None:
    def made() -> ToolSpec:
        again = ToolSpec.from_function(pay, name="again")
        again.__tool__().inner_tools = lambda: {"again": made().__tool__()}
        return again

    assert max(map(len, tools_by_path({"again": made().__tool__()}))) == 6


async def test_permissions_may_name_a_tool_below_and_count_there() -> None:
    session = Session(lead(), protocol="xml", permissions={"pay": "deny"})
    call = '<tool_call><payer><tool>pay</tool><arguments>{"amount": 5}</arguments></payer></tool_call>'
    assert "permission of 'pay' is deny" in (await session.turn(call)).text
    with pytest.raises(ConfigurationError, match="permissions name 'pey', and there is no such tool"):
        Session(lead(), permissions={"pey": "deny"})


async def test_a_rule_about_a_tool_below_decides_its_calls() -> None:
    session = Session(lead(), protocol="xml", policy=[Rule(effect="deny", tool="pay")])
    free = Session(lead(), protocol="xml")
    call = '<tool_call><payer><tool>pay</tool><arguments>{"amount": 5}</arguments></payer></tool_call>'
    assert "paid 5" not in (await session.turn(call)).text
    assert "paid 5" in (await free.turn(call)).text
