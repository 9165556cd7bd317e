"""The socket at which a server listens."""

from __future__ import annotations

import asyncio
import socket

from tests.patience import PATIENCE_S
from toolwire.gateway.http.process import _listening


async def test_no_part_of_an_answer_waits_for_the_acknowledgement_of_the_part_before() -> None:
    delays: asyncio.Queue[int] = asyncio.Queue()

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own: socket.socket = writer.get_extra_info("socket")
        delays.put_nowait(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    def open_port() -> socket.socket:
        return socket.create_server(("127.0.0.1", 0))

    with _listening("127.0.0.1", 0) as own, _listening("127.0.0.1", open_port()) as given, open_port() as plain:
        for server, expected in ((own, 1), (given, 1), (plain, 0)):  # The control: asyncio does not do it by itself.
            async with await asyncio.start_server(connected, sock=server.dup()), asyncio.timeout(PATIENCE_S):
                _, writer = await asyncio.open_connection(*server.getsockname())
                assert await delays.get() == expected
                writer.close()
