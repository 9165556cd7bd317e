"""A gateway: what a hop costs, when the first list is there, and what idle sessions hold.

Run: python -m benchmarks.gateway [CALLS]. The processor time is that of the gateway's process alone. The server behind
it is FastMCP's, over stdio, and over HTTP beside FastMCP's proxy, which runs in turns with ours.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.http_load import HANDSHAKE, MODERN, Client, ServerProcess, answering, loaded, serving
from benchmarks.servers import BEHIND

CALLS = 300
ROUNDS = 5
HOP_MS = {"gateway": 1.3, "gateway-store": 3.0}
"""The most milliseconds of the processor a call."""
IDLE_SESSIONS = 2_000
IDLE_MB = 40.0
FIRST_LIST_S, HEALTHY_S = 2.0, 10.0
HEALTHY = 4
"""Servers that start, beside one that hangs and one that is down."""


def hop(calls: int) -> None:
    """Prints what a call costs the process in the middle."""
    costs = dict[str, list[float]]()
    for _ in range(ROUNDS):
        for peer in (*HOP_MS, "gateway-http", "fastmcp-proxy"):
            with serving(peer, 1) as server:
                tool = "add" if peer == "fastmcp-proxy" else BEHIND
                asyncio.run(answering(server, tool))
                load = asyncio.run(loaded(server, MODERN, 1, calls, tool))
                assert load.errors == 0, (peer, load.errors)
                costs.setdefault(peer, []).append(load.server_s / load.calls * 1e3)
    for peer, found in costs.items():
        limit = f", at most {HOP_MS[peer]}" if peer in HOP_MS else ""
        print(f"  a hop by {peer:<14} {statistics.median(found):6.2f} ms of processor a call{limit}", flush=True)


async def _open_sessions(server: ServerProcess, number: int) -> None:
    for _ in range(number):
        client = Client(HANDSHAKE)
        await client.connect(server)
        client.close()


def idle() -> None:
    """Prints what sessions without a request hold, here and in the bare SDK."""
    for peer, limit in (("toolwire-sessions", f", at most {IDLE_MB:g}"), ("sdk", "")):
        with serving(peer, 1) as server:
            asyncio.run(_open_sessions(server, 50))
            before = server.resident_mb
            asyncio.run(_open_sessions(server, IDLE_SESSIONS))
            held = server.resident_mb - before
        print(f"  {IDLE_SESSIONS:,} idle sessions of {peer} hold {held:.0f} MB{limit}", flush=True)


def first_list() -> None:
    """Prints when the first list is there, and when it has the tools of all servers that start.

    The floor is the same command with tools of its own: most of it is the import of the SDK.
    """
    behind = {"command": sys.executable, "args": ["-m", "benchmarks.servers", "stdio", "1"]}
    away: dict[str, object] = {"hung": {"command": "sleep", "args": ["600"]}, "down": {"url": "http://127.0.0.1:9/mcp"}}
    good: dict[str, object] = {f"good{number}": behind for number in range(HEALTHY)}
    own_s = asyncio.run(_time_lists([sys.executable, "-m", "benchmarks.servers", "stdio", "1"], 1))[1]
    print(f"  a good server alone starts in {own_s:.1f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools.py"
        tools.write_text('def add(a: int, b: int) -> int:\n    """Adds."""\n    return a + b\n')
        floor_s, _ = asyncio.run(_time_lists(_serve(folder, "--tools", str(tools)), 1))
        print(f"  the first list without servers behind after {floor_s:.1f} s", flush=True)
        for name, servers, wanted in (
            ("one hung and one down", away, 0),
            (f"these and {HEALTHY} good", away | good, HEALTHY),
        ):
            file = Path(folder) / "mcp.json"
            file.write_text(json.dumps({"mcpServers": servers}))
            first_s, all_s = asyncio.run(_time_lists(_serve(folder, "--config", str(file)), wanted))
            print(f"  with {name}: after {first_s:.1f} s, at most {FIRST_LIST_S:g}", flush=True)
    print(f"  all good ones after {all_s:.1f} s, at most {own_s + HEALTHY_S:.1f}", flush=True)


def _serve(folder: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "toolwire", "serve", *options, "--store", f"sqlite:///{folder}/runs.db"]


async def _time_lists(command: list[str], wanted: int) -> tuple[float, float]:
    """Returns the seconds from the start of a server to its first list, and to the list with so many tools."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from mcp import Client as McpClient

    started = time.monotonic()
    first_s = 0.0
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=str(Path.cwd()))
    async with McpClient(stdio_client(parameters, errlog=subprocess.DEVNULL)) as client:  # pyright: ignore[reportArgumentType]
        while True:
            tools = (await client.list_tools()).tools
            first_s = first_s or time.monotonic() - started
            if len([tool for tool in tools if tool.name.endswith("add")]) >= wanted:
                return first_s, time.monotonic() - started
            await asyncio.sleep(0.1)


def main(calls: int) -> None:
    """Prints all of it."""
    hop(calls)
    first_list()
    idle()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS)
