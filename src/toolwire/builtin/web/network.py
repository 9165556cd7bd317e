"""The connections of the guard: to checked addresses alone, and with counted bytes."""

# The signatures are those of httpcore2's own classes.
# ruff: noqa: ARG002, ASYNC109

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import httpcore2

from toolwire.builtin.web.refusals import Blocked

CONNECT_TIMEOUT_S = 5.0
"""Maximum seconds of one attempt to connect. The public web answers within one; a dead host answers never."""
HEADER_LIMIT_BYTES = 64 * 1024
"""Maximum bytes of the head of an answer. A longer head is an attack or a mistake."""
READ_BYTES = 64 * 1024
"""Maximum bytes that httpcore2 reads at once."""
BODY_LIMIT_BYTES = 10 * 1024 * 1024
"""Maximum bytes of a body, as sent and as unpacked: 10 MiB, enough for most documents."""


class BytesLeft:
    """The bytes that one answer may still have on the wire."""

    def __init__(self) -> None:
        # The read that ends the head may hold the start of the body, and one byte tells that there are too many.
        self._left = HEADER_LIMIT_BYTES + READ_BYTES - 1
        self._part = "head"

    def begin_body(self) -> None:
        """Allows the body; the rest of the head's bytes stays for the framing."""
        self._left += BODY_LIMIT_BYTES
        self._part = "body"

    def next_read(self, size: int) -> int:
        """Returns how many bytes may be read at once: those that are left, and one that tells of more."""
        return min(size, self._left + 1)

    def spend(self, size: int) -> None:
        """Counts received bytes.

        Raises:
            Blocked: They are too many.
        """
        self._left -= size
        if self._left < 0:
            limit = HEADER_LIMIT_BYTES if self._part == "head" else BODY_LIMIT_BYTES
            raise Blocked(f"the {self._part} of the answer has more than {limit:,} bytes")


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses, and counts the bytes that come from there."""

    def __init__(self, addresses: Callable[[str, int], Awaitable[list[str]]], budget: BytesLeft) -> None:
        self._addresses = addresses
        self._budget = budget
        # It is defined in a branch, which type checkers do not follow.
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failed: Exception | None = None
        for address in await self._addresses(host, port):
            try:
                stream = await self._inner.connect_tcp(address, port, CONNECT_TIMEOUT_S, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _CountedStream(stream, self._budget)
        raise failed or httpcore2.ConnectError(host)


class _CountedStream(httpcore2.AsyncNetworkStream):
    """A connection whose received bytes are counted."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, budget: BytesLeft) -> None:
        self._inner = inner
        self._budget = budget

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(self._budget.next_read(max_bytes), timeout)
        self._budget.spend(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _CountedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._budget)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
