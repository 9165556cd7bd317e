"""The streams between the SDK and a transport: they notice the end of the connection and the start of each sending."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

from toolwire.mcp.mended_answers import MendedAnswers
from toolwire.mcp.sending import SENDING
from toolwire.mcp.server_log import ServerLog

Item = SessionMessage | Exception


class ReadStream:
    """A read stream that calls `ended` at its end."""

    def __init__(self, inner: Any, ended: Callable[[], None], mended: MendedAnswers) -> None:
        self._inner, self._ended, self._mended = inner, ended, mended

    async def receive(self) -> Item:
        """Returns the next message.

        Raises:
            anyio.EndOfStream: The connection has ended.
        """
        while True:
            try:
                item: Item = await self._inner.receive()
            except anyio.EndOfStream:
                self._ended()
                raise
            if isinstance(item, ValidationError):
                meant = self._mended.meant(item)
                if meant is None:
                    continue
                item = SessionMessage(meant)
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
                self._mended.received(item.message)
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

    def __init__(self, inner: Any, mended: MendedAnswers) -> None:
        self._inner, self._mended = inner, mended

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message.

        Raises:
            anyio.BrokenResourceError: The connection has ended, and the message was not sent.
        """
        sending = SENDING.get() if isinstance(item.message, JSONRPCRequest) else None
        if sending is not None:
            sending.is_sent = True
        if isinstance(item.message, JSONRPCRequest):
            self._mended.sent(item.message)
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
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[[], None], log: ServerLog
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Opens a transport and calls `ended` when the server closes the connection."""
    async with transport as (reading, writing):
        mended = MendedAnswers(log)
        yield ReadStream(reading, ended, mended), WriteStream(writing, mended)
