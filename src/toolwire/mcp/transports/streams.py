"""The streams between the SDK and a transport: they notice the end of the connection and the start of each sending.

Also the streams to a server in this process.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import anyio
from mcp.server import MCPServer, Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolwire.mcp.answer_mending import AnswerMender
from toolwire.mcp.sending import SENDING
from toolwire.mcp.server_log import ServerLog
from toolwire.vocabulary.errors import ConfigurationError

Item = SessionMessage | Exception


class _Stream:
    """A stream around another one."""

    def __init__(self, inner: Any, mended: AnswerMender) -> None:
        self._inner, self._mended = inner, mended

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class ReadStream(_Stream):
    """A read stream that calls `ended` at its end, with the reason and the last line of stderr, if they are known."""

    def __init__(self, inner: Any, ended: Callable[..., None], mended: AnswerMender) -> None:
        super().__init__(inner, mended)
        self._ended = ended

    async def receive(self) -> Item:
        """Returns the next message.

        Raises:
            anyio.EndOfStream: The connection has ended.
        """
        while True:
            try:
                item: Item = await self._inner.receive()
            except anyio.EndOfStream as end:
                self._ended(*end.args)
                raise
            if isinstance(item, ValidationError):
                meant = self._mended.meant(item)
                if meant is None:
                    continue
                item = SessionMessage(meant)
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
                self._mended.mend_answer(item.message)
            return item

    @property
    def last_context(self) -> Any:
        """The context of the sender of the last message, if the transport has one."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WriteStream(_Stream):
    """A write stream that notes when a call's request is sent."""

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message.

        Raises:
            anyio.BrokenResourceError: The connection has ended, and the message was not sent.
        """
        sending = SENDING.get() if isinstance(item.message, JSONRPCRequest) else None
        if sending is not None:
            sending.is_sent = True
        if isinstance(item.message, JSONRPCRequest):
            self._mended.note_request(item.message)
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            if sending is not None:
                sending.is_sent = False
            raise


@asynccontextmanager
async def watch_transport(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[..., None], log: ServerLog
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Opens a transport and calls `ended` when the server closes the connection."""
    async with transport as (reading, writing):
        mended = AnswerMender(log)
        yield ReadStream(reading, ended, mended), WriteStream(writing, mended)


class _OfferStream:
    """A write stream that offers one version of the protocol in the handshake."""

    def __init__(self, inner: Any, version: str) -> None:
        self._inner, self._version = inner, version

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            (message.params or {})["protocolVersion"] = self._version
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def offering(version: str | None, server: Any) -> Any:
    """Returns the server, to which the handshake offers that version. The SDK offers the newest one.

    None, and a version without a handshake, leave it as it is.
    """
    return server if version not in HANDSHAKE_PROTOCOL_VERSIONS else _offering(version, server)


@asynccontextmanager
async def _offering(
    version: str, transport: AbstractAsyncContextManager[tuple[Any, Any]]
) -> AsyncGenerator[tuple[Any, Any]]:
    async with transport as (reading, writing):
        yield reading, _OfferStream(writing, version)


def opener_of(server: object) -> Callable[[], Any]:
    """Returns a function that gives the server for one connection.

    Raises:
        ConfigurationError: It is not a server of the SDK or of FastMCP, nor a transport.
    """
    if _is_fastmcp(server):
        return lambda: _fastmcp_streams(server)
    # A registry is an asynchronous context too, but no transport.
    is_registry = hasattr(server, "_call_scope")
    if not is_registry and isinstance(server, Server | MCPServer | AbstractAsyncContextManager):
        return lambda: cast("Any", server)
    raise ConfigurationError(
        f"in_memory(server={server!r:.80}): give a Server or MCPServer of the MCP SDK, a FastMCP server, a transport, "
        "or ToolServer(...).in_memory()"
    )


def _is_fastmcp(server: object) -> bool:
    # A server of FastMCP exists only after its package was imported.
    package = sys.modules.get("fastmcp")
    return package is not None and isinstance(server, package.FastMCP)


@asynccontextmanager
async def _fastmcp_streams(server: Any) -> AsyncGenerator[Any]:
    """Runs the server as FastMCP's own client does: its lifespan is around the server of the SDK in it."""
    # FastMCP has no public name for either: its own client in memory reads them too.
    inner: Server[Any] = server._mcp_server  # noqa: SLF001
    async with (
        server._lifespan_manager(),  # noqa: SLF001
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as running,
    ):
        running.start_soon(partial(inner.run, *theirs, inner.create_initialization_options()))
        yield ours
        running.cancel_scope.cancel()
