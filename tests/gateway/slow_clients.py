"""A server in a process of its own, and clients that never send or read the rest.

Run: python -m tests.gateway.slow_clients port|plain FILES. `plain` is the same server at a port of uvicorn alone.
"""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import uvicorn

from tests.architecture.source import ROOT
from tests.gateway.byte_clients import HEAD, LARGE, Work, answer, connect, reader, request
from tests.gateway.serving import call_body
from tests.patience import PATIENCE_S
from toolwire import ToolServer

Kind = Literal["port", "plain"]
BODY_BYTES = 1_000_000


class ServerProcess:
    """The server, seen from outside."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process, self.port = process, port

    @property
    def files(self) -> int:
        """The files and sockets that are open in it."""
        return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())

    @property
    def peak_mb(self) -> float:
        """The most memory that it had."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("this kernel does not tell the peak")

    def call_s(self, timeout_s: float = PATIENCE_S) -> float:
        """Makes a call on a connection of its own, and returns how long it took.

        Raises:
            TimeoutError: There is no answer in that time.
        """
        begun = time.perf_counter()
        connection = connect(self.port)
        connection.settimeout(timeout_s)
        connection.sendall(request(call_body(), ("Connection", "close")))
        status, text = answer(connection)
        assert status == 200, (status, text)
        return time.perf_counter() - begun

    def half_head(self) -> socket.socket:
        """Returns a connection with half of a head."""
        return connect(self.port, HEAD)

    def half_body(self) -> socket.socket:
        """Returns a connection with a body without its last byte."""
        return connect(self.port, request(call_body("add", {"a": 1, "b": 2, "c": "x" * BODY_BYTES}))[:-1])

    def slow_reader(self) -> socket.socket:
        """Returns a connection whose large answer is not read."""
        return reader(self.port, size=LARGE)


@contextmanager
def server_process(kind: Kind, files: int = 0) -> Generator[ServerProcess]:
    """Starts a server that may open so many files; 0 leaves the limit as it is."""
    command = [sys.executable, "-m", __name__, kind, str(files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield ServerProcess(process, int(process.stdout.readline()))
        process.kill()


def serve(kind: Kind, files: int) -> None:
    """Serves until a signal, and prints the port."""
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    work = Work()
    server = ToolServer([work.add, work.rows], "slow clients")
    if kind == "port":
        server.run_http("127.0.0.1", 0, on_start=lambda url: print(url.split(":")[2].partition("/")[0], flush=True))
        return
    with socket.create_server(("127.0.0.1", 0), backlog=2_048) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(server.asgi(), log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    serve("port" if sys.argv[1] == "port" else "plain", int(sys.argv[2]))
