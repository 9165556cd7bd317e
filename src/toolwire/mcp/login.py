"""A person's login at a server: a page in the browser, which returns to a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.shared.auth import AuthorizationCodeResult
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from toolwire.mcp.oauth.authorization import Endpoint, McpLogin, is_private, key_of
from toolwire.mcp.oauth.authorization_network import AuthorizationNetwork
from toolwire.mcp.oauth.granting import REQUEST_S, AuthorizationFailed, provider_of, request_token
from toolwire.mcp.oauth.tokens import StoredLogin, TokenFile
from toolwire.mcp.server_log import printable
from toolwire.mcp.transports.http import AUTHORIZATION_BYTES, HttpTransport
from toolwire.runtime.portal import Portal
from toolwire.vocabulary.errors import ServerUnavailable

LOGIN_S = 300.0
"""Seconds that a person has for the pages of a login: time to look up a password and a second factor."""

CALLBACK_BYTES = 16_384
"""Bytes of the request with which the browser returns. Codes have a few hundred."""

Open = Callable[[str], object]


def log_in(endpoint: Endpoint, open_page: Open | None) -> None:
    """Logs a person in and keeps the tokens. See `MCPClient.login`."""
    portal = Portal()
    try:
        portal.run(lambda: _log_in(endpoint, open_page or open_browser))
    finally:
        portal.close()


def open_browser(address: str) -> None:
    """Opens the address in the browser.

    Raises:
        AuthorizationFailed: There is no browser. The message has the address.
    """
    if not webbrowser.open(address):
        raise AuthorizationFailed(f"no browser is here; give open_page, which shows the person {address}")


async def _log_in(endpoint: Endpoint, open_page: Open) -> None:
    file, key = TokenFile(), key_of(endpoint)
    kept = file.read(key)
    network = AuthorizationNetwork(endpoint.url)
    transport = HttpTransport(endpoint.url, AUTHORIZATION_BYTES, network, headers=endpoint.headers, has_messages=False)
    try:
        async with (
            Callback.listening(_ports(endpoint, kept)) as callback,
            httpx2.AsyncClient(transport=transport, trust_env=False) as client,
        ):
            challenge = kept.challenge or await _challenge(endpoint, client)
            login = await _authorize(endpoint, kept, challenge, callback, open_page, client)
            # A renewal that is under way would overwrite it.
            async with file.renewing(key):
                file.save(key, login)
    except AuthorizationFailed as error:
        raise ServerUnavailable(f"the login at {endpoint.url} failed: {error}") from error


async def _authorize(
    endpoint: Endpoint,
    kept: StoredLogin,
    challenge: tuple[int, str],
    callback: Callback,
    open_page: Open,
    client: httpx2.AsyncClient,
) -> StoredLogin:
    async def show(address: str) -> None:
        if not is_private(address, endpoint.url):
            raise AuthorizationFailed(f"the page of the login has an address without https: {printable(address)}")
        # The last one is the SDK's; the endpoint's own query may have others.
        callback.state = parse_qs(urlsplit(address).query)["state"][-1]
        await anyio.to_thread.run_sync(open_page, address)

    began = kept
    if challenge[0] == 401:
        # The server refused the kept token, so the login asks for the scopes of its challenge.
        began = replace(kept, tokens=None, expires_at=None)
    if callback.uri not in _redirect_uris(kept):
        # The authorization server would refuse another address than the registered one.
        began = replace(began, client=None)
    provider = provider_of(
        endpoint,
        replace(began, expires_at=None),
        redirect_uri=callback.uri,
        open_page=show,
        returned=callback.wait_for_code,
    )
    login = await request_token(provider, client, challenge, kept.access_token)
    assert login is not None  # a challenge is given
    return login


async def _challenge(endpoint: Endpoint, client: httpx2.AsyncClient) -> tuple[int, str]:
    """Returns the status and challenge of the server's first answer, in either era of the protocol."""
    status = 0
    for version_header, message in _questions():
        headers = {**endpoint.headers, "accept": "application/json, text/event-stream", **version_header}
        is_post = endpoint.transport == "http"
        method, body = ("POST", message) if is_post else ("GET", None)
        try:
            async with client.stream(method, endpoint.url, headers=headers, timeout=REQUEST_S, json=body) as response:
                status, wanted = response.status_code, response.headers.get("www-authenticate", "")
        except httpx2.HTTPError as error:
            raise AuthorizationFailed(f"the server does not answer: {str(error) or type(error).__name__}") from error
        if status in (401, 403):
            # A 403 without a token is the same question, and the SDK begins a login at 401 alone.
            return 401, wanted
    raise AuthorizationFailed(f"the server asks for no login: it answered {status}")


def _questions() -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Returns the first request of each era, with its header."""
    about = {"name": "toolwire", "version": version("toolwire")}
    capabilities: dict[str, Any] = {}
    meta = {
        PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
        CLIENT_INFO_META_KEY: about,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
    }
    shake = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": capabilities, "clientInfo": about}
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1}
    return [
        (
            {MCP_PROTOCOL_VERSION_HEADER: LATEST_MODERN_VERSION, MCP_METHOD_HEADER: "server/discover"},
            {**request, "method": "server/discover", "params": {"_meta": meta}},
        ),
        ({}, {**request, "method": "initialize", "params": shake}),
    ]


def _ports(endpoint: Endpoint, kept: StoredLogin) -> list[int]:
    """Returns the ports to try: the configured one, or that of the registered address, and then any."""
    grant = endpoint.auth
    if isinstance(grant, McpLogin) and grant.callback_port:
        return [grant.callback_port]
    return [*(urlsplit(uri).port or 0 for uri in _redirect_uris(kept)), 0]


def _redirect_uris(kept: StoredLogin) -> list[str]:
    """Returns the addresses to which the browser may return."""
    return [] if kept.client is None else kept.client.get("redirect_uris", [])


class Callback:
    """The port of this machine to which the browser returns."""

    def __init__(self) -> None:
        self.uri = ""
        """The address to which the browser returns."""
        self.state: str | None = None
        """The secret of this login. Requests without it are not from its page."""
        self._result: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def listening(cls, ports: list[int]) -> AsyncGenerator[Callback]:
        """Listens on the first of these ports that is free.

        Raises:
            AuthorizationFailed: None is free.
        """
        callback = cls()
        for port in ports:
            with contextlib.suppress(OSError):
                server = await asyncio.start_server(callback._answer, "127.0.0.1", port, limit=CALLBACK_BYTES)
                break
        else:
            raise AuthorizationFailed(f"the port {ports[0]} of 127.0.0.1 is in use")
        async with server:
            callback.uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
            yield callback

    async def wait_for_code(self) -> AuthorizationCodeResult:
        """Waits for the browser, and returns the code that it brings.

        Raises:
            AuthorizationFailed: The person or the authorization server refused, or the browser did not come back.
        """
        try:
            with anyio.fail_after(LOGIN_S):
                return await self._result
        except TimeoutError:
            raise AuthorizationFailed(f"the browser did not come back within {LOGIN_S:.0f} s") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, _ = head.split(" ", 2)
            status, text = self._take(method, target)
            body = f"<!doctype html><title>toolwire</title><p>{text}</p>"
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\n"
                f"content-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n{body}".encode()
            )
            await writer.drain()
        writer.close()

    def _take(self, method: str, target: str) -> tuple[str, str]:
        """Takes the result out of a request. Any page of the web can send requests here, without the secret."""
        address = urlsplit(target)
        values = {name: found[0] for name, found in parse_qs(address.query).items()}
        is_ours = method == "GET" and address.path == "/callback" and self.state is not None
        if not is_ours or values.get("state") != self.state or self._result.done():
            return "400 Bad Request", "This is not the page of a login that is under way."
        if "code" not in values:
            told = ": ".join(values[name] for name in ("error", "error_description") if name in values)
            self._result.set_exception(AuthorizationFailed(f"it was refused: {printable(told[:300])}"))
            return "200 OK", "The login was refused. You can close this page."
        result = AuthorizationCodeResult(code=values["code"], state=values["state"], iss=values.get("iss"))
        self._result.set_result(result)
        return "200 OK", "You are logged in. You can close this page."
