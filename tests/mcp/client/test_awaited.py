"""Methods that AgentScope 1 has as coroutines may be awaited."""

from __future__ import annotations

import pytest

from tests.mcp.client.tool_server import tool_server
from toolwire import MCPClient, RegistrationError, Toolkit, ToolRegistry
from toolwire.seeds import MCPToolFunction


@pytest.mark.parametrize("made", [ToolRegistry, Toolkit])
async def test_the_old_lines_run_with_and_without_await(made: type[ToolRegistry | Toolkit]) -> None:
    tools, client = made(), MCPClient.in_memory("local", tool_server())
    await client.connect()
    assert client.is_connected
    await tools.register_mcp_client(client, permission="auto")
    function = await client.get_callable_function("add", wrap_tool_result=True)
    assert isinstance(function, MCPToolFunction)
    assert (await function(a=1, b=2)).text == client.get_callable_function("add")(a=1, b=2).result().text
    assert "local/add" in tools
    await tools.remove_mcp_servers(["local"])
    assert "local/add" not in tools
    await client.close()
    assert not client.is_connected


async def test_what_is_wrong_is_raised_before_it_is_awaited() -> None:
    registry, client = ToolRegistry(), MCPClient.in_memory("local", tool_server())
    registry.register_mcp_client(client)
    with pytest.raises(RegistrationError):
        registry.register_mcp_client(client)
    with pytest.raises(RegistrationError):
        client.get_callable_function("fly")
    registry.close()
