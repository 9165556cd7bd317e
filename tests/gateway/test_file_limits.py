"""Limits of calls in the file of servers and profiles."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp import Client
from tests.gateway.test_config import upstream
from tests.gateway.test_overrides import RAW
from tests.patience import PATIENCE_S
from toolwire import ClientProfiles, ConfigurationError, ToolRegistry, ToolServer
from toolwire.mcp.config import read_servers

TOKEN = "sha256:" + "0" * 64


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    yield made
    made.close()


@contextmanager
def calling_as(principal: str) -> Generator[None]:
    given = AccessToken(token="x", client_id=principal, scopes=[])
    before = auth_context_var.set(AuthenticatedUser(given))
    try:
        yield
    finally:
        auth_context_var.reset(before)


async def kinds_of(server: ToolServer, principal: str, tool: str, calls: int, **arguments: Any) -> list[str]:
    """The kinds of failures of so many calls of one client; empty for one that succeeds."""
    with calling_as(principal):
        async with Client(server.in_memory()) as client:
            results = [await client.call_tool(tool, arguments) for _ in range(calls)]
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


async def text_of(server: ToolServer, principal: str, tool: str, **arguments: Any) -> str:
    with calling_as(principal):
        async with Client(server.in_memory()) as client:
            found: Any = await client.call_tool(tool, arguments)
    return "".join(block.text for block in found.content)


async def test_a_long_result_of_a_server_comes_in_pages(registry: ToolRegistry) -> None:
    entries = {"raw": {**RAW, "limits": {"resultBytes": 1_000}}, "free": RAW}
    assert registry.mcp.add({"mcpServers": entries}) == []
    registry.configure(result_pages=True)
    server, long = ToolServer(registry, "gateway"), "0123456789" * 300
    page = await text_of(server, "ada", "raw_say", text=long)
    assert len(page.encode()) < 1_200
    (told,) = re.findall(r"id='([^']+)' and offset=(\d+)", page)
    rest = await text_of(server, "ada", "read_result", id=told[0], offset=int(told[1]))
    assert (page[: int(told[1])] + rest)[:1_500] == long[:1_500]
    assert await text_of(server, "ada", "raw_say", text=long[:1_000]) == long[:1_000]
    assert await text_of(server, "ada", "free_say", text=long) == long


@pytest.mark.parametrize("mode", ["tools", "code"])
async def test_a_long_result_for_a_client_comes_in_pages_and_its_programs_get_it_whole(mode: Any) -> None:
    def lines(count: int) -> str:
        return "a line\n" * count

    clients = {
        name: {"token": f"sha256:{digit * 64}", "tools": ["*"]} for name, digit in (("short", "1"), ("all", "2"))
    }
    clients["short"]["limits"] = {"resultBytes": 1_000}
    registry = ToolRegistry()
    registry.configure(result_pages=True)
    registry.register(lines)
    server = ToolServer(registry, "gateway", token_verifier=ClientProfiles(clients), mode=mode)

    async def answer(client: str, count: int) -> str:
        if mode == "tools":
            return await text_of(server, client, "lines", count=count)
        return await text_of(server, client, "run_program", code=f"text = lines(count={count})\nprint(len(text))\ntext")

    assert "read_result" in await answer("short", 1_000)
    assert len((await answer("short", 1_000)).encode()) < 1_200
    assert "read_result" not in await answer("all", 1_000)
    assert len(await answer("all", 1_000)) >= 7_000
    assert mode == "tools" or "7000" in await answer("short", 1_000)


async def test_the_timeout_of_an_entry_ends_a_call(registry: ToolRegistry, tmp_path: Path) -> None:
    entry = {**upstream(tmp_path / "record"), "timeout": 0.3}
    assert registry.mcp.add({"mcpServers": {"slow": entry}}) == []
    server = ToolServer(registry, "gateway")
    assert await kinds_of(server, "ada", "slow_nap", 1, seconds=PATIENCE_S) == ["unknown_outcome"]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (5, "limits: write a table such as {'rate': '60/min', 'concurrency': 4}"),
        ({"rate": 5}, "limits.rate: 5 is not a rate: write calls and a time: 60/min, 5/s or 100/h"),
        ({"rate": "0/s"}, "limits.rate: '0/s' is not a rate: write calls and a time: 60/min, 5/s or 100/h"),
        ({"concurrency": True}, "limits.concurrency: True is not a number of calls: write 1 or more"),
        ({"burst": 1}, "limits.burst: is not known: write rate, concurrency or resultBytes"),
        ({"resultBytes": 999}, "limits.resultBytes: 999 is not a number of bytes: write 1000 or more"),
        ({"resultBytes": 2e3}, "limits.resultBytes: 2000.0 is not a number of bytes: write 1000 or more"),
    ],
)
def test_limits_that_are_none_are_refused_with_their_place(limits: Any, why: str) -> None:
    _, [problem], _ = read_servers({"mcpServers": {"raw": {**RAW, "limits": limits}}})
    assert f"{problem.place}: {problem.reason}" == f"config: mcpServers.raw.{why}"
    with pytest.raises(ConfigurationError) as refused:
        ClientProfiles({"ops": {"token": TOKEN, "tools": [], "limits": limits}})
    assert str(refused.value) == f"profiles.ops.{why}"
