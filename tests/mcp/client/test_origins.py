"""No header, token or secret reaches another server than its own. Each attack has a control that succeeds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from mcp.client.auth import oauth2
from mcp.client.auth.extensions import client_credentials
from mcp.shared import _httpx_utils
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from tests.mcp.client.authorization_server import Protected, Seen, browser, listening
from toolwire import ConfigurationError, MCPClient, McpCredentials, McpLogin, ServerUnavailable
from toolwire.mcp.oauth import token_auth
from toolwire.mcp.oauth.authorization import is_private
from toolwire.mcp.transports import http

KEY = "k-1234"


def has(seen: list[Seen], value: str) -> bool:
    """Returns True if a request had this value in its headers or its form."""
    return any(value in text for each in seen for text in (*each.headers.values(), *each.form.values()))


def true(*_: Any) -> bool:
    return True


@pytest.mark.parametrize("is_attack", [True, False])
@pytest.mark.parametrize("make", [MCPClient.http, MCPClient.sse])
def test_headers_stay_at_their_origin_when_the_server_redirects(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, make: Callable[..., MCPClient], is_attack: bool
) -> None:
    protected.redirect = f"{protected.issuer}/steal"
    # The SDK follows no such redirect. Without that, the door is left.
    monkeypatch.setattr(_httpx_utils, "_within_origin", true)
    if not is_attack:
        monkeypatch.setattr(http, "origin_of", true)
    with pytest.raises(ServerUnavailable), make("issues", protected.url, {"X-Api-Key": KEY}) as client:
        client.connect()
    assert [seen.path for seen in protected.at_authorization][:1] == ["/steal"]
    assert has(protected.at_server, KEY)
    assert has(protected.at_authorization, KEY) is not is_attack


@pytest.mark.parametrize("is_attack", [True, False])
def test_a_token_stays_at_its_origin_when_the_server_redirects(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, is_attack: bool
) -> None:
    client = MCPClient.http("issues", protected.url, auth="oauth")
    client.login(browser)
    (token,) = protected.access
    protected.redirect = f"{protected.issuer}/steal"
    monkeypatch.setattr(_httpx_utils, "_within_origin", true)
    if not is_attack:
        monkeypatch.setattr(token_auth, "origin_of", lambda url: "")  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(ServerUnavailable), client:
        client.connect()
    assert has(protected.at_server, token)
    assert has(protected.at_authorization, token) is not is_attack


def test_the_authorization_server_sees_no_header_of_the_user(protected: Protected) -> None:
    client = MCPClient.http("issues", protected.url, {"X-Api-Key": KEY}, auth="oauth")
    client.login(browser)
    with client:
        client.connect()
        protected.access.clear()
        client.get_callable_function("add")(a=1, b=2).result()
    paths = {seen.path for seen in protected.at_authorization}
    assert paths == {"/.well-known/oauth-authorization-server", "/register", "/authorize", "/token"}
    assert (has(protected.at_server, KEY), has(protected.at_authorization, KEY)) == (True, False)


@pytest.mark.parametrize("is_attack", [True, False])
def test_the_secret_of_credentials_goes_to_its_issuer_alone(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, is_attack: bool
) -> None:
    if not is_attack:
        monkeypatch.setattr(client_credentials, "_require_metadata_for_configured_issuer", true)
    auth = McpCredentials(client_id="program", client_secret="s3cret", issuer="https://login.example")
    client = MCPClient.http("issues", protected.url, auth=auth)
    # The server says that another one is its authorization server.
    with contextlib.suppress(ServerUnavailable), client:
        client.connect()
    assert protected.count("client_credentials") == (0 if is_attack else 1)
    assert has(protected.at_authorization, "Basic ") is not is_attack


@pytest.mark.parametrize("is_attack", [True, False])
def test_the_secret_of_a_login_goes_to_its_issuer_alone(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, is_attack: bool
) -> None:
    if not is_attack:
        monkeypatch.setattr(oauth2, "credentials_match_issuer", true)
    with listening() as free:
        port = free.getsockname()[1]
    protected.clients["known"] = OAuthClientInformationFull(
        client_id="known",
        client_secret=KEY,
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
        token_endpoint_auth_method="client_secret_basic",
        scope="read write",
    )
    auth = McpLogin(client_id="known", client_secret=KEY, issuer="https://login.example", callback_port=port)
    # Another authorization server than the issuer knows the client only by a registration of its own.
    MCPClient.http("issues", protected.url, auth=auth).login(browser)
    assert has(protected.at_authorization, "Basic ") is not is_attack


@pytest.mark.parametrize(
    ("url", "server", "is_allowed"),
    [
        ("https://login.example/token", "https://mcp.example/", True),
        ("http://login.example/token", "https://mcp.example/", False),
        ("http://mcp.example/token", "http://mcp.example/", False),
        ("http://localhost:80/token", "http://127.0.0.1:9/", True),
        ("http://169.254.169.254/latest", "https://mcp.example/", False),
        ("http://127.0.0.1/token", "https://mcp.example/", False),
        ("http://127.0.0.1.evil.example/", "http://127.0.0.1/", False),
        ("http://127.0.0.1@evil.example/", "http://127.0.0.1/", False),
        ("file:///etc/passwd", "http://127.0.0.1/", False),
    ],
)
def test_tokens_go_by_https_or_within_this_machine(url: str, server: str, is_allowed: bool) -> None:
    assert is_private(url, server) is is_allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"auth": "token"},
            "auth='token': write 'oauth', McpLogin(...) or McpCredentials(...); a token belongs in headers",
        ),
        (
            {"auth": "oauth", "headers": {"authorization": "Bearer x"}},
            "headers has Authorization, and auth is given too: leave one of them out",
        ),
        (
            {"auth": "oauth", "url": "http://mcp.example/"},
            "url='http://mcp.example/': tokens need https://, or a server of this machine",
        ),
        ({"headers": {"X": 1}}, "headers=['X', 1]: give texts alone"),
    ],
)
def test_what_cannot_be_kept_safe_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        MCPClient.http(**{"name": "issues", "url": "https://mcp.example/", **options})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"client_secret": "s"}, "client_secret: give client_id too, and issuer: the server that gets the secret"),
        ({"issuer": "login.example"}, "issuer='login.example': write the URL of the authorization server"),
        ({"callback_port": 70_000}, "callback_port=70000: give a port from 1 to 65535"),
    ],
)
def test_a_login_is_checked_when_it_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        McpLogin(**options)
    assert str(refused.value) == message


def test_no_secret_is_shown() -> None:
    shown = repr((McpLogin(client_id="a", client_secret=KEY, issuer="https://login.example"), McpLogin()))
    assert KEY not in shown
