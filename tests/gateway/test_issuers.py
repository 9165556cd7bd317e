"""Tokens of an authorization server: which open a server, which profile they give, and what is said of the others."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import mcp_types as types
import pytest
from cryptography.hazmat.primitives import serialization
from mcp.shared.exceptions import MCPError

from tests.cli.command_line import run_here
from tests.free_ports import free_port
from tests.gateway.issuers import AUDIENCE, METADATA, LocalIssuer, issuing
from tests.gateway.serving import call_body, raw, serving
from tests.gateway.test_tokens import bearer, client_of
from toolwire import CallContext, ClientProfiles, ConfigurationError, ToolRegistry, ToolServer
from toolwire.gateway.profiles import issuer_keys

PROFILES: dict[str, Any] = {
    "writers": {"tools": ["*"]},
    "readers": {"tools": ["whoami"]},
    "ops": {"token": "sha256:" + "0" * 64, "tools": ["*"]},
}
SCOPES = {"tools:write": "writers", "tools:read": "readers"}


@pytest.fixture
def issuer() -> Generator[LocalIssuer]:
    with issuing() as made:
        yield made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the keys be fetched at each need."""
    monkeypatch.setattr(issuer_keys, "RETRY_AFTER_S", 0.0)


def whoami(context: CallContext) -> str:
    """Shows the caller."""
    return f"{context.caller.principal} by {context.caller.agent} of {context.caller.tenant}"


def write() -> str:
    """Writes."""
    return "written"


@contextmanager
def server_for(url: str, profiles: ClientProfiles | None = None) -> Generator[int]:
    made = profiles or ClientProfiles(PROFILES, auth={"issuer": url, "audience": AUDIENCE, "scopes": SCOPES})
    registry = ToolRegistry(visible=made.sees)
    registry.register(whoami)
    registry.register(write)
    with serving(ToolServer(registry, "tests", token_verifier=made).asgi()) as port:
        yield port


def ask(port: int, token: str) -> tuple[int, str, dict[str, str]]:
    """Calls `whoami`. Gives the status, the text and the headers."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Mcp-Method": "tools/call"}
    headers |= {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    body = call_body("whoami", {})
    answer = httpx2.post(f"http://127.0.0.1:{port}/mcp", content=body, headers={**headers, "Mcp-Name": "whoami"})
    return answer.status_code, answer.text, dict(answer.headers)


def refusal(port: int, token: str) -> tuple[int, str]:
    status, text, _ = ask(port, token)
    return status, json.loads(text)["error_description"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_first_scope_that_fits_gives_the_profile_and_no_more(issuer: LocalIssuer, mode: Any) -> None:
    with server_for(issuer.url) as port:
        async with client_of(port, issuer.token(), mode=mode) as reader:
            assert [tool.name for tool in (await reader.list_tools()).tools] == ["whoami"]
            said: Any = await reader.call_tool("whoami", {})
            assert said.content[0].text == f"readers:ann by editor of {issuer.url}"
            with pytest.raises(MCPError) as unknown:
                await reader.call_tool("write", {})
            assert unknown.value.code == types.INVALID_PARAMS
        async with client_of(port, issuer.token(scope="other tools:read tools:write"), mode=mode) as writer:
            said = await writer.call_tool("whoami", {})
            assert said.content[0].text.startswith("writers:ann by editor")
            assert (await writer.call_tool("write", {})).is_error is False
    # One look at the metadata and one at the keys, for all requests.
    assert issuer.asked == [METADATA, "/keys"]


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"aud": "https://other.example.com/mcp"}, 401, "it is for another audience"),
        ({"aud": None}, 401, "it has no aud"),
        ({"iss": "http://127.0.0.1:1"}, 401, "it is of another issuer"),
        ({"exp": int(time.time()) - 60}, 401, "it has expired"),
        ({"exp": None}, 401, "it has no exp"),
        ({"exp": "soon"}, 401, "its signature or its form is wrong"),
        ({"nbf": int(time.time()) + 86_400}, 401, "its time has not come"),
        ({"sub": None}, 401, "it has no sub"),
        ({"sub": ""}, 401, "its subject or its client is no name"),
        ({"sub": "a\n"}, 401, "its subject or its client is no name"),
        ({"sub": "\ud800"}, 401, "its subject or its client is no name"),
        ({"sub": "x" * 256}, 401, "its subject or its client is no name"),
        ({"client_id": {"a": 1}}, 401, "its subject or its client is no name"),
        ({"scope": "tools:other"}, 403, "it needs one of the scopes tools:write, tools:read"),
        ({"scope": None}, 403, "it needs one of the scopes tools:write, tools:read"),
        ({"scope": 5}, 403, "it needs one of the scopes tools:write, tools:read"),
        ({"scope": "tools:readers"}, 403, "it needs one of the scopes tools:write, tools:read"),
    ],
)
def test_a_token_that_does_not_fit_is_refused_with_the_reason(
    issuer: LocalIssuer, changed: dict[str, Any], status: int, said: str
) -> None:
    with server_for(issuer.url) as port:
        assert ask(port, issuer.token())[0] == 200
        found, text, headers = ask(port, issuer.token(**changed))
        assert (found, json.loads(text)["error_description"].removeprefix("the token is not valid here: ")) == (
            status,
            said,
        )
        error = {401: "invalid_token", 403: "insufficient_scope"}[status]
        assert headers["www-authenticate"].startswith(f'Bearer error="{error}", error_description="')
        place = "https://tools.example.com/.well-known/oauth-protected-resource/mcp"
        assert headers["www-authenticate"].endswith(f'resource_metadata="{place}"')


def test_clocks_may_differ_a_little_and_scopes_may_be_a_list(issuer: LocalIssuer) -> None:
    with server_for(issuer.url) as port:
        assert ask(port, issuer.token(exp=int(time.time()) - 5))[0] == 200
        assert ask(port, issuer.token(scope=None, scp=["tools:read"], aud=["https://x.example", AUDIENCE]))[0] == 200


def segment(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_signature_of_another_kind_or_key_is_none(issuer: LocalIssuer) -> None:
    public = issuer.private["first"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    unsigned = f"{segment({'alg': 'none', 'kid': 'first'})}.{segment(issuer.claims())}."
    # PyJWT itself refuses to sign with a public key, so the token is made by hand.
    start = f"{segment({'alg': 'HS256', 'kid': 'first'})}.{segment(issuer.claims())}"
    hmac = jwt.get_algorithm_by_name("HS256")
    mac = base64.urlsafe_b64encode(hmac.sign(start.encode(), pem)).rstrip(b"=").decode()
    good = issuer.token()
    issuer.private["other"] = issuer.private["first"]
    with issuing() as stranger:
        stranger.url = issuer.url
        forged = stranger.token()
    wrong = [unsigned, f"{start}.{mac}", forged, f"{good[:-8]}AAAAAAAA", issuer.token(algorithm="RS512")]
    with server_for(issuer.url) as port:
        for token in wrong:
            assert refusal(port, token) == (401, "the token is not valid here: its signature or its form is wrong")
        assert refusal(port, issuer.token("other"))[1].endswith("its issuer has no such key")
        unnamed = jwt.encode(issuer.claims(), issuer.private["first"], "RS256")
        assert refusal(port, unnamed)[1].endswith("it names no key of its issuer")
        for no_token in ("x", "a.b.c", "..", "é", segment({"alg": "RS256"}) + ".e30.x"[:-1]):
            assert raw(port, bearer(no_token), body=call_body("whoami", {}), name="whoami")[0] == 401
        assert ask(port, good)[0] == 200


def test_a_shared_secret_among_the_keys_signs_nothing(issuer: LocalIssuer) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    issuer.published.append({"kty": "oct", "kid": "shared", "k": encoded, "alg": "HS256"})
    issuer.published.append({"kty": "new", "kid": "unknown"})
    issuer.private["shared"] = secret
    with server_for(issuer.url) as port:
        assert refusal(port, issuer.token("shared", "HS256"))[1].endswith("its issuer has no such key")
        assert ask(port, issuer.token())[0] == 200


@pytest.mark.usefixtures("impatient")
def test_rotated_keys_are_fetched_and_old_ones_count_no_more(issuer: LocalIssuer) -> None:
    with server_for(issuer.url) as port:
        old = issuer.token()
        assert ask(port, old)[0] == 200
        issuer.rotate("second", is_ec=True)
        assert ask(port, issuer.token("second", "ES256"))[0] == 200
        assert refusal(port, old)[1].endswith("its issuer has no such key")


def test_unknown_keys_do_not_make_the_issuer_busy(issuer: LocalIssuer) -> None:
    issuer.private["made up"] = issuer.private["first"]
    with server_for(issuer.url) as port:
        for _ in range(5):
            assert ask(port, issuer.token("made up"))[0] == 401
        assert ask(port, issuer.token())[0] == 200
    assert issuer.asked == [METADATA, "/keys"]


@pytest.mark.usefixtures("impatient")
def test_keys_are_looked_up_again_and_outlive_an_issuer_that_is_down_for_a_while(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_for(issuer.url) as port:
        assert ask(port, issuer.token())[0] == 200
        issuer.pages[METADATA] = (503, b"")
        monkeypatch.setattr(issuer_keys, "KEYS_S", 0.0)
        assert ask(port, issuer.token())[0] == 200
        monkeypatch.setattr(issuer_keys, "KEPT_S", 0.0)
        status, text, headers = ask(port, issuer.token())
        assert (status, headers["retry-after"]) == (503, "5")
        assert f"the issuer cannot be reached: {issuer.url}{METADATA} answers 503" in text
        monkeypatch.undo()


@pytest.mark.usefixtures("impatient")
def test_a_server_starts_without_its_issuer_and_other_clients_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_TOKEN", "ops-1")
    profiles = {**PROFILES, "ops": {"token": "${OPS_TOKEN}", "tools": ["*"]}}
    port_of_issuer = free_port()
    url = f"http://127.0.0.1:{port_of_issuer}"
    made = ClientProfiles(profiles, auth={"issuer": url, "audience": AUDIENCE, "scopes": SCOPES})
    with server_for(url, made) as port:
        with issuing() as elsewhere:
            elsewhere.url = url
            assert refusal(port, elsewhere.token())[0] == 503
        assert ask(port, "ops-1")[0] == 200
        assert raw(port, body=call_body("whoami", {}), name="whoami")[0] == 401
        with issuing(port_of_issuer) as late:
            assert ask(port, late.token())[0] == 200


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (METADATA, b'{"issuer": "https://evil.example", "jwks_uri": "https://evil.example"}', "is of the issuer"),
        (METADATA, b'{"issuer": "URL", "jwks_uri": "http://10.0.0.1/keys"}', "names no keys at https://"),
        (METADATA, b'{"issuer": "URL", "jwks_uri": 5}', "names no keys at https://"),
        (METADATA, b"[" * 5_000, "has no metadata"),
        (METADATA, b"x" * (issuer_keys.DOCUMENT_BYTES + 1), "has more than 262,144 bytes"),
        ("/keys", b"[]", "has no keys at"),
        ("/keys", b'{"keys": 5}', "cannot be used"),
        ("/keys", b'{"keys": [{"kty": "RSA"}]}', "cannot be used"),
    ],
)
def test_an_issuer_that_answers_wrongly_opens_nothing(issuer: LocalIssuer, path: str, body: bytes, said: str) -> None:
    issuer.pages[path] = (200, body.replace(b"URL", issuer.url.encode()))
    with server_for(issuer.url) as port:
        status, text = refusal(port, issuer.token())
        assert status == 503
        assert said in text
        del issuer.pages[path]
        assert ask(port, issuer.token())[0] == 200


def test_clients_find_the_issuer_by_the_metadata_of_the_server(issuer: LocalIssuer) -> None:
    with server_for(issuer.url) as port:
        page = f"http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp"
        found = httpx2.get(page, headers={"Host": "tools.example.com"})
        assert found.json() == {
            "resource": AUDIENCE,
            "authorization_servers": [issuer.url],
            "scopes_supported": ["tools:write", "tools:read"],
            "bearer_methods_supported": ["header"],
        }


async def test_a_session_does_not_outlive_the_scope_that_opened_it(issuer: LocalIssuer) -> None:
    """A session that began with more would go on with more."""
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
    headers = {"Accept": "application/json, text/event-stream"}
    with server_for(issuer.url) as port:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as http:
            tokens = [issuer.token(scope=scope) for scope in ("tools:write", "tools:read")]
            opened = await http.post("/mcp", json=message, headers=dict([bearer(tokens[0])]))
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            sent = [await http.post("/mcp", json=ping, headers={**session, **dict([bearer(one)])}) for one in tokens]
    assert [answer.status_code for answer in sent] == [200, 404]


def test_what_scopes_give_may_change_and_the_issuer_may_not(issuer: LocalIssuer) -> None:
    auth = {"issuer": issuer.url, "audience": AUDIENCE, "scopes": SCOPES}
    profiles = ClientProfiles(PROFILES, auth=auth)
    with server_for(issuer.url, profiles) as port:
        assert ask(port, issuer.token())[0] == 200
        both = {**PROFILES, "readers": {"token": "sha256:" + "1" * 64, "tools": ["*"]}}
        profiles.update(both, auth={**auth, "scopes": {"tools:write": "writers"}})
        assert ask(port, issuer.token())[0] == 403
        for changed in ({**auth, "issuer": "https://other.example.com"}, {**auth, "audience": "https://x.example"}):
            with pytest.raises(ConfigurationError, match="restart the server"):
                profiles.update(PROFILES, auth=changed)
        with pytest.raises(ConfigurationError, match="write a name, and its 'token' and 'tools'"):
            profiles.update(PROFILES)
        assert ask(port, issuer.token(scope="tools:write"))[0] == 200


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": None}, "auth.issuer: write the URL, such as https://login.example.com"),
        ({"issuer": "http://login.example.com"}, "auth.issuer: 'http://login.example.com' is not a URL for tokens"),
        ({"issuer": "https://a@b"}, "auth.issuer: 'https://a@b' is not a URL for tokens"),
        ({"issuer": "https://x:99999"}, "auth.issuer: 'https://x:99999' is not a URL for tokens"),
        ({"audience": "api"}, "auth.audience: 'api' is not a URL for tokens"),
        ({"scopes": {}}, "auth.scopes is empty"),
        ({"scopes": ["x"]}, "auth.scopes: write a table such as"),
        ({"scopes": {"a b": "readers"}}, "auth.scopes.a b: 'a b' is not a scope"),
        ({"scopes": {"a": "nobody"}}, "auth.scopes.a: there is no profile 'nobody': write one of "),
        ({"scopes": {"a": "x:y"}}, "auth.scopes.a: the name of the profile 'x:y' has a colon: rename it"),
        ({"algorithms": ["HS256"]}, "auth.algorithms is not known: write issuer, audience, scopes"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(changed: dict[str, Any], why: str, tmp_path: Path) -> None:
    auth = {"issuer": "https://login.example.com", "audience": AUDIENCE, "scopes": SCOPES, **changed}
    profiles = {**PROFILES, "x:y": {**PROFILES["ops"], "token": "sha256:" + "1" * 64}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {}, "profiles": profiles, "auth": auth}))
    with pytest.raises(ConfigurationError) as refused:
        ClientProfiles(config)
    assert str(refused.value).startswith(f"{config}: {why}")
    ended = run_here("serve", "--http", "0", "--config", str(config))
    assert (ended.code, f"toolwire: {config}: {why}" in ended.stderr) == (2, True)


def test_a_file_with_an_issuer_and_no_profiles_is_refused(tmp_path: Path) -> None:
    auth = {"issuer": "https://login.example.com", "audience": AUDIENCE, "scopes": SCOPES}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {}, "auth": auth}))
    with pytest.raises(ConfigurationError, match="there is no profile 'writers'"):
        ClientProfiles(config)
