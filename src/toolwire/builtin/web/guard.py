"""The guard between a model's URL and the network: each connection goes to an address that was checked before.

A name is resolved once. Each of its addresses must be public, and the connection goes to one of these addresses, so a
second answer of the name server changes nothing. `toolwire.builtin.web.addresses` has the tables.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import httpcore2
import httpx2

from toolwire.builtin.web.addresses import why_not
from toolwire.builtin.web.host_names import Names
from toolwire.builtin.web.network import BytesLeft, GuardedBackend
from toolwire.builtin.web.refusals import Blocked, FetchFailed

Resolve = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a host and a port."""
_NAMES = Names()
"""All transports of the process share the places for names."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport of httpx2 that connects to public addresses only, and stops answers that are too long.

    Each request has a connection of its own. The environment's proxies are not used.
    """

    def __init__(self, allow: Iterable[tuple[str, int]] = (), resolve: Resolve | None = None) -> None:
        """Takes addresses with ports that may be reached though they are not public, such as `("10.0.0.5", 8080)`.

        `resolve` replaces the machine's own resolver.
        """
        self._allow = frozenset(allow)
        self._resolve = resolve or _NAMES.addresses
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request and returns its answer; it follows no redirect.

        Raises:
            Blocked: The address is not public, or the answer is too long.
            httpcore2.NetworkError: The server cannot be reached, and the kindred errors of httpcore2.
        """
        if self._tls is None and request.url.scheme == "https":
            self._tls = httpcore2.default_ssl_context()
        budget = BytesLeft()
        backend = GuardedBackend(self.addresses, budget)
        pool = httpcore2.AsyncConnectionPool(ssl_context=self._tls, network_backend=backend)
        url = request.url
        try:
            answer = await pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except BaseException:
            await pool.aclose()
            raise
        budget.begin_body()
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer, pool),
        )

    async def addresses(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host, all of which may be reached.

        Raises:
            Blocked: One of them is not public.
            FetchFailed: The host has no address, or its name is not resolved in time.
        """
        try:
            found = list(dict.fromkeys(await self._resolve(host, port)))
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise FetchFailed(f"the host {host!r} is not known: check the URL", may_repeat=True)
        for address in found:
            why = why_not(address)
            if why is not None and (address, port) not in self._allow:
                raise Blocked(f"{host!r} is not on the public internet ({why}): only public pages can be fetched")
        return found


class _Body(httpx2.AsyncByteStream):
    """The body of an answer. Closing it closes the connection."""

    def __init__(self, answer: httpcore2.Response, pool: httpcore2.AsyncConnectionPool) -> None:
        self._answer = answer
        self._pool = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        try:
            await self._answer.aclose()
        finally:
            await self._pool.aclose()
