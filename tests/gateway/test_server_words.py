"""Results of a server behind are in its own words: no hint of toolwire, and no text where it wrote none."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from mcp import Client
from tests.gateway.conftest import Era
from toolwire import MCPClient, ToolRegistry, ToolServer

WORDS: dict[str, types.CallToolResult] = {
    "fail": types.CallToolResult(content=[types.TextContent(text="no such city")], is_error=True),
    "nothing": types.CallToolResult(content=[]),
    "structure": types.CallToolResult(content=[], structured_content={"a": 1}),
    "both": types.CallToolResult(content=[types.TextContent(text="one")], structured_content={"a": 1}),
}


def behind() -> Any:
    async def tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in WORDS])

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return WORDS[params.name]

    return Server("behind", on_list_tools=tools, on_call_tool=call)


def words_of(result: types.CallToolResult) -> tuple[Any, ...]:
    return result.content, result.structured_content, result.is_error


@pytest.mark.parametrize("name", WORDS)
async def test_a_result_is_in_the_words_of_its_server(name: str, era: Era) -> None:
    registry = ToolRegistry(rules=[{"tool": "b/*", "effect": "auto"}])
    registry.register_mcp_client(MCPClient.in_memory("b", behind()))
    async with Client(ToolServer(registry, "gateway").in_memory(), mode=era) as client:
        assert words_of(await client.call_tool(f"b_{name}", {})) == words_of(WORDS[name])
    registry.close()


async def test_the_failure_of_an_own_tool_has_its_hint() -> None:
    """The control."""

    def fail() -> str:
        """Fails."""
        raise LookupError("no such city")

    async with Client(ToolServer([fail], "own").in_memory()) as client:
        (block,) = (await client.call_tool("fail", {})).content
    assert isinstance(block, types.TextContent)
    assert block.text.splitlines()[1:] == ["Read the error; change the arguments or try another tool."]
