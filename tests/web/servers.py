"""A server on loopback that answers each connection with the bytes that a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class LoopbackServer:
    """The port of a server, and the requests that it received."""

    port: int = 0
    requests: list[str] = field(default_factory=list[str])
    """The head of each request."""
    bodies: list[bytes] = field(default_factory=list[bytes])
    """The body of each request."""

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.requests]


def answer(body: bytes = b"", *, status: str = "200 OK", **headers: str) -> bytes:
    """Returns a whole answer; `content_type` becomes the header `content-type`."""
    given = {"content_type": "text/html", "content_length": str(len(body)), **headers, "connection": "close"}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def serving(
    reply: Callable[[str], bytes] | Callable[[str, asyncio.StreamWriter], object],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    writes: bool = False,
) -> AsyncIterator[LoopbackServer]:
    """Serves `reply(path)`. With `writes`, `reply(path, writer)` is a coroutine that writes for itself."""
    server = LoopbackServer()
    open_connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections[task] = writer
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            server.requests.append(head)
            sizes = [
                line.partition(":")[2] for line in head.split("\r\n") if line.lower().startswith("content-length:")
            ]
            server.bodies.append(await reader.readexactly(int(sizes[0]) if sizes else 0))
            path = head.split(" ")[1]
            if writes:
                await reply(path, writer)  # type: ignore[call-arg, misc]
            else:
                writer.write(reply(path))  # type: ignore[call-arg, arg-type]
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            del open_connections[task]

    listening = await asyncio.start_server(connected, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in open_connections.values():
            writer.close()
        await asyncio.gather(*open_connections, return_exceptions=True)
