"""A real uvicorn in a thread of this process, and requests to it byte by byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tests.patience import PATIENCE_S, until
from toolwire.gateway.http.connections import Port, PortConnection
from toolwire.gateway.server_limits import ServerLimits

MODERN = "2026-07-28"


@contextmanager
def serving(app: ASGIApp, limits: ServerLimits | None = None) -> Generator[int]:
    """Serves the application on this machine, and yields the port. With limits, it is a port as of `run_http`."""
    http: Any = "auto" if limits is None else partial(PortConnection, Port(limits))
    config = uvicorn.Config(app, port=0, http=http, lifespan="on", log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def call_body(name: str = "add", arguments: dict[str, Any] | None = None, id: int = 1) -> bytes:
    """Returns a call by protocol 2026-07-28."""
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": {}}
    params = {"name": name, "arguments": {"a": 1, "b": 2} if arguments is None else arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


def call_headers(name: str = "add") -> list[tuple[str, str]]:
    return [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name),
    ]


def raw(
    port: int,
    *headers: tuple[str, str],
    body: bytes | None = None,
    host: str | None = None,
    name: str = "add",
    own_headers: list[tuple[str, str]] | None = None,
) -> tuple[int, bytes]:
    """Sends a call with these headers besides those of a call, and returns the status and the body.

    `host` is the Host header; None is this machine's own, and "" is none. `own_headers` are those of a call.
    """
    body = call_body() if body is None else body
    own = f"127.0.0.1:{port}" if host is None else host
    lines = [("Host", own)] if own else []
    lines += [
        *(own_headers or call_headers(name)),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        *headers,
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode("latin-1"))
        received = b""
        # A server may refuse a large body before it has read it.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(body)
        with suppress(ConnectionResetError):
            while part := connection.recv(65_536):
                received += part
    start, _, content = received.partition(b"\r\n\r\n")
    return int(start.split(b" ")[1]), content
