"""A server of the handshake era by HTTP, without the SDK, whose calls ask on their own streams."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.mcp.client.asking_server import FORM, SCHEMA

CALLS = 2
"""The server asks when so many calls have arrived, so that they are under way together."""


class Asking:
    """Each call asks one question, whose text names the call, and returns the person's answer."""

    def __init__(self) -> None:
        self._arrived = 0
        self._all_there = asyncio.Event()
        self._answers: dict[str, asyncio.Future[Any]] = {}

    async def post(self, request: Request) -> Response:
        message = await request.json()
        match message.get("method"):
            case "initialize":
                info = {"name": "asking", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "ask", "inputSchema": SCHEMA}]}
            case "tools/call":
                return StreamingResponse(self._call(message), media_type="text/event-stream")
            case None:
                self._answers[message["id"]].set_result(message["result"])
                return Response(status_code=202)
            case _ if "id" in message:
                error = {"code": -32601, "message": "no such method"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, 404)
            case _:
                return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _call(self, call: dict[str, Any]) -> AsyncGenerator[str]:
        self._arrived += 1
        if self._arrived == CALLS:
            self._all_there.set()
        await self._all_there.wait()
        name = f"question of {call['params']['arguments']['times']}"
        self._answers[name] = asyncio.get_running_loop().create_future()
        params = {"message": name, "requestedSchema": FORM}
        yield event({"id": name, "method": "elicitation/create", "params": params})
        said = json.dumps(await self._answers[name])
        yield event({"id": call["id"], "result": {"content": [{"type": "text", "text": said}]}})


def event(message: dict[str, Any]) -> str:
    return f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n"


@contextmanager
def asking_url() -> Generator[str]:
    """Serves it in a thread, and gives the URL."""

    async def post(request: Request) -> Response:
        return await asking.post(request)

    asking = Asking()
    app = Starlette(routes=[Route("/mcp", post, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        server.should_exit = True
        thread.join()
