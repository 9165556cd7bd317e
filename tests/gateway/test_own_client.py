"""Our own client on our own server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gateway.conftest import Served, serve_command
from tests.gateway.served_tools import new_registry
from tests.patience import until
from toolwire import MCPClient, ToolRegistry, ToolServer

Served_ = Callable[..., Served]


@pytest.fixture(params=["memory", "stdio", "http"])
def client(request: pytest.FixtureRequest, tmp_path: Path, served: Served_) -> MCPClient:
    if request.param == "memory":
        return MCPClient.in_memory("own", ToolServer(new_registry(), "tests").in_memory())
    if request.param == "http":
        return MCPClient.http("own", served().url)
    command, *arguments = serve_command()
    return MCPClient.stdio("own", command, arguments, cwd=tmp_path, env={"PYTHONPATH": str(Path.cwd())})


def test_tools_come_with_their_schemas_and_give_their_results(client: MCPClient) -> None:
    registry = ToolRegistry()
    registry.register_mcp_client(client, permission="auto")
    theirs = {tool.name: tool for tool in new_registry().to_toolspecs().values()}
    assert registry.to_toolspecs()["own/add"].input_schema == theirs["add"].input_schema
    assert registry.invoke("own/add", {"a": 1, "b": 2}).data == {"result": 3}
    failed = registry.invoke("own/fail")
    assert failed.failure is not None
    assert (failed.failure.kind, (failed.error or "").partition("\n")[0]) == ("tool_error", "OSError: the disk is full")
    registry.close()


async def test_twenty_calls_at_once(client: MCPClient) -> None:
    registry = ToolRegistry()
    await asyncio.to_thread(registry.register_mcp_client, client, permission="auto")
    results = await asyncio.gather(*(registry.ainvoke("own/add", {"a": n, "b": 1}) for n in range(20)))
    assert [result.data for result in results] == [{"result": n + 1} for n in range(20)]
    await asyncio.to_thread(registry.close)


def test_a_server_that_dies_in_a_call_leaves_an_unknown_outcome_and_comes_back(tmp_path: Path) -> None:
    command, *arguments = serve_command()
    registry = ToolRegistry()
    registry.register_mcp_client(MCPClient.stdio("own", command, arguments, cwd=tmp_path), permission="auto")
    died = registry.invoke("own/die")
    assert died.failure is not None
    assert died.failure.kind == "unknown_outcome"
    until(lambda: registry.invoke("own/add", {"a": 1, "b": 2}).success)
    registry.close()
