"""Servers in this process: of the SDK, of FastMCP, and objects that are no servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from mcp.server import MCPServer

from toolwire import ConfigurationError, MCPClient, ServerUnavailable, ToolRegistry, ToolServer


def halve(n: int) -> float:
    """Halves a number."""
    return n / 2


def sdk_server() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("sdk")
    server.add_tool(halve)
    return server


def fastmcp_server(started: list[str] | None = None) -> FastMCP[Any]:
    started = [] if started is None else started

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, str]]:
        started.append("start")
        yield {"unit": "km"}
        started.append("end")

    server: FastMCP[Any] = FastMCP("fast", lifespan=lifespan)
    server.tool(halve)

    @server.tool
    async def unit(context: Context) -> str:
        """Reads from the lifespan."""
        return str(context.lifespan_context["unit"])

    return server


@pytest.mark.parametrize("made", [sdk_server, fastmcp_server], ids=["MCPServer", "FastMCP"])
def test_the_tools_of_a_server_in_this_process_are_called(made: Any) -> None:
    registry = ToolRegistry()
    with MCPClient.in_memory("own", made()) as client:
        registry.register_mcp_client(client, permission="auto")
        assert registry.invoke("own/halve", {"n": 5}).data == {"result": 2.5}
        failure = registry.invoke("own/halve", {"n": "x"}).failure
        assert (failure and failure.kind) == "invalid_arguments"


def test_the_lifespan_of_a_fastmcp_server_is_around_each_connection() -> None:
    started: list[str] = []
    registry, client = ToolRegistry(), MCPClient.in_memory("fast", fastmcp_server(started))
    registry.register_mcp_client(client, permission="auto")
    assert (registry.invoke("fast/unit").data, started) == ({"result": "km"}, ["start"])
    client.close()
    assert started == ["start", "end"]
    assert registry.invoke("fast/unit").success
    registry.close()
    assert started == ["start", "end"] * 2


def test_a_fastmcp_server_that_cannot_start_says_why() -> None:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        raise RuntimeError("the database is away")
        yield

    client = MCPClient.in_memory("fast", FastMCP("fast", lifespan=lifespan))
    with pytest.raises(ServerUnavailable, match="the database is away"):
        client.connect()
    client.close()


@pytest.mark.parametrize("wrong", [halve, ToolServer([halve], "own"), FastMCP, None])
def test_an_object_that_is_no_server_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="give a Server or MCPServer of the MCP SDK, a FastMCP server"):
        MCPClient.in_memory("wrong", wrong)
