"""A real MCP server for tests, made with the SDK. Tests start it as a process: `python -m ... RECORD [PORT [sse]]`.

With a port it serves HTTP on this machine; port 0 is any free one, and stdout gets its number.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from mcp import stdio_server

OBJECT = {"type": "object", "properties": {}}
TOOLS = [
    types.Tool(
        name="add",
        description="Adds two numbers.",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        output_schema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    ),
    types.Tool(name="fail", description="Fails.", input_schema=OBJECT),
    types.Tool(name="wait", description="Waits for ever.", input_schema=OBJECT),
    types.Tool(name="nap", input_schema={"type": "object", "properties": {"seconds": {"type": "number"}}}),
    types.Tool(name="progress", description="Reports progress.", input_schema=OBJECT),
    types.Tool(name="die", description="Ends the process.", input_schema=OBJECT),
    types.Tool(name="process", description="Shows its number.", input_schema=OBJECT),
    types.Tool(name="child", description="Starts a process that ignores SIGTERM.", input_schema=OBJECT),
    types.Tool(name="environment", description="Shows its environment.", input_schema=OBJECT),
]


def tool_server(record: Path | None = None) -> Server[Any]:
    """Returns the server. It appends a line to the record for each call that it starts and each that is cancelled."""

    def note(text: str) -> None:
        if record is not None:
            with record.open("a") as file:
                file.write(f"{text}\n")

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        note(f"{params.name} {arguments.get('a', '')}".strip())
        try:
            return await run(ctx, params.name, arguments)
        except anyio.get_cancelled_exc_class():
            note(f"cancelled {params.name}")
            raise

    return Server("test-server", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def run(ctx: Any, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    match name:
        case "add":
            total = arguments["a"] + arguments["b"]
            return types.CallToolResult(content=[types.TextContent(text=str(total))], structured_content={"sum": total})
        case "fail":
            return types.CallToolResult(content=[types.TextContent(text="the disk is full")], is_error=True)
        case "wait":
            await anyio.sleep_forever()
        case "nap":
            await anyio.sleep(arguments["seconds"])
            return text("rested")
        case "progress":
            for step in range(4):
                await anyio.sleep(0.2)
                await ctx.session.report_progress(step, 4)
            return text("arrived")
        case "die":
            logging.shutdown()
            os._exit(3)
        case "process":
            return text(str(os.getpid()))
        case "child":
            child = await anyio.open_process(["sh", "-c", "trap '' TERM; sleep 1000"], stdin=None, stdout=None)
            return text(str(child.pid))
        case "environment":
            return text(" ".join(sorted(os.environ)))
        case _:
            return text(f"no tool {name}")
    raise AssertionError


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)])


async def serve(record: Path) -> None:
    server = tool_server(record)
    print("ready to serve", file=sys.stderr)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def sse_app(server: Server[Any]) -> Starlette:
    transport = SseServerTransport("/messages/")

    async def handle(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", handle), Mount("/messages/", app=transport.handle_post_message)]
    return Starlette(routes=routes)


async def serve_http(record: Path, port: int, kind: str) -> None:
    server = tool_server(record)
    app = sse_app(server) if kind == "sse" else server.streamable_http_app()
    found = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
        print(listening.getsockname()[1], flush=True)
        await found.serve(sockets=[listening])


if __name__ == "__main__":
    if len(sys.argv) == 2:
        anyio.run(serve, Path(sys.argv[1]))
    else:
        anyio.run(serve_http, Path(sys.argv[1]), int(sys.argv[2]), "".join(sys.argv[3:]))
