"""The rules of a running server are replaced: they are in force at the next call."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from mcp import Client
from tests.gateway.conftest import Era
from toolwire import ConfigurationError, Policy, ToolRegistry, ToolServer

DENY, AUTO = [{"tool": "add", "effect": "deny"}], [{"tool": "add", "effect": "auto"}]


def add(a: int) -> int:
    """Adds."""
    return a + 1


async def kind_of(client: Client) -> str:
    result: types.CallToolResult = await client.call_tool("add", {"a": 1})  # type: ignore[assignment]
    return (result.meta or {})["toolwire/failure"]["kind"] if result.is_error else "success"


async def names_of(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


@pytest.mark.parametrize("mode", ["tools", "code"])
async def test_a_replaced_rule_counts_at_the_next_call_of_each_client(era: Era, mode: Any) -> None:
    registry = ToolRegistry(rules=AUTO)
    registry.register(add)
    program = {"code": "add(a=1)"}
    async with Client(ToolServer(registry, "tests", mode=mode).in_memory(), mode=era) as client:

        async def outcome() -> str:
            if mode == "tools":
                return await kind_of(client)
            result: Any = await client.call_tool("run_program", program)
            return "denied" if result.is_error else "success"

        assert await outcome() == "success"
        registry.configure(policy=DENY)
        assert await outcome() == "denied"
        if mode == "tools":
            assert await names_of(client) == []
        registry.configure(policy=Policy(defaults={"add": "auto"}))
        assert await outcome() == "success"
        with pytest.raises(ConfigurationError):
            registry.configure(policy=[{"tool": "ad", "effect": "deny"}])
        assert await outcome() == "success"
    registry.close()


def test_permissions_and_approvers_are_replaced_for_sessions_that_exist() -> None:
    policy = Policy(defaults={"pay": "auto"}, approvers={"*": ["ann"]})
    session = policy.for_session({"send": "deny"})
    assert (session.own("pay", "confirm"), session.own("send", "auto")) == ("auto", "deny")
    policy.replace(Policy(defaults={"pay": "deny", "send": "auto"}, approvers={"*": ["bob"]}))
    # The session's own permission goes on to count.
    assert (session.own("pay", "confirm"), session.own("send", "auto")) == ("deny", "deny")
    assert (session.judge("pay", "auto").effect, session.approvers) == ("deny", {"*": frozenset({"bob"})})
    policy.replace(Policy())
    assert (session.judge("pay", "auto").effect, session.approvers, session.rules) == ("auto", {}, ())
