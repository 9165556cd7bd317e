"""The servers that `benchmarks.served` and `tests.soak.served` measure, each in a process of its own.

Run: python -m benchmarks.servers PEER TOOLS. It prints the URL, and serves until SIGTERM.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolwire import Store, ToolServer, ToolSpec

PEERS = ("toolwire", "fastmcp", "sdk")


async def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: The first number
        b: The second number
    """
    return a + b


def _names(tools: int) -> list[str]:
    return ["add", *(f"add_{number}" for number in range(1, tools))]


def toolwire(tools: int) -> None:
    """Serves the tools by a `ToolServer`."""
    specs = [ToolSpec.from_function(add, name=name) for name in _names(tools)]
    ToolServer(specs, "bench").run_http("127.0.0.1", 0, on_start=_tell)


def toolwire_with_store(tools: int) -> None:
    """Serves the tools by a `ToolServer` with a store on the disk below the working folder."""
    specs = [ToolSpec.from_function(add, name=name) for name in _names(tools)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        ToolServer(specs, "bench", store=store).run_http("127.0.0.1", 0, on_start=_tell)


def fastmcp(tools: int) -> None:
    """Serves the tools by FastMCP."""
    from fastmcp import FastMCP
    from fastmcp.tools import Tool

    server = FastMCP("bench")
    for name in _names(tools):
        server.add_tool(Tool.from_function(add, name=name))
    _serve(server.http_app())


def sdk(tools: int) -> None:
    """Serves the tools by the SDK's low-level server with the least that a handler can do."""
    import mcp_types as types
    from mcp.server import Server

    spec = ToolSpec.from_function(add)
    listed = [spec.to_mcp().model_copy(update={"name": name}) for name in _names(tools)]

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        value = await add(**(params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(text=str(value))], structured_content={"result": value})

    schemas = {tool.name: tool.input_schema for tool in listed}
    server: Any = Server("bench", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get)
    _serve(server.streamable_http_app())


def _serve(app: Any) -> None:
    """Serves an application by uvicorn as `ToolServer.run_http` does."""
    import uvicorn

    # With the protocol's number, asyncio sends without delay, as it does for a host and a port.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(2048)
        _tell(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(app, ws="none", log_level="warning", access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])


def _tell(url: str) -> None:
    print(url, flush=True)


SERVERS = {"toolwire": toolwire, "toolwire-store": toolwire_with_store, "fastmcp": fastmcp, "sdk": sdk}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
