"""A server of the older SSE transport that refuses a message: its caller hears of it at once, and the others go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import MCPClient, ToolRegistry

ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "old", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


class Sse(ThreadingHTTPServer):
    """Answers each message by its one stream. `refusal` is the status of calls; 0 accepts them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusal = 0
        self.answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()


class _Handler(BaseHTTPRequestHandler):
    server: Sse  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        while (answer := self.server.answers.get()) is not None:
            self.wfile.write(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())
            self.wfile.flush()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        status = self.server.refusal if method == "tools/call" and self.server.refusal else 202
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if "id" in message and status == 202:
            unknown = {"error": {"code": -32601, "message": "unknown"}}
            answer = {"result": ANSWERS[method]} if method in ANSWERS else unknown
            self.server.answers.put({"jsonrpc": "2.0", "id": message["id"], **answer})


@pytest.fixture
def sse() -> Iterator[Sse]:
    with Sse() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.answers.put(None)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (400, "unavailable", "'old/t' was not sent: the server refused the message: 400"),
        (404, "unavailable", "'old/t' was not sent: the server refused the message: 404"),
        (401, "unavailable", "'old/t' was not sent: the server refused the credentials: 401"),
        (500, "unknown_outcome", "'old/t' was not answered: the server refused the message: 500"),
    ],
)
def test_a_refused_call_fails_at_once_and_the_next_one_runs(sse: Sse, status: int, kind: str, told: str) -> None:
    registry = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    # Longer than a test may take: only the refusal can end the call.
    url = f"http://127.0.0.1:{sse.server_port}/sse"
    registry.register_mcp_client(MCPClient.sse("old", url, call_s=PATIENCE_S * 20))
    try:
        sse.refusal = status
        refused = registry.invoke("old/t", {})
        assert refused.failure is not None
        assert (refused.failure.kind, refused.error) == (kind, told)
        sse.refusal = 0
        assert registry.invoke("old/t", {}).text == "done"
    finally:
        registry.close()
