"""Gets tokens by the SDK's OAuth providers: a refresh, client credentials, or a person's login."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from toolwire.mcp.oauth.authorization import Endpoint, McpCredentials, McpLogin, is_private
from toolwire.mcp.oauth.authorization_answers import WrongAnswer, check_answer
from toolwire.mcp.oauth.tokens import StoredLogin
from toolwire.mcp.server_log import printable
from toolwire.vocabulary.errors import ConfigurationError

REQUEST_S = 30.0
"""Seconds of one request to an authorization server, as for connecting to an MCP server."""

EXPIRED = 1.0
"""An end of a token, in seconds since the epoch, that is long over. The SDK takes 0 for no end."""

REASON_CHARACTERS = 300
"""Characters of a reason. The SDK puts whole pages of a server into it."""


class AuthorizationFailed(Exception):
    """No token could be had. The message says why, and what to do."""


class _InMemory:
    """A store of the SDK for the time of one flow. `request_token` keeps the result itself, in one piece."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


class _LoginProvider(OAuthClientProvider):
    """The SDK's provider, which begins with the kept login."""

    kept: StoredLogin

    async def _initialize(self) -> None:
        _restore(self.context, self.kept)
        self._initialized = True

    async def _perform_authorization(self) -> httpx2.Request:
        _check_pkce(self.context)
        return await super()._perform_authorization()


class _CredentialsProvider(ClientCredentialsOAuthProvider):
    """The SDK's provider, which begins with the kept token."""

    kept: StoredLogin

    async def _initialize(self) -> None:
        await super()._initialize()
        fixed = self.context.client_info
        _restore(self.context, self.kept)
        self.context.client_info = fixed


Provider = _LoginProvider | _CredentialsProvider

REDIRECT_URI = "http://127.0.0.1/callback"
"""Stands for the address of a login, in a provider that only renews tokens."""


def provider_of(
    endpoint: Endpoint,
    kept: StoredLogin,
    *,
    redirect_uri: str = REDIRECT_URI,
    open_page: Callable[[str], Awaitable[None]] | None = None,
    returned: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
) -> Provider:
    """Returns the SDK's provider for an endpoint. Only a login has the last three.

    Raises:
        ConfigurationError: The kept login is damaged.
    """
    grant = endpoint.auth
    if isinstance(grant, McpCredentials):
        credentials = _CredentialsProvider(
            endpoint.url, _InMemory(), grant.client_id, grant.client_secret, scope=grant.scope, issuer=grant.issuer
        )
        credentials.kept = kept
        return credentials
    assert isinstance(grant, McpLogin)
    is_url = grant.client_id is not None and grant.client_id.startswith("https://")
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect_uri)], client_name="toolwire", scope=grant.scope)
    provider = _LoginProvider(
        endpoint.url,
        metadata,
        _InMemory(),
        redirect_handler=open_page,
        callback_handler=returned,
        client_metadata_url=grant.client_id if is_url else None,
    )
    if grant.client_id is not None and not is_url:
        registered = OAuthClientInformationFull(
            client_id=grant.client_id,
            client_secret=grant.client_secret,
            redirect_uris=[AnyUrl(redirect_uri)],
            token_endpoint_auth_method="none" if grant.client_secret is None else "client_secret_basic",
            issuer=grant.issuer,
        )
        kept = replace(kept, client=registered.model_dump(mode="json", exclude_none=True))
    provider.kept = kept
    return provider


def _restore(context: OAuthContext, kept: StoredLogin) -> None:
    try:
        if kept.tokens is not None:
            context.current_tokens = OAuthToken.model_validate(kept.tokens)
            context.token_expiry_time = kept.expires_at
        if kept.client is not None:
            context.client_info = OAuthClientInformationFull.model_validate(kept.client)
        if kept.authorization_server is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(kept.authorization_server)
        if kept.resource is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(kept.resource)
            context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
    except ValidationError as error:
        raise ConfigurationError(f"the kept login at {context.server_url!r} is damaged: make a new login") from error


def _check_pkce(context: OAuthContext) -> None:
    """Checks that the authorization server binds a code to this client, as MCP 2025-11-25 demands.

    Without it, whoever gets the code in the browser's way gets the token.

    Raises:
        AuthorizationFailed: Its metadata do not name S256.
    """
    metadata = context.oauth_metadata
    methods = [] if metadata is None else metadata.code_challenge_methods_supported or []
    if "S256" not in methods:
        server = printable(str(context.server_url if metadata is None else metadata.issuer))
        raise AuthorizationFailed(
            f"the authorization server {server} does not support PKCE with S256: its metadata need "
            '"code_challenge_methods_supported": ["S256"]'
        )


def _login_from_context(context: OAuthContext) -> StoredLogin:
    def plain(model: Any) -> dict[str, Any] | None:
        return None if model is None else model.model_dump(mode="json", exclude_none=True)

    return StoredLogin(
        tokens=plain(context.current_tokens),
        expires_at=context.token_expiry_time,
        client=plain(context.client_info),
        authorization_server=plain(context.oauth_metadata),
        resource=plain(context.protected_resource_metadata),
    )


async def request_token(
    provider: Provider, client: httpx2.AsyncClient, challenge: tuple[int, str] | None, refused: str | None
) -> StoredLogin | None:
    """Returns the login with a new token. None if it needs an answer of the server that no refresh can satisfy.

    The provider believes that it authenticates a request. That request is never sent: it shows when there is a token,
    and `challenge`, the status and `WWW-Authenticate` that the server gave before, is its answer.

    Args:
        provider: Knows the kept login.
        client: Sends the requests to the authorization server.
        challenge: None if only a refresh may be tried.
        refused: The access token that does not count any more.

    Raises:
        AuthorizationFailed: The authorization server cannot be reached, or refuses.
    """
    request = httpx2.Request("POST", provider.context.server_url)
    flow = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        while True:
            if outgoing is not request:
                response = await _send_request(client, outgoing, provider.context.server_url)
            elif (token := request.headers.get("authorization")) is not None and token != f"Bearer {refused}":
                return _login_from_context(provider.context)
            elif challenge is None:
                return None
            else:
                status, header = challenge
                response = httpx2.Response(status, headers={"www-authenticate": header}, request=request)
            outgoing = await flow.asend(response)
    except StopAsyncIteration:
        raise AuthorizationFailed("the authorization server gave the refused token once more") from None
    except (OAuthFlowError, httpx2.InvalidURL) as error:
        raise AuthorizationFailed(f"the authorization failed: {printable(str(error)[:REASON_CHARACTERS])}") from error
    finally:
        await flow.aclose()


async def _send_request(client: httpx2.AsyncClient, request: httpx2.Request, server: str) -> httpx2.Response:
    host = request.url.host
    if not is_private(str(request.url), server):
        raise AuthorizationFailed(f"the authorization server {host} has an address without https")
    request.extensions["timeout"] = httpx2.Timeout(REQUEST_S).as_dict()
    try:
        response = await client.send(request, follow_redirects=False)
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise AuthorizationFailed(f"the authorization server {host} does not answer: {reason}") from error
    # The SDK takes any failed refresh for the end of the login.
    if request.method == "POST" and (response.status_code >= 500 or response.status_code == 429):
        raise AuthorizationFailed(f"the authorization server {host} cannot answer now: {response.status_code}")
    try:
        return check_answer(request, response)
    except WrongAnswer as error:
        raise AuthorizationFailed(
            f"the authorization server {host} gave an answer that cannot be used: {error}"
        ) from error
