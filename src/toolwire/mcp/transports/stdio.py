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
from toolwire.mcp.server_log import LINE_CHARACTERS, ServerLog, printable
from toolwire.vocabulary.machine import system

MARKS = "TOOLWIRE_SERVER_MARKS"
"""The variable with the marks of a server and of those above it. Each process that the server starts inherits it."""
_POLL_S = 0.01
_END_S = 2.0
"""Seconds that the end of the messages waits for the exit code, and for the rest of stderr. Both come at once."""
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
    stderr = _Stderr(process, log)
    reading = asyncio.create_task(stderr.read())
    incoming = _Incoming(process, log, message_bytes, stderr)
    try:
        yield incoming, _Outgoing(process, incoming.is_over)
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            if not await anyio.to_thread.run_sync(system.kill_marked, MARKS, mark):
                log.warning("some processes that it started could not be ended")
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            _close_pipes(process)


class _Incoming:
    """The messages of the server. A line that is not a message is the error of the SDK, as in its own transports."""

    def __init__(self, process: Process, log: ServerLog, message_bytes: int, stderr: _Stderr) -> None:
        assert process.stdout is not None
        self._process, self._lines, self._stderr = process, process.stdout, stderr
        self._log, self._message_bytes = log, message_bytes
        self.is_over = anyio.Event()
        """Set at the end of the messages."""

    async def receive(self) -> SessionMessage | ValidationError:
        while True:
            try:
                line = await self._lines.readline()
            except ValueError:
                self._log.warning(f"it sent a message of more than {self._message_bytes:,} bytes and is disconnected")
                self.is_over.set()
                raise anyio.EndOfStream(f"it sent a message of more than {self._message_bytes:,} bytes") from None
            except ConnectionError:
                line = b""
            if not line:
                end = await self._describe_end()
                self.is_over.set()
                raise anyio.EndOfStream(*end)
            if not line.isspace():
                # Wrong bytes are replaced, because the caller would wait for an answer that was skipped.
                text = line.decode("utf-8", "replace")
                try:
                    return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
                except ValidationError as refused:
                    return refused

    async def _describe_end(self) -> tuple[str, str]:
        """Returns why there are no more messages, and the last line of stderr. Waits for both for a moment."""
        if await _has_ended(self._process, _END_S):
            with anyio.move_on_after(_END_S):
                await self._stderr.is_over.wait()
        code = self._process.returncode
        if code is None:
            return "it closed its stdout", self._stderr.last_line
        how = f"its process ended with exit code {code}" if code >= 0 else f"its process was ended by signal {-code}"
        return how, self._stderr.last_line

    async def aclose(self) -> None:
        """Does nothing: the process is ended as a whole."""


class _Outgoing:
    """The messages to the server."""

    def __init__(self, process: Process, is_over: anyio.Event) -> None:
        assert process.stdin is not None
        self._stdin, self._is_over = process.stdin, is_over

    async def send(self, item: SessionMessage, /) -> None:
        if self._stdin.is_closing():
            # The reader knows why.
            with anyio.move_on_after(3 * _END_S):
                await self._is_over.wait()
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._stdin.write(text.encode("utf-8", "replace") + b"\n")
        # The server may have read it by now. The reader notices the end of the connection.
        with suppress(ConnectionError):
            await self._stdin.drain()

    async def aclose(self) -> None:
        """Does nothing: the process is ended as a whole."""


class _Stderr:
    """The stderr of the server, which goes to its log."""

    def __init__(self, process: Process, log: ServerLog) -> None:
        assert process.stderr is not None
        self._stream, self._log = process.stderr, log
        self.last_line = ""
        """The last line with a text."""
        self.is_over = anyio.Event()
        """Set at its end."""

    async def read(self) -> None:
        """Logs each line, until the end."""
        rest = b""
        while chunk := await self._stream.read(_STDERR_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _STDERR_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._note(line)
        if rest:
            self._note(rest)
        self.is_over.set()

    def _note(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        self.last_line = printable(text[:LINE_CHARACTERS]) if text else self.last_line
        self._log.info(text)


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


async def _has_ended(process: Process, limit_s: float = CLOSE_GRACE_S) -> bool:
    # Not `process.wait()`: it also waits for the pipes, which a child of the server may hold.
    deadline = anyio.current_time() + limit_s
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
