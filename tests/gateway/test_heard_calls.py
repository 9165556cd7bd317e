"""A client hears of its call while a server behind the gateway works: progress, log messages and whole texts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server import Server

from mcp import Client
from tests.architecture.source import ROOT
from tests.gateway.conftest import ERAS, Era
from toolwire import MCPClient, ToolRegistry, ToolServer

LONG = "line\n" * 30_000
WRITTEN = "Does work.\n\n# Steps\n- one <b>step</b>\n" + "x" * 3_000
HIDDEN = "\U000e0041\u202e\u200b\x07"
SCHEMA = {
    "type": "object",
    "properties": {"how": {"type": "string", "description": "First.\n\n- `fast`\n" + "y" * 3_000}},
}
RULES = [{"tool": "*", "effect": "auto"}]


def working_server() -> Server[Any]:
    """A server whose one tool reports progress, writes log messages and returns a long text."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="work", description=WRITTEN + HIDDEN, input_schema=SCHEMA, output_schema=SCHEMA)
        return types.ListToolsResult(tools=[tool])

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        for step in range(3):
            await context.session.report_progress(step + 1, 3, f"step {step + 1}")
        messages: list[tuple[types.LoggingLevel, Any]] = [("debug", "quiet"), ("warning", {"text": f"loud{HIDDEN}"})]
        for level, data in messages:
            said = types.LoggingMessageNotificationParams(level=level, data=data, logger="work")
            message = types.LoggingMessageNotification(params=said)
            await context.session.send_notification(message, related_request_id=context.request_id)
        return types.CallToolResult(content=[types.TextContent(text=LONG)], structured_content={"how": "well"})

    server: Server[Any] = Server("worker", on_list_tools=list_tools, on_call_tool=call)
    return server


Behind = Callable[[], MCPClient]


@pytest.fixture(params=ERAS)
def behind(request: pytest.FixtureRequest) -> Behind:
    """Makes a client of the server by the protocol of either era."""

    def make() -> MCPClient:
        client = MCPClient.in_memory("w", InMemoryTransport(working_server()))
        client.protocol = "2025-06-18" if request.param == "legacy" else None
        return client

    return make


async def test_progress_and_log_messages_pass_through_the_gateway(behind: Behind, era: Era) -> None:
    registry = ToolRegistry(rules=RULES)
    registry.register_mcp_client(behind())
    steps, said = list[Any](), list[Any]()

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        said.append((params.level, params.data, params.logger))

    gateway = ToolServer(registry, "gateway").in_memory()
    async with Client(gateway, mode=era, logging_callback=log, log_level="info") as client:
        result = await client.call_tool("w_work", {}, progress_callback=step)
    # Of several steps that wait for a slow client, the last one counts.
    assert steps[-1] == (3, 3, "step 3")
    assert said == [("warning", {"text": "loud"}, "work")]
    assert [block.text for block in result.content if block.type == "text"] == [LONG]
    assert result.structured_content == {"how": "well"}
    registry.close()


async def test_definitions_are_as_the_server_wrote_them_without_hidden_characters(
    behind: Behind, era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    registry = ToolRegistry(rules=RULES)
    registry.register_mcp_client(behind(), preset_kwargs_mapping={})
    async with Client(ToolServer(registry, "gateway").in_memory(), mode=era) as client:
        (tool,) = (await client.list_tools()).tools
    assert (tool.description, tool.input_schema, tool.output_schema) == (WRITTEN, SCHEMA, SCHEMA)
    assert "tool 'w/work': invisible characters were removed from its texts" in caplog.messages
    # Where toolwire writes the prompt, it is one bounded paragraph.
    assert "\n" not in registry.get_tool("w/work").__tool__().description
    registry.close()


async def test_a_preset_is_not_in_the_definition() -> None:
    registry = ToolRegistry(rules=RULES)
    client = MCPClient.in_memory("w", working_server())
    registry.register_mcp_client(client, preset_kwargs_mapping={"work": {"how": "fast"}})
    async with Client(ToolServer(registry, "gateway").in_memory()) as reader:
        (tool,) = (await reader.list_tools()).tools
    assert tool.input_schema == {"type": "object", "properties": {}, "required": []}
    registry.close()


async def test_a_sanitised_server_gives_the_texts_of_a_prompt() -> None:
    registry = ToolRegistry(rules=RULES)
    client = MCPClient.in_memory("w", working_server())
    client.offers.is_sanitised = True
    registry.register_mcp_client(client)
    async with Client(ToolServer(registry, "gateway").in_memory()) as reader:
        (tool,) = (await reader.list_tools()).tools
    assert (tool.description or "").startswith("Does work. # Steps - one \u2039b>step")
    registry.close()


async def test_a_text_beyond_the_limit_is_a_page_and_read_result_reads_on() -> None:
    registry = ToolRegistry(rules=RULES)
    registry.register_mcp_client(MCPClient.in_memory("w", working_server()))
    registry.configure(result_pages=True)
    gateway = ToolServer(registry, "gateway", result_bytes=100_000).in_memory()
    async with Client(gateway) as client:
        result = await client.call_tool("w_work", {})
        (text,) = (block.text for block in result.content if block.type == "text")
        assert len(text) < 101_000
        assert "the first 100,000 of 150,000 characters" in text
        id_ = text.split("id='")[1].split("'")[0]
        rest = await client.call_tool("read_result", {"id": id_, "offset": 100_000})
        assert len(str(rest.content[0])) > 50_000
    registry.close()


def asking_client(record: Path) -> MCPClient:
    """A client of a server of the handshake era, which asks while a call waits."""
    return MCPClient.stdio("w", sys.executable, ["-m", "tests.mcp.client.asking_server", str(record)], cwd=ROOT)


async def test_a_handshake_server_asks_the_person_of_its_client(tmp_path: Path) -> None:
    registry, shown = ToolRegistry(rules=RULES), list[str]()
    registry.register_mcp_client(asking_client(tmp_path / "record"))

    async def person(context: Any, params: Any) -> types.ElicitResult:
        shown.append(params.message)
        return types.ElicitResult(action="accept", content={"size": 3})

    gateway = ToolServer(registry, "gateway").in_memory()
    async with Client(gateway, mode="legacy", elicitation_callback=person) as client:
        result = await client.call_tool("w_ask", {})
        secret = {"type": "object", "properties": {"api_key": {"type": "string"}}}
        declined = await client.call_tool("w_ask", {"form": secret})
    assert [block.text for block in result.content if block.type == "text"] == [
        '{"action": "accept", "content": {"size": 3}}'
    ]
    assert shown == ["The MCP server 'w' asks:\nHow much?"]
    assert [block.text for block in declined.content if block.type == "text"] == ['{"action": "decline"}']
    registry.close()
