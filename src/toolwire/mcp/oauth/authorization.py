"""How a client proves to a server at a URL that it may use it: by a person's login, or by credentials of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2

    from toolwire.mcp.client_limits import ClientLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLogin:
    """A person's login by OAuth 2.1: authorization code with PKCE. `MCPClient.login` or `toolwire mcp login` starts it.

    Attributes:
        client_id: The id of a client that is registered already, or the https URL of its metadata. None registers a
            client with the first login.
        client_secret: The secret of that client, if it has one.
        issuer: The only authorization server that gets the secret. A secret needs it, because the MCP server names the
            authorization server otherwise.
        scope: The scopes to ask for, with spaces between. None asks for those that the server names.
        callback_port: The port of 127.0.0.1 to which the browser returns; 0 takes a free one.

    Raises:
        ConfigurationError: A secret has no client id or no issuer, or the port is not one.
    """

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    scope: str | None = None
    callback_port: int = 0

    def __post_init__(self) -> None:
        if self.client_secret is not None and (self.client_id is None or self.issuer is None):
            raise ConfigurationError("client_secret: give client_id too, and issuer: the server that gets the secret")
        if self.issuer is not None:
            _check_issuer(self.issuer)
        if type(self.callback_port) is not int or not 0 <= self.callback_port <= 65535:
            raise ConfigurationError(f"callback_port={self.callback_port!r:.80}: give a port from 1 to 65535")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCredentials:
    """Client credentials by OAuth 2.1, for a program without a person.

    Attributes:
        client_id: The id of the client.
        client_secret: Its secret.
        issuer: The authorization server that gave them. It alone gets the secret, whatever the MCP server says.
        scope: The scopes to ask for, with spaces between. None asks for those that the server names.

    Raises:
        ConfigurationError: The issuer is not a URL.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str
    scope: str | None = None

    def __post_init__(self) -> None:
        _check_issuer(self.issuer)


Grant = McpLogin | McpCredentials

Auth = Grant | Literal["oauth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server at a URL, and all that a connection to it needs."""

    transport: Literal["http", "sse"]
    url: str
    headers: Mapping[str, str] = field(repr=False)
    auth: httpx2.Auth | Grant | None
    limits: ClientLimits


def endpoint_of(
    transport: Literal["http", "sse"],
    url: str,
    headers: Mapping[str, str] | None,
    auth: httpx2.Auth | Auth | None,
    limits: ClientLimits,
) -> Endpoint:
    """Returns the endpoint, checked.

    Raises:
        ConfigurationError: The URL, a header or `auth` cannot be used.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"url={url!r:.80}: write a URL with https:// or http://")
    given = dict(headers or {})
    check_texts("headers", [*given, *given.values()])
    if isinstance(auth, str):
        if auth != "oauth":
            raise ConfigurationError(
                f"auth={auth!r:.20}: write 'oauth', McpLogin(...) or McpCredentials(...); a token belongs in headers"
            )
        auth = McpLogin()
    if auth is not None and any(name.lower() == "authorization" for name in given):
        raise ConfigurationError("headers has Authorization, and auth is given too: leave one of them out")
    if isinstance(auth, McpLogin | McpCredentials) and not is_private(url, url):
        raise ConfigurationError(f"url={url!r:.80}: tokens need https://, or a server of this machine")
    return Endpoint(transport=transport, url=url, headers=given, auth=auth, limits=limits)


def is_private(url: str, server: str) -> bool:
    """Returns True if tokens may go to this URL: by https, or within this machine if the server is on it too."""
    there = urlsplit(url)
    return there.scheme == "https" or (
        there.scheme == "http" and there.hostname in _LOOPBACK and urlsplit(server).hostname in _LOOPBACK
    )


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def key_of(endpoint: Endpoint) -> str:
    """Returns the key of the endpoint's tokens: its URL, and for credentials also their client."""
    parts = urlsplit(endpoint.url)
    host = (parts.netloc.rpartition("@")[2]).lower()
    url = f"{parts.scheme.lower()}://{host}{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    grant = cast("Grant", endpoint.auth)
    return f"{url} {grant.client_id}" if isinstance(grant, McpCredentials) else url


def check_texts(what: str, texts: Iterable[object]) -> None:
    """Checks that an argument holds texts alone.

    Raises:
        ConfigurationError: It is one text, or holds other values.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{what}={texts!r:.80}: give texts alone")


def _check_issuer(issuer: str) -> None:
    if not issuer.startswith(("http://", "https://")):
        raise ConfigurationError(f"issuer={issuer!r:.80}: write the URL of the authorization server")
