"""A SOCKS proxy on loopback. A browser reaches through it only the addresses that the guard allows.

SOCKS 5 of RFC 1928: the browser sends names, so that the guard resolves them and not the browser. One connection of the
proxy is one connection to one host. The proxy therefore reads no HTTP.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress

from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.host_names import LOOKUPS_OF_A_PAGE
from toolwire.builtin.web.network import CONNECT_TIMEOUT_S, READ_BYTES
from toolwire.builtin.web.refusals import Blocked, FetchFailed

REQUEST_LIMIT = 1_000
"""Maximum requests of one rendered page, and also its maximum connections. The median page of the web makes 70."""
RENDER_LIMIT_BYTES = 50 * 1024 * 1024
"""Maximum bytes that one rendered page may send and receive. The median page of the web takes 3 MB with its images."""
_CONNECT = b"\x05\x01\x00"
_NAME, _V4, _V6 = 3, 1, 4
_DONE, _NOT_ALLOWED, _UNREACHABLE = 0, 2, 4


class GuardingProxy:
    """The proxy of one browser.

    Attributes:
        port: Its port on 127.0.0.1.
        refusals: The reason why a host was not reached, by host.
        stopped: Is done once the page has spent its bytes or requests.
    """

    def __init__(self, transport: GuardedTransport, ports: Collection[int]) -> None:
        self.port = 0
        self.refusals: dict[str, FetchFailed] = {}
        self.stopped: asyncio.Future[Blocked] = asyncio.get_running_loop().create_future()
        self._transport = transport
        self._ports = ports
        self._bytes = self._connections = self._requests = 0
        self._lookups = asyncio.Semaphore(LOOKUPS_OF_A_PAGE)
        self._writers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def count_request(self, _: object) -> None:
        """Counts a request of the browser: it may send many over one connection."""
        self._requests += 1
        self._stop_above(self._requests, REQUEST_LIMIT, "requests")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection of the browser."""
        task = asyncio.current_task()
        assert task is not None
        self._writers[task] = writer
        self._connections += 1
        self._stop_above(self._connections, REQUEST_LIMIT, "requests")
        try:
            if not self.stopped.done():
                await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # `close` cancels this task, and asyncio 3.11 logs a cancelled connection as an error.
            return
        finally:
            writer.close()
            del self._writers[task]

    async def close(self) -> None:
        """Ends all connections."""
        for writer in self._writers.values():
            writer.close()
        for task in self._writers:
            task.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = await _read_target(reader, writer)
        try:
            there, to_there = await self._connect(host, port)
        except FetchFailed as error:
            self.refusals[host] = error
            writer.write(_socks_reply(_NOT_ALLOWED if isinstance(error, Blocked) else _UNREACHABLE))
            await writer.drain()
            return
        try:
            writer.write(_socks_reply(_DONE))
            ways = [asyncio.ensure_future(self._copy(*way)) for way in ((reader, to_there), (there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            to_there.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if port not in self._ports:
            raise Blocked(f"port {port} is not fetched: use {' or '.join(map(str, self._ports))}")
        async with self._lookups:
            addresses = await self._transport.addresses(host, port)
        for address in addresses:
            with suppress(OSError, TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_TIMEOUT_S)
        raise FetchFailed(f"the server of {host!r} cannot be reached", may_repeat=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            self._bytes += len(data)
            self._stop_above(self._bytes, RENDER_LIMIT_BYTES, "bytes")
            if self.stopped.done():
                return
            writer.write(data)
            await writer.drain()

    def _stop_above(self, count: int, limit: int, unit: str) -> None:
        if count > limit and not self.stopped.done():
            self.stopped.set_result(Blocked(f"the page needs more than {limit:,} {unit}, with its scripts and images"))


@asynccontextmanager
async def guarding_proxy(transport: GuardedTransport, ports: Collection[int]) -> AsyncGenerator[GuardingProxy, None]:
    """Serves a proxy on a port of 127.0.0.1 that the kernel chooses, until the block ends."""
    proxy = GuardingProxy(transport, ports)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()
        await proxy.close()


async def _read_target(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Returns the host and the port that the browser asks for.

    Raises:
        ConnectionError: The other side does not speak SOCKS 5, or asks for more than a connection.
    """
    version, count = await reader.readexactly(2)
    methods = await reader.readexactly(count)
    if version != 5 or 0 not in methods:
        raise ConnectionError("not a greeting of SOCKS 5")
    writer.write(b"\x05\x00")
    await writer.drain()
    if await reader.readexactly(3) != _CONNECT:
        raise ConnectionError("not a request for a connection")
    (kind,) = await reader.readexactly(1)
    if kind == _NAME:
        (size,) = await reader.readexactly(1)
        host = (await reader.readexactly(size)).decode("ascii", "replace")
    elif kind in (_V4, _V6):
        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == _V4 else 16)))
    else:
        raise ConnectionError("not an address of SOCKS 5")
    return host.strip("[]"), int.from_bytes(await reader.readexactly(2), "big")


def _socks_reply(status: int) -> bytes:
    return bytes([5, status, 0, _V4]) + socket.inet_aton("0.0.0.0") + b"\0\0"  # noqa: S104 - it names no address
