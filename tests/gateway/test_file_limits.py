"""Limits of calls in the file of servers and profiles."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp import Client
from tests.gateway.test_overrides import RAW
from toolwire import ClientProfiles, ConfigurationError, ToolRegistry, ToolServer
from toolwire.mcp.config import read_servers

TOKEN = "sha256:" + "0" * 64


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    yield made
    made.close()


async def kinds_of(server: ToolServer, principal: str, tool: str, calls: int, **arguments: Any) -> list[str]:
    """The kinds of failures of so many calls of one client; empty for one that succeeds."""
    given = AccessToken(token="x", client_id=principal, scopes=[])
    before = auth_context_var.set(AuthenticatedUser(given))
    try:
        async with Client(server.in_memory()) as client:
            results = [await client.call_tool(tool, arguments) for _ in range(calls)]
    finally:
        auth_context_var.reset(before)
    return [(result.meta or {}).get("toolwire/failure", {}).get("kind", "") for result in results]


async def test_a_server_takes_so_many_calls_of_each_tool(registry: ToolRegistry) -> None:
    entry = {**RAW, "limits": {"rate": "2/h", "concurrency": 5}}
    assert registry.mcp.add({"mcpServers": {"raw": entry, "free": RAW}}) == []
    server = ToolServer(registry, "gateway")
    assert await kinds_of(server, "ada", "raw_say", 3, text="a") == ["", "", "overloaded"]
    assert await kinds_of(server, "ada", "free_say", 3, text="a") == ["", "", ""]
    # Changed limits are in force at the next call.
    registry.mcp.update({"mcpServers": {"raw": RAW}})
    assert await kinds_of(server, "ada", "raw_say", 1, text="a") == [""]


async def test_a_client_makes_so_many_calls_over_all_tools() -> None:
    def add(a: int) -> int:
        return a + 1

    def double(a: int) -> int:
        return 2 * a

    table = {name: {"token": f"sha256:{digit * 64}", "tools": ["*"]} for name, digit in (("few", "1"), ("many", "2"))}
    profiles = ClientProfiles({**table, "few": {**table["few"], "limits": {"rate": "2/h"}}})
    server = ToolServer([add, double], "gateway", token_verifier=profiles)
    assert await kinds_of(server, "few", "add", 1, a=1) == [""]
    assert await kinds_of(server, "few", "double", 2, a=1) == ["", "overloaded"]
    assert await kinds_of(server, "many", "add", 3, a=1) == ["", "", ""]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (5, "limits: write a table such as {'rate': '60/min', 'concurrency': 4}"),
        ({"rate": 5}, "limits.rate: 5 is not a rate: write calls and a time: 60/min, 5/s or 100/h"),
        ({"rate": "0/s"}, "limits.rate: '0/s' is not a rate: write calls and a time: 60/min, 5/s or 100/h"),
        ({"concurrency": True}, "limits.concurrency: True is not a number of calls: write 1 or more"),
        ({"burst": 1}, "limits.burst: is not known: write rate or concurrency"),
    ],
)
def test_limits_that_are_none_are_refused_with_their_place(limits: Any, why: str) -> None:
    _, [problem] = read_servers({"mcpServers": {"raw": {**RAW, "limits": limits}}})
    assert f"{problem.place}: {problem.reason}" == f"config: mcpServers.raw.{why}"
    with pytest.raises(ConfigurationError) as refused:
        ClientProfiles({"ops": {"token": TOKEN, "tools": [], "limits": limits}})
    assert str(refused.value) == f"profiles.ops.{why}"
