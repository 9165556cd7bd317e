"""The network of a login: a server of the public internet sends no request of this machine into a private one.

An MCP server names its authorization server, and that one names the hosts for tokens and registration. So each of
them passes the guard of the web tools. If the MCP server is in a private network itself, they may be there too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import cast

import httpcore2
import httpx2

from toolwire.builtin.web.addresses import NOT_AN_ADDRESS, why_not
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.refusals import Blocked, FetchFailed
from toolwire.mcp.oauth.granting import AuthorizationFailed
from toolwire.mcp.oauth.token_auth import origin_of

_PROBE = "/.well-known/oauth-protected-resource"
"""The start of the path of the request that shows the address of the MCP server. A login asks for it as well."""


class AuthorizationNetwork(httpx2.AsyncBaseTransport):
    """A transport of httpx2 for the requests of a login: to the MCP server itself, and to the hosts that it names."""

    def __init__(
        self, url: str, direct: httpx2.AsyncBaseTransport | None = None, guarded: GuardedTransport | None = None
    ) -> None:
        """`url` is that of the MCP server. `direct` sends requests to it, and `guarded` those to public hosts."""
        self._url = httpx2.URL(url)
        self._direct = direct or httpx2.AsyncHTTPTransport()
        self._guarded = guarded or GuardedTransport()
        self._is_private: bool | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request.

        Raises:
            AuthorizationFailed: The host is not on the public internet, but the MCP server is.
            httpx2.TransportError: The host cannot be reached.
        """
        url = request.url
        if origin_of(url) == origin_of(self._url):
            return await self._direct.handle_async_request(request)
        try:
            with _transport_errors():
                await self._guarded.addresses(url.host, url.port or 443)
        except _NotPublic as error:
            if await self._is_server_private(request):
                return await self._direct.handle_async_request(request)
            raise AuthorizationFailed(
                f"{url.host!r} is not on the public internet, and the MCP server {self._url.host} is: its logins may "
                "not reach into a private network"
            ) from error
        with _transport_errors():
            response = await self._guarded.handle_async_request(request)
        response.stream = _GuardedBody(cast("httpx2.AsyncByteStream", response.stream))
        return response

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._direct.aclose()
        await self._guarded.aclose()

    async def _is_server_private(self, request: httpx2.Request) -> bool:
        """True if the MCP server is reached at an address that is not public.

        A connection to it shows the address, with the server's certificate. Its name alone proves nothing: the owner
        of the name may have it resolve to any address for a moment.
        """
        if self._is_private is None:
            why = why_not(self._url.host)
            if why == NOT_AN_ADDRESS:
                why = why_not(await self._address_of_connection(request))
            self._is_private = why is not None
        return self._is_private

    async def _address_of_connection(self, request: httpx2.Request) -> str:
        probe = httpx2.Request(
            "HEAD", self._url.join(_PROBE + self._url.path.rstrip("/")), extensions=request.extensions
        )
        response = await self._direct.handle_async_request(probe)
        try:
            return response.extensions["network_stream"].get_extra_info("server_addr")[0]
        finally:
            await response.aclose()


class _NotPublic(httpx2.TransportError):
    """The guard refused an address or an answer."""


@contextmanager
def _transport_errors() -> Generator[None]:
    """Turns the errors of the guard into those of httpx2, which callers of a transport catch."""
    try:
        yield
    except Blocked as error:
        raise _NotPublic(str(error)) from error
    except (FetchFailed, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise httpx2.TransportError(str(error) or type(error).__name__) from error


class _GuardedBody(httpx2.AsyncByteStream):
    """The body of an answer, with errors of httpx2."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _transport_errors():
            async for part in self._inner:
                yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
