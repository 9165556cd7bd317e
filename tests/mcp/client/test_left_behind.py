"""A server costs little after its end, and while its streams end again and again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.architecture.source import ROOT
from tests.mcp.client.raw_server import TOOL
from tests.patience import until
from toolwire import MCPClient, ToolRegistry
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.transports import http, stdio
from toolwire.vocabulary.machine import system

DAEMON = """
import os, pathlib, runpy, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        for number in range(3):
            os.close(number)
        pathlib.Path(sys.argv[1] + ".new").write_text(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
sys.argv[1:] = []
runpy.run_module("tests.mcp.client.raw_server", run_name="__main__")
"""


def daemon_of_a_closed_server(folder: Path, name: str) -> int:
    """Returns the process id of a daemon whose server was closed."""
    noted = folder / name
    client = MCPClient.stdio("raw", sys.executable, ["-c", DAEMON, str(noted)], cwd=ROOT)
    assert [tool.name for tool in client.list_tools()] == ["say"]
    until(noted.exists)
    client.close()
    return int(noted.read_text())


def test_a_daemon_of_a_server_is_gone_after_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.process_start(daemon_of_a_closed_server(tmp_path, "ended")) is None
    # The control: without the search for its mark the daemon lives on.
    monkeypatch.setattr(system, "kill_marked", lambda variable, mark: True)  # pyright: ignore[reportUnknownLambdaType]
    left = daemon_of_a_closed_server(tmp_path, "left")
    assert system.process_start(left) is not None
    os.kill(left, signal.SIGKILL)


def test_a_start_that_is_cancelled_leaves_no_process_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[asyncio.subprocess.Process] = []

    async def create(*command: str, **options: Any) -> asyncio.subprocess.Process:
        made.append(await asyncio.create_subprocess_exec(*command, **options))
        return made[-1]

    async def start() -> None:
        command = stdio.Command(command="sleep", args=["600"], env={}, cwd=None)
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with stdio.stdio(command, ServerLog("hung"), 1_000):
                await anyio.sleep_forever()

    monkeypatch.setattr(stdio, "create_subprocess_exec", create)
    asyncio.run(start())
    assert [process.returncode for process in made] == [-signal.SIGTERM]


def streams_of_a_call(monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns how often a client opens the stream of a call again whose server ends it and names a wait of 1 ms."""
    opened: list[httpx2.Request] = []

    async def events() -> AsyncIterator[bytes]:
        yield b"id: 1\rretry: 1\r\r"

    def stream() -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=events())

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            opened.append(request)
            return stream()
        message = json.loads(request.content)
        number, results = (
            message.get("id"),
            {
                "initialize": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "polls", "version": "1"},
                },
                "tools/list": {"tools": [TOOL]},
            },
        )
        if message["method"] == "tools/call":
            return stream()
        if message["method"] in results:
            return httpx2.Response(200, json={"jsonrpc": "2.0", "id": number, "result": results[message["method"]]})
        error = {"code": -32601, "message": "Method not found"}
        return httpx2.Response(202 if number is None else 200, json={"jsonrpc": "2.0", "id": number, "error": error})

    monkeypatch.setattr(httpx2, "AsyncHTTPTransport", lambda: httpx2.MockTransport(answer))
    client = MCPClient.http("polls", "http://127.0.0.1:9/mcp", call_s=1.2)
    registry = ToolRegistry()
    registry.register_mcp_client(client, permission="auto")
    result = registry.invoke("polls/say", {})
    client.close()
    assert (result.failure and result.failure.kind) == "unknown_outcome"
    return len(opened)


def test_a_server_does_not_choose_that_its_streams_are_opened_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= streams_of_a_call(monkeypatch) <= 4
    # The control: without the least wait the server is obeyed.
    monkeypatch.setattr(http, "BACKOFF_S", 0.0)
    assert streams_of_a_call(monkeypatch) > 8
