"""A server of the handshake era by HTTP, without the SDK. It answers calls with a text that the caller gives."""

from __future__ import annotations

import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.mcp.client.raw_server import TOOL

INFO = {"name": "careless", "version": "1"}


async def post(request: Request) -> Response:
    message = await request.json()
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            text = f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, {message["params"]["arguments"]["text"]}}}'
            if request.url.path == "/stream":
                return Response(
                    f": hello\r\n\r\nevent: message\r\ndata: {text}\r\n\r\n", media_type="text/event-stream"
                )
            return Response(text, media_type="application/json")
        case _ if number is None:
            return Response(status_code=202)
        case _:
            error = {"code": -32601, "message": "Method not found"}
            return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, 200)
    return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})


app = Starlette(routes=[Route(path, post, methods=["POST"]) for path in ("/json", "/stream")])
