"""What a server behind a gateway writes beside the content of a result reaches the client, and no model."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from mcp import Client
from tests.gateway.conftest import Era
from toolwire import MCPClient, ToolRegistry, ToolServer
from toolwire.vocabulary.blocks import block_for_model

SVG = base64.b64encode(b"<svg/>").decode()
SOUND = base64.b64encode(b"sound").decode()
META: dict[str, Any] = {"theirs/own": {"a": [1]}}
ICON = types.Icon(src="https://example.com/i.png", mime_type="image/png")
INSIDE = types.TextResourceContents(uri="note://a", text="inside", _meta=META)
BLOCKS: Mapping[str, types.ContentBlock] = {
    "text": types.TextContent(text="said", _meta=META, annotations=types.Annotations(priority=0.5)),
    "image": types.ImageContent(data=SVG, mime_type="image/svg+xml", _meta=META),
    "audio": types.AudioContent(data=SOUND, mime_type="audio/wav", _meta=META),
    "resource": types.EmbeddedResource(resource=INSIDE, _meta={"theirs/more": 2}),
    "link": types.ResourceLink(uri="note://b", name="b", icons=[ICON], size=5, _meta=META),
}
REFUSED = types.CallToolResult(
    content=[types.TextContent(text="no room")], structured_content={"code": 7, "of": ["a\u200b"]}, is_error=True
)


def writing() -> Server[Any]:
    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "refuse":
            return REFUSED
        return types.CallToolResult(content=[BLOCKS[params.name], types.TextContent(text="more")])

    async def tools(_: Any, __: Any) -> types.ListToolsResult:
        names = (*BLOCKS, "refuse")
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])

    return Server("writing", on_list_tools=tools, on_call_tool=call)


@pytest.mark.parametrize("store", [None, "memory:"])
async def test_blocks_pass_as_the_server_wrote_them(era: Era, store: str | None) -> None:
    registry = ToolRegistry()
    registry.register_mcp_client(MCPClient.in_memory("far", writing()), permission="auto")
    server = ToolServer(registry, "gateway", store=store)
    async with Client(server.in_memory(), mode=era) as client:
        found = {name: (await client.call_tool(f"far_{name}", {})).content for name in BLOCKS}
        failed = await client.call_tool("far_refuse", {})
    registry.close()
    assert found == {name: [block, types.TextContent(text="more")] for name, block in BLOCKS.items()}
    # A failure has its structured content too, without the character that nobody sees.
    assert (failed.is_error, failed.structured_content) == (True, {"code": 7, "of": ["a"]})
    assert failed.content == [types.TextContent(text="no room")]


def test_no_model_reads_what_is_beside_the_content() -> None:
    registry = ToolRegistry()
    registry.register_mcp_client(MCPClient.in_memory("far", writing()), permission="auto")
    shown = {name: block_for_model(registry.invoke(f"far/{name}").content[0]) for name in BLOCKS}
    refused = registry.invoke("far/refuse")
    registry.close()
    assert shown["text"] == {"type": "text", "text": "said"}
    assert "theirs" not in str(shown)
    assert "example.com" not in str(shown)
    assert (refused.structured_content, "code" in refused.text) == (None, False)
