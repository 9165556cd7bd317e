"""MCP calls over HTTP, byte by byte: the client's own work must not hold the server up."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

Era = Literal["2026-07-28", "2025-11-25"]
MODERN: Era = "2026-07-28"
HANDSHAKE: Era = "2025-11-25"
IDLE_S = 3.0
"""Seconds after which a client makes another connection. The server closes one that was idle for 5 seconds."""
START_S = 60.0
"""Seconds in which a server behind a gateway has to come."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a number of calls took."""

    calls: int
    seconds: float
    """From the first request to the last answer."""
    server_s: float
    """The processor time of the server meanwhile."""
    latencies_s: tuple[float, ...]
    """Of each call."""
    errors: int
    """Calls whose answer was not the sum."""


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, peer: str, tools: int, folder: str) -> None:
        command = [sys.executable, "-m", "benchmarks.servers", peer, str(tools), folder]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        told = self._process.stdout.readline().strip()
        assert told, f"the server {peer!r} did not start"
        self.url = told
        address = urlsplit(told)
        self.host, self.port = str(address.hostname), int(address.port or 0)

    @property
    def cpu_s(self) -> float:
        """The processor time of all of its threads so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S

    @property
    def resident_mb(self) -> float:
        """Its resident memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> None:
        """Ends it, and waits for its end."""
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def serving(peer: str, tools: int) -> Generator[ServerProcess]:
    """Yields a server that accepts connections."""
    # On the disk of the working folder. The server ends by a signal, and cleans nothing up.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        server = ServerProcess(peer, tools, folder)
        try:
            yield server
        finally:
            server.stop()


class Client:
    """One connection that is kept open, with one call under way at a time."""

    def __init__(self, era: Era, tool: str = "add") -> None:
        """`tool` is the name under which `add` is served."""
        self._era: Era = era
        self._tool = tool
        self._session: tuple[str, ...] = ()
        self._id = 0
        self._used = time.monotonic()

    async def connect(self, server: ServerProcess) -> None:
        """Connects, and shakes hands in the older era."""
        self._address = (server.host, server.port)
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        if self._era != MODERN:
            told = {"protocolVersion": self._era, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
            head, _ = await self._post(self._body("initialize", told), ())
            for line in head.split("\r\n"):
                name, _, value = line.partition(": ")
                if name.lower() == "mcp-session-id":
                    self._session = (f"Mcp-Session-Id: {value}", f"MCP-Protocol-Version: {self._era}")
            await self._post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), self._session)

    async def add(self, a: int, b: int) -> int | None:
        """Calls `add` and returns the sum; None if the answer is another."""
        params: dict[str, object] = {"name": self._tool, "arguments": {"a": a, "b": b}}
        headers = self._session
        if self._era == MODERN:
            prefix = "io.modelcontextprotocol"
            params["_meta"] = {f"{prefix}/protocolVersion": self._era, f"{prefix}/clientCapabilities": {}}
            headers = (f"MCP-Protocol-Version: {self._era}", "Mcp-Method: tools/call", f"Mcp-Name: {self._tool}")
        _, answer = await self._post(self._body("tools/call", params), headers)
        # An answer by server-sent events has its message in the last line of data.
        written = answer.rpartition("data: ")[2] if answer.startswith(("event:", "id:", "data:", ":")) else answer
        try:
            return json.loads(written)["result"]["structuredContent"]["result"]
        except (ValueError, KeyError, TypeError):
            return None

    def close(self) -> None:
        """Closes the connection."""
        self._writer.close()

    def _body(self, method: str, params: object) -> str:
        self._id += 1
        return json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})

    async def _post(self, body: str, headers: tuple[str, ...]) -> tuple[str, str]:
        if time.monotonic() - self._used > IDLE_S:
            self.close()
            self._reader, self._writer = await asyncio.open_connection(*self._address)
        lines = (
            "POST /mcp HTTP/1.1",
            f"Host: {self._address[0]}:{self._address[1]}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
            *headers,
        )
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self._used = time.monotonic()
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
        if "chunked" not in found.get("transfer-encoding", ""):
            return head, (await self._reader.readexactly(int(found.get("content-length", "0")))).decode()
        parts: list[bytes] = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readexactly(2)
        return head, b"".join(parts).decode()


async def answering(server: ServerProcess, tool: str) -> None:
    """Waits until a gateway's server behind is there."""
    until = time.monotonic() + START_S
    client = Client(MODERN, tool)
    await client.connect(server)
    while await client.add(1, 1) != 2:
        assert time.monotonic() < until, "the server behind did not come"
        await asyncio.sleep(0.1)
    client.close()


async def loaded(server: ServerProcess, era: Era, clients: int, calls: int, tool: str = "add") -> Load:
    """Makes `calls` calls by so many clients at once."""
    connected = [Client(era, tool) for _ in range(clients)]

    async def begin(client: Client) -> None:
        await client.connect(server)
        await client.add(0, 0)

    await asyncio.gather(*map(begin, connected))
    left = iter(range(calls))
    latencies: list[float] = []
    errors = 0

    async def work(client: Client) -> None:
        nonlocal errors
        for number in left:
            started = time.perf_counter()
            errors += await client.add(number, 1) != number + 1
            latencies.append(time.perf_counter() - started)

    cpu_s, started = server.cpu_s, time.perf_counter()
    await asyncio.gather(*map(work, connected))
    seconds, server_s = time.perf_counter() - started, server.cpu_s - cpu_s
    for client in connected:
        client.close()
    return Load(calls=calls, seconds=seconds, server_s=server_s, latencies_s=tuple(latencies), errors=errors)
