"""The ASGI application: the SDK's streamable HTTP behind checks of the Host, the Origin and the bearer token."""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.authentication import AuthenticationError
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolwire.gateway.asking.request_end import RequestEnds
from toolwire.gateway.clients import TOKEN_PRINCIPAL
from toolwire.gateway.http.header_guard import HttpGuard
from toolwire.gateway.http.requests import WholeRequests
from toolwire.gateway.http.sessions import SessionShares
from toolwire.gateway.profiles.issuer_table import Issuer
from toolwire.gateway.profiles.token_refusal import RETRY_AFTER_S, UNAVAILABLE, TokenRefused
from toolwire.gateway.sdk_server import SdkServer
from toolwire.gateway.server_limits import ServerLimits
from toolwire.gateway.slots import Slots

PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class Access:
    """The settings that say which HTTP requests are served."""

    token: str | None
    verifier: TokenVerifier | None
    auth: AuthSettings | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    health: Sequence[BaseRoute]
    """The pages for probes."""
    is_stateless: bool
    """True if no request belongs to a session."""
    scopes: tuple[str, ...] = ()
    """Scopes that clients may ask for, besides those that `auth` requires."""


class OneToken:
    """Accepts one token. It is compared in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the access that the token gives, or None."""
        # The middleware decodes headers as Latin-1.
        if not hmac.compare_digest(token.encode("latin-1", "replace"), self._token):
            return None
        return AccessToken(token=token, client_id=TOKEN_PRINCIPAL, scopes=[])


def issuer_settings(issuer: Issuer) -> AuthSettings:
    """Returns the SDK's settings for the tokens of an issuer. Its verifier checks the audience."""
    # A URL that is given as a text stays as it is written.
    settings = {"issuer_url": issuer.url, "resource_server_url": issuer.audience, "validate_token_resource": False}
    return AuthSettings.model_validate(settings)


def http_app(server: SdkServer, access: Access, limits: ServerLimits) -> Starlette:
    """Returns the application of one server."""
    manager = StreamableHTTPSessionManager(
        app=server,
        stateless=access.is_stateless,
        max_request_body_size=limits.body_bytes,
        max_sessions=limits.sessions,
        session_idle_timeout=limits.idle_s,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    middleware = [Middleware(HttpGuard, hosts=access.hosts, origins=access.origins), Middleware(RequestEnds)]
    sessions = Slots(limits.sessions, "session", "open", each=limits.each(limits.sessions))
    served: ASGIApp = StreamableHTTPASGIApp(manager)
    endpoint: Any = WholeRequests(served if access.is_stateless else SessionShares(served, manager, sessions), limits)
    routes: list[BaseRoute] = []
    verifier = access.verifier if access.token is None else OneToken(access.token)
    if verifier is not None:
        answer = partial(_refusal, _metadata_url(access.auth))
        middleware += [Middleware(AuthenticationMiddleware, backend=_backend(verifier, access.auth), on_error=answer)]
        middleware += [Middleware(AuthContextMiddleware)]
        endpoint = _require_auth(endpoint, access.auth)
    if access.auth is not None and access.auth.resource_server_url is not None:
        routes += create_protected_resource_routes(
            resource_url=access.auth.resource_server_url,
            authorization_servers=[access.auth.issuer_url],
            scopes_supported=[*(access.auth.required_scopes or ()), *access.scopes] or None,
        )
    # GET would open a stream of a session's news, and DELETE end a session.
    own = Route(PATH, endpoint=endpoint, methods=["POST"] if access.is_stateless else None)
    return Starlette(routes=[own, *routes, *access.health], middleware=middleware, lifespan=lifespan)


def _backend(verifier: TokenVerifier, auth: AuthSettings | None) -> BearerAuthBackend:
    is_checked = auth is not None and auth.validate_token_resource
    return BearerAuthBackend(verifier, resource_server_url=auth.resource_server_url if auth and is_checked else None)


def _require_auth(endpoint: ASGIApp, auth: AuthSettings | None) -> RequireAuthMiddleware:
    return RequireAuthMiddleware(endpoint, [] if auth is None else auth.required_scopes or [], _metadata_url(auth))


def _metadata_url(auth: AuthSettings | None) -> AnyHttpUrl | None:
    """Returns the place where clients learn who issues tokens, if there is one."""
    resource = None if auth is None else auth.resource_server_url
    return None if resource is None else build_resource_metadata_url(resource)


def _refusal(metadata: AnyHttpUrl | None, _: HTTPConnection, error: AuthenticationError) -> Response:
    """Returns the answer to a request whose token was refused (RFC 6750)."""
    refused = error if isinstance(error, TokenRefused) else TokenRefused(401, "invalid_token", "it cannot be used")
    told = {"error": refused.error, "error_description": str(refused)}
    if refused.status == UNAVAILABLE:
        return JSONResponse(told, refused.status, {"Retry-After": f"{RETRY_AFTER_S:.0f}"})
    # A quotation mark would end the text.
    shown = {name: re.sub(r"[^ !#-\[\]-~]", "_", text) for name, text in told.items()}
    parts = [f'{name}="{text}"' for name, text in shown.items()]
    if metadata is not None:
        parts.append(f'resource_metadata="{metadata}"')
    return JSONResponse(told, refused.status, {"WWW-Authenticate": f"Bearer {', '.join(parts)}"})
