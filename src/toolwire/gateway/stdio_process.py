"""Serves the client at stdin and stdout of this process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import redirect_stdout, suppress

import anyio
from mcp.server.stdio import stdio_server

from toolwire.gateway.http_process import LAST_S, drain
from toolwire.gateway.sdk_server import SdkServer
from toolwire.gateway.slots import Slots


def run_stdio(server: SdkServer, slots: Slots, drain_s: float) -> None:
    """Serves until stdin ends, or until SIGTERM or SIGINT and the end of the calls under way."""
    asyncio.run(_serve(server, slots, drain_s))


async def _serve(server: SdkServer, slots: Slots, drain_s: float) -> None:
    asked = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await asked.wait()
            await drain(slots, drain_s)
            await anyio.sleep(LAST_S)
            sys.stderr.flush()
            # A thread waits for the next line of stdin, and nothing can wake it.
            os._exit(0)

        # Only the main thread may set a handler.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, asked.set)
        tasks.start_soon(end)
        # Python's buffer of stdout would be written to the client at the end.
        async with stdio_server() as (received, sent):
            with redirect_stdout(sys.stderr):
                await server.run(received, sent, server.create_initialization_options())
        tasks.cancel_scope.cancel()
