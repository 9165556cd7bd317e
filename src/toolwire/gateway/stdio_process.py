"""Serves the client at stdin and stdout of this process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.stdio import stdio_server

from toolwire.gateway.http.process import LAST_S, drain
from toolwire.gateway.sdk_server import SdkServer
from toolwire.gateway.served_metrics import flush_telemetry
from toolwire.gateway.server_limits import ServerLimits
from toolwire.gateway.slots import Slots
from toolwire.gateway.stdio_lines import answer_for, lines_of, too_long


def run_stdio(server: SdkServer, slots: Slots, limits: ServerLimits) -> None:
    """Serves until stdin ends, or until SIGTERM or SIGINT and the end of the calls under way."""
    with _own_stdin() as stdin:
        asyncio.run(_serve(server, slots, limits, stdin))


async def _serve(server: SdkServer, slots: Slots, limits: ServerLimits, stdin: BinaryIO) -> None:
    asked = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await asked.wait()
            await drain(slots, limits.drain_s)
            await anyio.sleep(LAST_S)
            flush_telemetry()
            sys.stderr.flush()
            # A thread waits for the next line of stdin, and nothing can wake it.
            os._exit(0)

        # Only the main thread may set a handler.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, asked.set)
        tasks.start_soon(end)
        await serve_lines(server, stdin, limits.body_bytes)
        tasks.cancel_scope.cancel()


async def serve_lines(server: SdkServer, stdin: BinaryIO, limit_bytes: int, stdout: Any = None) -> None:
    """Serves the client whose messages are the lines of `stdin`. A line that is too long, or not read, gets an error.

    `stdout` is an asynchronous text file; None is that of this process.
    """
    ready, told = anyio.Event(), list[Any]()

    async def messages() -> AsyncGenerator[str]:
        async for line in lines_of(stdin, limit_bytes):
            due = answer_for(line) if isinstance(line, str) else too_long(line, limit_bytes)
            if isinstance(due, str):
                yield due
            elif due is not None:
                await ready.wait()
                await told[0].send(due)

    # Python's buffer of stdout would be written to the client at the end.
    async with stdio_server(stdin=cast("Any", messages()), stdout=stdout) as (received, sent):
        told.append(sent)
        ready.set()
        with redirect_stdout(sys.stderr):
            await server.run(received, sent, server.create_initialization_options())


@contextmanager
def _own_stdin() -> Generator[BinaryIO]:
    """Gives the client's stdin. Tools and their processes find an empty one, so that they read no message."""
    try:
        number = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        # The host has put another stream in its place.
        yield sys.stdin.buffer
        return
    own = os.dup(number)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, number)
    os.close(empty)
    # A thread may wait in it to the end, so it is never closed.
    stdin = os.fdopen(own, "rb", closefd=False)
    try:
        yield stdin
    finally:
        os.dup2(own, number)
