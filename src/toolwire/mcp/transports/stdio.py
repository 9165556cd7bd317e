"""A server as a process: messages as lines of its stdin and stdout, its stderr as a log.

The SDK's own transport has no limit on the length of a line.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from toolwire.mcp.client_limits import CLOSE_GRACE_S
from toolwire.mcp.server_log import ServerLog
from toolwire.vocabulary.machine import system

MARKS = "TOOLWIRE_SERVER_MARKS"
"""The variable with the marks of a server and of those above it. Each process that the server starts inherits it."""
_POLL_S = 0.01
_STDERR_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The process to start."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    """Added to the few variables that every server gets: HOME, LOGNAME, PATH, SHELL, TERM and USER."""
    cwd: str | Path | None


@asynccontextmanager
async def stdio(command: Command, log: ServerLog, message_bytes: int) -> AsyncGenerator[tuple[_Incoming, _Outgoing]]:
    """Starts the process and yields its streams. At the end the process, its group and its descendants are gone.

    Descendants in other groups are found by a mark in their environment, on Linux.

    Raises:
        OSError: The process cannot be started.
    """
    mark = secrets.token_hex(16)
    # A host that is a server itself passes on the marks of the hosts above it.
    marks = f"{os.environ.get(MARKS, '')} {mark}".strip()
    starting = asyncio.create_task(
        create_subprocess_exec(
            system.program_path(command.command),
            *command.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**get_default_environment(), **command.env, MARKS: marks},
            cwd=command.cwd,
            limit=message_bytes,
            # The whole group is signalled at the end, so that children of the server die with it.
            start_new_session=True,
        )
    )
    # A cancelled scope cancels again and again, and so interrupts the clean-up of a start that it ended.
    with anyio.CancelScope(shield=True):
        await starting
    process = starting.result()
    stderr = asyncio.create_task(_log_stderr(process, log))
    try:
        yield _Incoming(process, log, message_bytes), _Outgoing(process)
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            if not await anyio.to_thread.run_sync(system.kill_marked, MARKS, mark):
                log.warning("some processes that it started could not be ended")
            stderr.cancel()
            with suppress(asyncio.CancelledError):
                await stderr
            _close_pipes(process)


class _Incoming:
    """The messages of the server. A line that is not a message is the error of the SDK, as in its own transports."""

    def __init__(self, process: Process, log: ServerLog, message_bytes: int) -> None:
        assert process.stdout is not None
        self._lines, self._log, self._message_bytes = process.stdout, log, message_bytes

    async def receive(self) -> SessionMessage | ValidationError:
        while True:
            try:
                line = await self._lines.readline()
            except ValueError:
                self._log.warning(f"it sent a message of more than {self._message_bytes:,} bytes and is disconnected")
                raise anyio.EndOfStream from None
            except ConnectionError:
                raise anyio.EndOfStream from None
            if not line:
                raise anyio.EndOfStream
            if not line.isspace():
                # Wrong bytes are replaced, because the caller would wait for an answer that was skipped.
                text = line.decode("utf-8", "replace")
                try:
                    return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
                except ValidationError as refused:
                    return refused

    async def aclose(self) -> None:
        """Does nothing: the process is ended as a whole."""


class _Outgoing:
    """The messages to the server."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        self._stdin = process.stdin

    async def send(self, item: SessionMessage, /) -> None:
        if self._stdin.is_closing():
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._stdin.write(text.encode("utf-8", "replace") + b"\n")
        # The server may have read it by now. The reader notices the end of the connection.
        with suppress(ConnectionError):
            await self._stdin.drain()

    async def aclose(self) -> None:
        """Does nothing: the process is ended as a whole."""


async def _log_stderr(process: Process, log: ServerLog) -> None:
    assert process.stderr is not None
    rest = b""
    while chunk := await process.stderr.read(_STDERR_LINE_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _STDERR_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            log.info(line.decode("utf-8", "replace").rstrip())


async def _end(process: Process) -> None:
    """Ends the process: closed stdin, then SIGTERM and SIGKILL for its group."""
    assert process.stdin is not None
    process.stdin.close()
    if not await _has_ended(process):
        system.terminate_group(process.pid)
        if not await _has_ended(process):
            system.kill_group(process.pid)
            await _has_ended(process)
    # Children that the server left behind, if its group still exists.
    system.kill_group(process.pid)


async def _has_ended(process: Process) -> bool:
    # Not `process.wait()`: it also waits for the pipes, which a child of the server may hold.
    deadline = anyio.current_time() + CLOSE_GRACE_S
    while process.returncode is None:
        if anyio.current_time() >= deadline:
            return False
        await anyio.sleep(_POLL_S)
    return True


def _close_pipes(process: Process) -> None:
    # Nothing public closes them while a child of the server holds the other end.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
