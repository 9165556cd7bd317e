"""A real authorization server and an MCP server that asks for its tokens, each on a port of its own."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response

from tests.mcp.client.tool_server import tool_server

SECRET = "s3cret"
PKCE_METHODS = ["S256"]
"""Those of the SDK's authorization server."""
ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@dataclass
class Seen:
    """A request that one of the two servers got."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]
    query: str


@dataclass
class Protected:
    """The two servers, as tests see and steer them."""

    url: str = ""
    issuer: str = ""
    at_server: list[Seen] = field(default_factory=list)
    at_authorization: list[Seen] = field(default_factory=list)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    life_s: int | None = None
    """Seconds of the next access token, as told to the client; None tells nothing."""
    is_down: bool = False
    """True: the authorization server answers 503."""
    denies: bool = False
    """True: the person refuses."""
    wanted_scope: str = ""
    """A scope without which the MCP server answers 403."""
    asks_first: int = 0
    """Requests that the MCP server must have seen before the authorization server answers a token request."""
    redirect: str = ""
    """Where the MCP server sends each request, with status 307."""
    pkce_methods: list[str] | None = field(default_factory=PKCE_METHODS.copy)
    """The `code_challenge_methods_supported` of the metadata; None leaves it out."""
    named_issuer: str = ""
    """The authorization server that the MCP server names, if it is not its own."""
    registers_first: str = ""
    """An address of the browser's return that the answer to a registration names before the client's own."""

    def reset(self) -> None:
        """Forgets all that was before."""
        self.__init__(url=self.url, issuer=self.issuer)

    def metadata(self) -> dict[str, Any]:
        """Returns the metadata of the authorization server."""
        pages = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in ENDPOINTS.items()}
        methods = {} if self.pkce_methods is None else {"code_challenge_methods_supported": self.pkce_methods}
        return {"issuer": f"{self.issuer}/", "response_types_supported": ["code"], **pages, **methods}

    def count(self, grant: str) -> int:
        """Returns the number of token requests of this kind."""
        return sum(seen.path == "/token" and seen.form.get("grant_type") == grant for seen in self.at_authorization)

    def issue(self, client_id: str, scopes: list[str]) -> OAuthToken:
        token, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self.access[token] = AccessToken(token=token, client_id=client_id, scopes=scopes)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(
            access_token=token, refresh_token=refresh, expires_in=self.life_s, scope=" ".join(scopes) or None
        )


class Person(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The authorization server's own part: each person who comes to its page agrees at once."""

    def __init__(self, protected: Protected) -> None:
        self._of = protected

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._of.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if self._of.registers_first:
            own = client_info.redirect_uris or []
            client_info.redirect_uris = [AnyUrl(self._of.registers_first), *own]
        self._of.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self._of.denies:
            raise AuthorizeError("access_denied", "the person said no")
        code = secrets.token_hex(8)
        self._of.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            **params.model_dump(include={"code_challenge", "redirect_uri", "redirect_uri_provided_explicitly"}),
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._of.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._of.codes[authorization_code.code]
        return self._of.issue(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self._of.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self._of.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._of.issue(client.client_id, refresh_token.scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._of.access.get(token)


class Recorded:
    """An ASGI app that notes each request, and answers some itself."""

    def __init__(self, app: Any, protected: Protected, *, is_authorization: bool) -> None:
        self._app, self._of, self._is_authorization = app, protected, is_authorization

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        message = await receive()
        body = message.get("body", b"")
        form = {}
        if headers.get("content-type") == "application/x-www-form-urlencoded":
            form = {name: found[0] for name, found in parse_qs(body.decode()).items()}
        seen = Seen(scope["path"], headers, form, scope["query_string"].decode())
        (self._of.at_authorization if self._is_authorization else self._of.at_server).append(seen)
        while seen.path == "/token" and len(self._of.at_server) < self._of.asks_first:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        answer = self._answer(seen)

        async def again() -> Any:
            nonlocal message
            given, message = message, None
            return given if given is not None else await receive()

        await (answer or self._app)(scope, again, send)

    def _answer(self, seen: Seen) -> Response | None:
        of = self._of
        if self._is_authorization:
            if of.is_down:
                return Response(status_code=503)
            if of.pkce_methods != PKCE_METHODS and seen.path == "/.well-known/oauth-authorization-server":
                return JSONResponse(of.metadata())
            if seen.form.get("grant_type") == "client_credentials":
                is_right = seen.headers.get("authorization", "").startswith("Basic ")
                token = of.issue("program", []).model_dump(exclude={"refresh_token"}, exclude_none=True)
                return JSONResponse(token if is_right else {"error": "invalid_client"}, 200 if is_right else 401)
            return None
        if of.redirect and seen.path == "/mcp":
            return RedirectResponse(of.redirect, 307)
        if of.named_issuer and seen.path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": of.url, "authorization_servers": [of.named_issuer]})
        held = of.access.get(seen.headers.get("authorization", "").removeprefix("Bearer "))
        if of.wanted_scope and held is not None and of.wanted_scope not in held.scopes:
            wanted = f'Bearer error="insufficient_scope", scope="{of.wanted_scope}"'
            return Response(status_code=403, headers={"www-authenticate": wanted})
        return None


def listening() -> socket.socket:
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen(64)
    return found


@contextmanager
def protected_server() -> Generator[Protected]:
    """Serves both in a thread."""
    sockets = listening(), listening()
    ports = [each.getsockname()[1] for each in sockets]
    protected = Protected(url=f"http://127.0.0.1:{ports[0]}/mcp", issuer=f"http://127.0.0.1:{ports[1]}")
    person, registration = Person(protected), ClientRegistrationOptions(enabled=True, valid_scopes=["read", "write"])
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(protected.issuer),
        resource_server_url=AnyHttpUrl(protected.url),
        validate_token_resource=False,
    )
    app = tool_server().streamable_http_app(auth=settings, token_verifier=ProviderTokenVerifier(person))
    routes = create_auth_routes(person, settings.issuer_url, client_registration_options=registration)
    servers = [
        uvicorn.Server(uvicorn.Config(each, log_level="critical", timeout_graceful_shutdown=1))
        for each in (
            Recorded(app, protected, is_authorization=False),
            Recorded(Starlette(routes=routes), protected, is_authorization=True),
        )
    ]

    async def serve() -> None:
        await asyncio.gather(*(server.serve([found]) for server, found in zip(servers, sockets, strict=True)))

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield protected
    finally:
        for server in servers:
            server.should_exit = True
        thread.join()
        for found in sockets:
            found.close()


def browser(address: str) -> None:
    """Opens the page, and goes where it leads."""
    httpx2.get(address, follow_redirects=True).raise_for_status()
