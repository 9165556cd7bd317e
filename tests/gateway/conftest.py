"""Real clients of the SDK on real servers, over each transport and in both eras of the protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters
from tests.architecture.source import ROOT
from tests.gateway.served_tools import new_registry
from tests.patience import PATIENCE_S
from toolwire import ToolServer

TOOLS = str(ROOT / "tests/gateway/served_tools.py")
Transport = Literal["memory", "stdio", "http"]
Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
"""The SDK's client takes 2026-07-28 with `auto`, and 2025-11-25 with `legacy`."""

Connect = Callable[..., AbstractAsyncContextManager[Client]]


def serve_command(*options: str) -> list[str]:
    return [sys.executable, "-m", "toolwire", "serve", "--tools", TOOLS, *options]


class Served:
    """`toolwire serve --http` as a process."""

    def __init__(self, folder: Path, *options: str, port: int = 0, env: dict[str, str] | None = None) -> None:
        self.folder, self._options, self._env = folder, options, env
        self.start(port)

    def start(self, port: int) -> None:
        self.process = subprocess.Popen(
            serve_command("--http", str(port), *self._options),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env={**os.environ, **(self._env or {})},
        )
        assert self.process.stderr is not None
        said: list[str] = []
        while " at http" not in (line := self.process.stderr.readline()):
            said.append(line)
            assert line, "".join(said)
        self.url = line.split(" at ")[1].strip()
        self.port = int(self.url.split(":")[2].partition("/")[0])

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> str:
        """Waits for its end, and returns its stderr."""
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return said


@pytest.fixture
def served(tmp_path: Path) -> Generator[Callable[..., Served]]:
    """Starts servers that end with the test."""
    running: list[Served] = []

    def start(*options: str, **more: Any) -> Served:
        running.append(Served(tmp_path, *options, **more))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.kill()
        elif one.process.stderr is not None:
            one.process.stderr.close()


OVER_STDIO_TOO = pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
"""For a test that depends on the transport. A stdio server is a process of its own, which takes a second to start."""


@pytest.fixture(params=["memory", "http"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """One server over HTTP, for all tests that only connect. Tests that need options start their own."""
    server = Served(tmp_path_factory.mktemp("shared"))
    yield server
    server.kill()


@pytest.fixture
def store_file(tmp_path: Path, transport: Transport, request: pytest.FixtureRequest) -> Path:
    """The file of the store of the server that `connect` connects to."""
    if transport == "memory":
        return tmp_path / "runs.db"
    folder = tmp_path if transport == "stdio" else request.getfixturevalue("shared_server").folder
    return folder / ".toolwire/journal.db"


@pytest.fixture
def connect(
    tmp_path: Path, transport: Transport, era: Era, store_file: Path, request: pytest.FixtureRequest
) -> Connect:
    """Returns a function that connects a client. Over HTTP the tests share one server."""

    @asynccontextmanager
    async def connected(**options: Any) -> AsyncGenerator[Client]:
        if transport == "memory":
            server: Any = ToolServer(new_registry(), "tests", store=f"sqlite:///{store_file}").in_memory()
        elif transport == "http":
            server = request.getfixturevalue("shared_server").url
        else:
            command, *arguments = serve_command()
            server = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=str(tmp_path)))
        async with Client(server, mode=era, **options) as client:
            yield client

    return connected
