"""Serves the client at stdin and stdout of this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import redirect_stdout, suppress

import anyio
from mcp.server.stdio import stdio_server

from toolwire.gateway.http_process import drain
from toolwire.gateway.sdk_server import SdkServer
from toolwire.gateway.slots import Slots


def run_stdio(server: SdkServer, slots: Slots, drain_s: float) -> None:
    """Serves until stdin ends, or until SIGTERM and the end of the calls under way."""
    asyncio.run(_serve(server, slots, drain_s))


async def _serve(server: SdkServer, slots: Slots, drain_s: float) -> None:
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await drain(slots, drain_s)
            tasks.cancel_scope.cancel()

        # Only the main thread may set a handler.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: tasks.start_soon(end))
        # Python's buffer of stdout would be written to the client at the end.
        async with stdio_server() as (received, sent):
            with redirect_stdout(sys.stderr):
                await server.run(received, sent, server.create_initialization_options())
        tasks.cancel_scope.cancel()
