"""Real servers that tests start themselves, and clients of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.mcp.client.authorization_server import Protected, protected_server
from tests.mcp.client.tool_server import tool_server
from toolwire import MCPClient
from toolwire.runtime.runtime import default_runtime

MODULE = "tests.mcp.client.tool_server"


@dataclass
class Started:
    """A server and the client of it. `record` has a line for each call that the server began."""

    client: MCPClient
    record: Path

    @property
    def calls(self) -> list[str]:
        return self.record.read_text("utf-8").splitlines() if self.record.exists() else []


class HttpServer:
    """A server at a URL, as a process that can be ended and started again on the same port."""

    def __init__(self, record: Path, kind: str = "") -> None:
        self.record, self._kind = record, kind
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", MODULE, str(self.record), str(self.port), *[self._kind][: bool(self._kind)]]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def calls(self) -> list[str]:
        return self.record.read_text("utf-8").splitlines() if self.record.exists() else []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._kind or 'mcp'}"


def stdio_client(record: Path, **limits: Any) -> MCPClient:
    return MCPClient.stdio("local", sys.executable, ["-m", MODULE, str(record)], cwd=ROOT, **limits)


@pytest.fixture(autouse=True)
def connections_end() -> Generator[None]:
    """Ends each connection with its test. Else it tries again and again, beside all later tests of the process."""
    yield
    default_runtime().close()


@pytest.fixture
def http_server(tmp_path: Path) -> Generator[HttpServer]:
    server = HttpServer(tmp_path / "record")
    yield server
    server.kill()


Connect = Callable[..., Started]


@pytest.fixture(scope="session")
def shared_servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, HttpServer]]:
    """One server for each transport at a URL. Tests that end a server start their own."""
    record = tmp_path_factory.mktemp("mcp") / "record"
    servers = {kind: HttpServer(record, kind) for kind in ("", "sse")}
    yield servers
    for server in servers.values():
        server.kill()


@pytest.fixture(params=["in_memory", "stdio", "http", "sse"])
def connect(
    request: pytest.FixtureRequest, tmp_path: Path, shared_servers: dict[str, HttpServer]
) -> Generator[Connect]:
    """Makes a client with these limits, of a server behind each transport."""
    record, made = tmp_path / "record", list[MCPClient]()

    def started(**limits: Any) -> Started:
        kind = request.param
        if kind == "stdio":
            client = stdio_client(record, **limits)
        elif kind == "in_memory":
            client = MCPClient.in_memory("local", tool_server(record), **limits)
        else:
            server = shared_servers["sse" if kind == "sse" else ""]
            server.record.write_text("")
            make = MCPClient.sse if kind == "sse" else MCPClient.http
            client = make("local", server.url, **limits)
            made.append(client)
            return Started(client, server.record)
        made.append(client)
        return Started(client, record)

    yield started
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def authorization_servers() -> Generator[Protected]:
    with protected_server() as protected:
        yield protected


@pytest.fixture
def protected(authorization_servers: Protected, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Protected:
    """A server that asks for a login, its authorization server, and an empty file of tokens."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    authorization_servers.reset()
    return authorization_servers
