"""The servers that `benchmarks.served` and `tests.soak.served` measure, each in a process of its own.

Run: python -m benchmarks.servers PEER TOOLS [FOLDER]. A store is in that folder. It prints the URL, and serves until
SIGTERM.
"""

from __future__ import annotations

import signal
import socket
import sys
from typing import Any

from benchmarks.http_load import serving
from toolwire import MCPClient, Store, ToolRegistry, ToolServer, ToolSpec

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
    with Store.open(_store_url()) as store:
        ToolServer(specs, "bench", store=store).run_http("127.0.0.1", 0, on_start=_tell)


def toolwire_for_sessions(tools: int) -> None:
    """Serves the tools by a `ToolServer` that one client may open thousands of sessions at."""
    specs = [ToolSpec.from_function(add, name=name) for name in _names(tools)]
    ToolServer(specs, "bench", sessions=4_000, share=1.0).run_http("127.0.0.1", 0, on_start=_tell)


BEHIND = "behind_add"
"""The name under which a gateway serves the tool of the server behind it."""


def _gateway(behind: MCPClient, store: Store | None = None) -> None:
    registry = ToolRegistry(rules=[{"tool": "behind/*", "effect": "auto"}])
    registry.register_mcp_client(behind)
    ToolServer(registry, "bench", store=store).run_http("127.0.0.1", 0, on_start=_tell)


def _over_stdio() -> MCPClient:
    return MCPClient.stdio("behind", sys.executable, ["-m", "benchmarks.servers", "stdio", "1"])


def gateway(_: int) -> None:
    """Serves the tool of FastMCP's server behind it, over stdio, by a `ToolServer` without a store."""
    _gateway(_over_stdio())


def gateway_with_store(_: int) -> None:
    """The same with a store on the disk below the working folder."""
    with Store.open(_store_url()) as store:
        _gateway(_over_stdio(), store)


def gateway_over_http(_: int) -> None:
    """Serves the tool of the same server over HTTP, without a store."""
    with serving("fastmcp", 1) as behind:
        _gateway(MCPClient.http("behind", behind.url))


def fastmcp_proxy(_: int) -> None:
    """Serves the same server behind it by FastMCP's proxy."""
    from fastmcp.server import create_proxy

    with serving("fastmcp", 1) as behind:
        _serve(create_proxy(behind.url).http_app())


def stdio(tools: int) -> None:
    """Serves the tools over stdio by FastMCP."""
    from fastmcp import FastMCP
    from fastmcp.tools import Tool

    server = FastMCP("behind")
    for name in _names(tools):
        server.add_tool(Tool.from_function(add, name=name))
    server.run(show_banner=False)


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


def _store_url() -> str:
    """Returns the URL of a store in the folder that whoever started this process deletes after it."""
    return f"sqlite:///{sys.argv[3]}/runs.db"


def _tell(url: str) -> None:
    print(url, flush=True)


SERVERS = {
    "toolwire": toolwire,
    "toolwire-store": toolwire_with_store,
    "toolwire-sessions": toolwire_for_sessions,
    "fastmcp": fastmcp,
    "sdk": sdk,
    "gateway": gateway,
    "gateway-store": gateway_with_store,
    "gateway-http": gateway_over_http,
    "fastmcp-proxy": fastmcp_proxy,
    "stdio": stdio,
}

if __name__ == "__main__":
    # uvicorn raises the signal again once it has ended. What this process started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    SERVERS[sys.argv[1]](int(sys.argv[2]))
