"""A wrong answer of an authorization server ends a login with an error that names the field."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.shared.auth import AuthorizationCodeResult

from toolwire.mcp.client_limits import ClientLimits
from toolwire.mcp.oauth.authorization import McpLogin, endpoint_of
from toolwire.mcp.oauth.authorization_answers import NUMBER_LIMIT, URL_CHARACTERS
from toolwire.mcp.oauth.granting import REDIRECT_URI, AuthorizationFailed, provider_of, request_token
from toolwire.mcp.oauth.tokens import StoredLogin

SERVER = "https://tools.example.com/mcp"
ISSUER = "https://login.example.com"
CHALLENGE = (401, f'Bearer resource_metadata="{SERVER}/about"')
LONG = ISSUER + "/" + "a" * (URL_CHARACTERS - len(ISSUER) - 1)

RESOURCE: dict[str, Any] = {"resource": SERVER, "authorization_servers": [ISSUER]}
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "code_challenge_methods_supported": ["S256"],
}
CLIENT: dict[str, Any] = {"client_id": "c-1", "token_endpoint_auth_method": "none"}
TOKEN: dict[str, Any] = {"access_token": "t-1", "token_type": "Bearer", "expires_in": 3_600}


class Answers(httpx2.AsyncBaseTransport):
    """The MCP server and its authorization server, with fields that a test changes."""

    def __init__(self, **changed: dict[str, Any]) -> None:
        documents = {"about": RESOURCE, ".well-known": METADATA, "register": CLIENT, "token": TOKEN}
        self._documents = {name: {**document, **changed.get(name, {})} for name, document in documents.items()}
        self.bodies: dict[str, tuple[int, bytes]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for name, document in self._documents.items():
            if f"/{name}" in request.url.path:
                status, body = self.bodies.get(name, (200, json.dumps(document).encode()))
                return httpx2.Response(status, content=body)
        return httpx2.Response(404)


async def logged_in(answers: Answers, challenge: tuple[int, str] = CHALLENGE) -> StoredLogin | None:
    endpoint = endpoint_of("http", SERVER, None, McpLogin(), ClientLimits())
    state: list[str] = []

    async def open_page(address: str) -> None:
        state.extend(parse_qs(urlsplit(address).query)["state"])

    async def returned() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code="code", state=state[-1])

    provider = provider_of(endpoint, StoredLogin(), open_page=open_page, returned=returned)
    async with httpx2.AsyncClient(transport=answers) as client:
        return await request_token(provider, client, challenge, None)


async def test_honest_answers_give_a_token() -> None:
    login = await logged_in(Answers())
    assert login is not None
    assert login.access_token == "t-1"
    # The largest number and the longest URL that are taken.
    await logged_in(
        Answers(token={"expires_in": NUMBER_LIMIT - 1}, **{".well-known": {"jwks_uri": LONG, "op_tos_uri": LONG}})
    )


@pytest.mark.parametrize(
    ("document", "fields", "why"),
    [
        (
            ".well-known",
            {"authorization_endpoint": f"{ISSUER}/authorize#f"},
            "its authorization_endpoint has a fragment",
        ),
        (".well-known", {"token_endpoint": f"{ISSUER}/token#f"}, "its token_endpoint has a fragment"),
        (".well-known", {"registration_endpoint": f"{LONG}a"}, "registration_endpoint has more than 2,048 characters"),
        ("about", {"authorization_servers": [f"{LONG}a"]}, "authorization_servers has more than 2,048 characters"),
        ("register", {"client_secret_expires_at": 10**400}, "its client_secret_expires_at is too large a number"),
        ("token", {"expires_in": 10**400}, "its expires_in is too large a number"),
        ("token", {"expires_in": NUMBER_LIMIT}, "its expires_in is too large a number"),
        ("token", {"access_token": "t\u20ac"}, "its access_token has characters that no header carries"),
        ("token", {"access_token": "t\r\nx: y"}, "its access_token has characters that no header carries"),
    ],
)
async def test_a_field_that_cannot_be_used_is_named(document: str, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(AuthorizationFailed, match=f"gave an answer that cannot be used: .*{why}") as refused:
        await logged_in(Answers(**{document: fields}))
    assert not any(secret in str(refused.value) for secret in ("t\u20ac", "x: y"))


async def test_a_registration_chooses_no_port_for_the_next_login() -> None:
    login = await logged_in(Answers(register={"redirect_uris": ["http://127.0.0.1:25/callback"]}))
    assert login is not None
    assert login.client is not None
    assert (login.client["client_id"], login.client["redirect_uris"]) == ("c-1", [REDIRECT_URI])


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("document", ["register", "token"])
async def test_an_answer_that_is_not_utf8_is_a_typed_error(document: str, status: int) -> None:
    answers = Answers()
    answers.bodies[document] = (status, b'{"access_token": "\xff"}')
    with pytest.raises(AuthorizationFailed, match=r"^the authorization failed: "):
        await logged_in(answers)


async def test_a_challenge_that_names_no_url_is_a_typed_error() -> None:
    with pytest.raises(AuthorizationFailed, match=r"^the authorization failed: Invalid port"):
        await logged_in(Answers(), (401, 'Bearer resource_metadata="https://[::1"'))
