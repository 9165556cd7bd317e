"""Puts the token of one server on the requests to it, and renews it: once among all calls, threads and processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from toolwire.mcp.oauth.authorization import Endpoint, McpCredentials, McpLogin, key_of
from toolwire.mcp.oauth.granting import EXPIRED, AuthorizationFailed, provider_of, request_token
from toolwire.mcp.oauth.tokens import StoredLogin, TokenFile

RENEW_S = 60.0
"""Seconds of one renewal, the wait for another process included: two requests that are not answered."""

CHALLENGE_CHARACTERS = 4_096
"""Characters of a server's challenge that are kept for the next login."""

CLOSE_S = 5.0
"""Seconds that the end of a connection waits for a renewal. A new refresh token would be lost otherwise."""

Challenge = tuple[int, str]
"""The status of an answer and its `WWW-Authenticate`."""


class TokenAuth(httpx2.Auth):
    """The authentication of one connection. It opens no page: a missing login is an error that names the command."""

    def __init__(self, endpoint: Endpoint, login_command: str, client: httpx2.AsyncClient) -> None:
        """`client` sends the requests to the authorization server. It has no headers of the user."""
        self._endpoint, self._login_command, self._client = endpoint, login_command, client
        self._url, self._key, self._file = httpx2.URL(endpoint.url), key_of(endpoint), TokenFile()
        self._renewal: asyncio.Task[str] | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the request with the token, and once more with a new one if the server refuses it.

        Raises:
            AuthorizationFailed: A person has to log in first.
            ConfigurationError: The file of tokens cannot be used.
        """
        if origin_of(request.url) != origin_of(self._url):
            yield request
            return
        kept = self._read()
        token = kept.fresh_token
        if token is None and kept.has_refresh_token and isinstance(self._endpoint.auth, McpLogin):
            token = await self._await_renewal(None, None)
        response = yield _with_token(request, token)
        challenge = _challenge_of(response)
        if challenge is not None:
            yield _with_token(request, await self._await_renewal(token, challenge))

    async def aclose(self) -> None:
        """Waits for a renewal that is under way."""
        if self._renewal is not None:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await asyncio.wait([self._renewal])
            self._renewal.cancel()

    def _read(self) -> StoredLogin:
        """Returns the kept login if it is one of the configured client."""
        kept, grant = self._file.read(self._key), self._endpoint.auth
        if isinstance(grant, McpLogin) and grant.client_id is not None and kept.client is not None:
            is_url = grant.client_id.startswith("https://")
            if kept.client["client_id"] != grant.client_id and not is_url:
                return StoredLogin()
        return kept

    async def _await_renewal(self, refused: str | None, challenge: Challenge | None) -> str:
        """Returns a token other than the refused one. All calls of this connection wait for the same renewal."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(refused, challenge))
        # A call that is cancelled must not take the renewal with it.
        return await asyncio.shield(self._renewal)

    async def _renew(self, refused: str | None, challenge: Challenge | None) -> str:
        try:
            with anyio.fail_after(RENEW_S):
                async with self._file.renewing(self._key):
                    kept = self._read()
                    token = kept.fresh_token
                    if token is None or token == refused:
                        token = await self._obtain_token(kept, refused, challenge)
                    return token
        except TimeoutError:
            raise AuthorizationFailed(f"the token was not renewed within {RENEW_S:.0f} s") from None

    async def _obtain_token(self, kept: StoredLogin, refused: str | None, challenge: Challenge | None) -> str:
        has_person = isinstance(self._endpoint.auth, McpLogin)
        can_refresh = kept.has_refresh_token and (challenge is None or challenge[0] == 401)
        if can_refresh:
            kept = replace(kept, expires_at=EXPIRED)
        login = None
        if can_refresh or not has_person:
            provider = provider_of(self._endpoint, kept)
            login = await request_token(provider, self._client, None if has_person else challenge, refused)
        if login is not None and login.access_token is not None:
            self._file.save(self._key, login)
            return login.access_token
        self._keep_challenge(kept, challenge, is_over=can_refresh)
        raise AuthorizationFailed(f"the server asks for a login. Run: {self._login_command}")

    def _keep_challenge(self, kept: StoredLogin, challenge: Challenge | None, *, is_over: bool) -> None:
        """Keeps the challenge that the next login has to answer. A refresh token that was refused is forgotten."""
        if challenge is not None and len(challenge[1]) > CHALLENGE_CHARACTERS:
            challenge = None
        changed = replace(kept, tokens=None if is_over else kept.tokens, challenge=challenge or kept.challenge)
        if changed != self._file.read(self._key):
            self._file.save(self._key, changed)


def origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Returns scheme, host and port; None is the port of the scheme."""
    return url.scheme, url.host, url.port


def _with_token(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers["authorization"] = f"Bearer {token}"
    return request


def _challenge_of(response: httpx2.Response) -> Challenge | None:
    """Returns the challenge of a server that asks for a token, or for one with more scopes."""
    asks_more = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    if response.status_code == 401 or asks_more:
        return response.status_code, response.headers.get("www-authenticate", "")
    return None


@asynccontextmanager
async def token_auth(
    endpoint: Endpoint, login_command: str, client: httpx2.AsyncClient
) -> AsyncGenerator[httpx2.Auth | None]:
    """Gives the authentication for one connection to the endpoint."""
    if not isinstance(endpoint.auth, McpLogin | McpCredentials):
        yield endpoint.auth
        return
    async with client:
        auth = TokenAuth(endpoint, login_command, client)
        try:
            yield auth
        finally:
            await auth.aclose()
