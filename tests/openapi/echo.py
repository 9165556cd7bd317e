"""An ASGI app that answers with the request that it got, or as a test wants it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import httpx2

Reply = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body of an answer."""


class Echo:
    """Keeps each request, and answers with it as JSON or with `reply(request)`."""

    def __init__(self, reply: Callable[[dict[str, Any]], Reply] | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.reply = reply

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = {
            "method": scope["method"],
            "path": scope["raw_path"].decode().partition("?")[0],
            "query": [list(pair) for pair in parse_qsl(scope["query_string"].decode(), keep_blank_values=True)],
            "headers": headers,
            "body": body.decode("utf-8", "replace"),
        }
        self.requests.append(request)
        status, sent, content = (
            (200, {"content-type": "application/json"}, json.dumps(request).encode())
            if self.reply is None
            else self.reply(request)
        )
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": content})


def document(*operations: dict[str, Any], url: str = "https://api.example.com", **more: Any) -> dict[str, Any]:
    """Returns an OpenAPI document. Each operation has its own keys `path` and `method`."""
    paths: dict[str, Any] = {}
    for operation in operations:
        content = {key: value for key, value in operation.items() if key not in ("path", "method")}
        answers = {"200": {"description": "The answer"}}
        paths.setdefault(operation["path"], {})[operation.get("method", "get")] = {"responses": answers, **content}
    whole = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": url}], "paths": paths}
    return whole | more


def parameter(name: str, where: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Returns a parameter of a document."""
    needed = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "schema": schema or {"type": "string"}, **needed, **more}


def body(schema: dict[str, Any], media: str = "application/json", **more: Any) -> dict[str, Any]:
    """Returns a body of a document."""
    return {"required": True, "content": {media: {"schema": schema, **more}}}


def client_of(url: str, **more: Any) -> httpx2.AsyncClient:
    """Returns a client that keeps no connection open, so that nothing is left to close."""
    return httpx2.AsyncClient(base_url=url, limits=httpx2.Limits(max_keepalive_connections=0), **more)
