"""The streams between the SDK and a transport: they notice the end of the connection and the start of each sending."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from toolwire.mcp.sending import SENDING

Item = SessionMessage | Exception


class ReadStream:
    """A read stream that calls `ended` at its end."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner, self._ended = inner, ended

    async def receive(self) -> Item:
        """Returns the next message.

        Raises:
            anyio.EndOfStream: The connection has ended.
        """
        try:
            return await self._inner.receive()
        except anyio.EndOfStream:
            self._ended()
            raise

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

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class WriteStream:
    """A write stream that notes when a call's request is sent."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message.

        Raises:
            anyio.BrokenResourceError: The connection has ended, and the message was not sent.
        """
        sending = SENDING.get() if isinstance(item.message, JSONRPCRequest) else None
        if sending is not None:
            sending.is_sent = True
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            if sending is not None:
                sending.is_sent = False
            raise

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[[], None]
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Opens a transport and calls `ended` when the server closes the connection."""
    async with transport as (reading, writing):
        yield ReadStream(reading, ended), WriteStream(writing)
