"""Logins and tokens, with a real authorization server on a port of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from tests.architecture.source import ROOT
from tests.mcp.client.authorization_server import Protected, browser
from tests.patience import PATIENCE_S
from toolwire import MCPClient, McpCredentials, McpLogin, ServerUnavailable, ToolRegistry

FORKED = """
import asyncio, json, os, sys
import httpx2
from toolwire.mcp.oauth.authorization import endpoint_of
from toolwire.mcp.client_limits import ClientLimits
from toolwire.mcp.oauth.token_auth import token_auth

async def ask(url):
    endpoint = endpoint_of("http", url, None, "oauth", ClientLimits())
    async with token_auth(endpoint, "", httpx2.AsyncClient()) as auth, httpx2.AsyncClient(auth=auth) as client:
        return (await client.get(url)).status_code

go, start = os.pipe()
children = []
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        os.read(go, 1)
        os._exit(asyncio.run(ask(sys.argv[1])) - 400)
    children.append(child)
os.write(start, b"x" * len(children))
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.fixture
def client(protected: Protected) -> Generator[MCPClient]:
    with_login = MCPClient.http("issues", protected.url, auth="oauth")
    yield with_login
    with_login.close()


def kept(protected: Protected, tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "toolwire" / "mcp-tokens.json").read_text())["servers"][protected.url]


def registered(client: MCPClient) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_mcp_client(client, permission="auto")
    return registry


def added(registry: ToolRegistry) -> Any:
    result = registry.invoke("issues/add", {"a": 1, "b": 2})
    return result.data if result.failure is None else (result.failure.kind, result.error)


def command(protected: Protected) -> str:
    return f"the server asks for a login. Run: toolwire mcp login {protected.url}"


def test_a_login_gives_a_token_that_later_clients_use(client: MCPClient, protected: Protected) -> None:
    client.login(browser)
    assert added(registered(client)) == {"sum": 3}
    with MCPClient.http("issues", protected.url, auth=McpLogin()) as later:
        assert added(registered(later)) == {"sum": 3}
    assert (protected.count("authorization_code"), protected.count("refresh_token")) == (1, 0)


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
def test_a_login_without_pkce_is_refused_by_name(
    client: MCPClient, protected: Protected, methods: list[str] | None
) -> None:
    protected.pkce_methods = methods
    opened: list[str] = []
    with pytest.raises(ServerUnavailable) as refused:
        client.login(opened.append)
    assert str(refused.value) == (
        f"the login at {protected.url} failed: the authorization server {protected.issuer}/ does not support PKCE with "
        'S256: its metadata need "code_challenge_methods_supported": ["S256"]'
    )
    assert opened == []
    protected.pkce_methods = ["plain", "S256"]
    client.login(browser)


def test_the_tokens_are_in_a_file_that_no_other_user_reads(client: MCPClient, tmp_path: Path) -> None:
    client.login(browser)
    folder = tmp_path / "toolwire"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_file_that_another_user_reads_is_refused(client: MCPClient, tmp_path: Path) -> None:
    client.login(browser)
    path = tmp_path / "toolwire" / "mcp-tokens.json"
    path.chmod(0o640)
    with pytest.raises(ServerUnavailable) as refused:
        client.connect()
    assert str(refused.value) == (
        f"the MCP server 'issues' cannot be used: '{path}' holds tokens, and another user may read it: chmod 600 {path}"
    )
    path.chmod(0o600)
    client.connect()


def test_without_a_login_a_call_is_unavailable_and_names_the_command(client: MCPClient, protected: Protected) -> None:
    client.login(browser)
    registry = registered(client)
    protected.access.clear()
    protected.refresh.clear()
    assert added(registry) == ("unavailable", f"'issues/add' was not sent: {command(protected)}")
    client.close()
    seen = len(protected.at_authorization)
    assert added(registry) == (
        "unavailable",
        f"'issues/add' was not sent: the MCP server 'issues' cannot be used: {command(protected)}",
    )
    # Neither a page nor a registration is asked for without a person, and a dead refresh token only once.
    assert len(protected.at_authorization) == seen


def test_a_login_elsewhere_counts_at_the_next_call(client: MCPClient, protected: Protected) -> None:
    with pytest.raises(ServerUnavailable) as refused:
        client.connect()
    assert str(refused.value) == f"the MCP server 'issues' cannot be used: {command(protected)}"
    MCPClient.http("other", protected.url, auth="oauth").login(browser)
    assert added(registered(client)) == {"sum": 3}


async def test_calls_at_once_renew_an_expired_token_once(client: MCPClient, protected: Protected) -> None:
    await asyncio.to_thread(client.login, browser)
    registry = await asyncio.to_thread(registered, client)
    protected.access.clear()
    results = await asyncio.gather(*(registry.ainvoke("issues/add", {"a": n, "b": 0}) for n in range(20)))
    assert [result.data for result in results] == [{"sum": n} for n in range(20)]
    assert protected.count("refresh_token") == 1


def test_an_expired_token_is_renewed_before_it_is_sent(client: MCPClient, protected: Protected) -> None:
    protected.life_s = -1
    client.login(browser)
    protected.life_s = None
    at_first = len(protected.at_server)
    client.connect()
    assert protected.count("refresh_token") == 1
    (token,) = {seen.headers.get("authorization") for seen in protected.at_server[at_first:]}
    assert token is not None


def test_processes_renew_a_token_once(client: MCPClient, protected: Protected, whole: bool) -> None:
    processes = 32 if whole else 4
    client.login(browser)
    protected.access.clear()
    # The first renewal is under way when the last process is refused.
    protected.asks_first = len(protected.at_server) + processes
    shown = subprocess.run(
        [sys.executable, "-c", FORKED, protected.url, str(processes)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
    )
    # The server refuses a GET without a session by 400, after it has accepted the token.
    assert (shown.stdout, protected.count("refresh_token")) == (f"{[0] * processes}\n", 1)
    assert len(protected.access) == 1


def test_a_refresh_token_outlives_an_authorization_server_that_is_down(
    client: MCPClient, protected: Protected, tmp_path: Path
) -> None:
    client.login(browser)
    registry = registered(client)
    protected.access.clear()
    protected.is_down = True
    told = "'issues/add' was not sent: the authorization server 127.0.0.1 cannot answer now: 503"
    assert added(registry) == ("unavailable", told)
    protected.is_down = False
    assert added(registry) == {"sum": 3}


def test_a_refresh_that_is_refused_is_not_tried_again(client: MCPClient, protected: Protected, tmp_path: Path) -> None:
    client.login(browser)
    registry = registered(client)
    protected.access.clear()
    protected.refresh.clear()
    assert [added(registry)[0] for _ in range(3)] == ["unavailable"] * 3
    assert protected.count("refresh_token") == 1
    assert kept(protected, tmp_path)["tokens"] is None
    client.login(browser)
    assert added(registry) == {"sum": 3}
    # The registration of this client still counts.
    assert len(protected.clients) == 1


def test_a_server_that_wants_another_scope_gets_it_by_the_next_login(client: MCPClient, protected: Protected) -> None:
    protected.life_s = 3600
    client.login(browser)
    registry = registered(client)
    for token in protected.access.values():
        token.scopes = ["read"]
    protected.wanted_scope = "write"
    assert added(registry) == ("unavailable", f"'issues/add' was not sent: {command(protected)}")
    client.login(browser)
    assert added(registry) == {"sum": 3}
    assert protected.count("refresh_token") == 0


def test_a_registration_does_not_choose_the_port_of_the_next_login(client: MCPClient, protected: Protected) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        protected.registers_first = f"http://127.0.0.1:{other.getsockname()[1]}/callback"
    client.login(browser)
    client.login(browser)
    pages = [parse_qs(seen.query) for seen in protected.at_authorization if seen.path == "/authorize"]
    first, second = (page["redirect_uri"][0] for page in pages)
    # The port of the first login is free again: the registration counts for the second.
    assert (first == second, second != protected.registers_first, len(protected.clients)) == (True, True, 1)


def test_a_person_who_refuses_ends_the_login(client: MCPClient, protected: Protected) -> None:
    protected.denies = True
    with pytest.raises(ServerUnavailable) as refused:
        client.login(browser)
    assert str(refused.value) == (
        f"the login at {protected.url} failed: it was refused: access_denied: the person said no"
    )


def test_a_server_that_asks_for_no_login_is_told(protected: Protected) -> None:
    client = MCPClient.http("issues", f"{protected.issuer}/nothing", auth="oauth")
    with pytest.raises(ServerUnavailable) as refused:
        client.login(browser)
    assert str(refused.value) == (
        f"the login at {protected.issuer}/nothing failed: the server asks for no login: it answered 404"
    )


@pytest.mark.parametrize("transport", [MCPClient.http, MCPClient.sse])
def test_a_server_that_is_down_is_told(transport: Callable[..., MCPClient]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    with pytest.raises(ServerUnavailable) as refused:
        transport("issues", url, auth="oauth").login(browser)
    assert str(refused.value) == (
        f"the login at {url} failed: the server does not answer: All connection attempts failed"
    )


def test_only_the_page_of_the_login_itself_ends_it(client: MCPClient, protected: Protected) -> None:
    answers = list[int]()

    def attacked(address: str) -> None:
        callback = httpx2.URL(address).params["redirect_uri"]
        for forged in ("?code=evil&state=guessed", "?code=evil", "/other?code=evil", "?error=x&state=guessed"):
            answers.append(httpx2.get(f"{callback}{forged}").status_code)
        # The control: the same request with the secret of this login is taken.
        browser(address)

    client.login(attacked)
    assert answers == [400, 400, 400, 400]
    assert added(registered(client)) == {"sum": 3}


def test_client_credentials_need_no_person(protected: Protected) -> None:
    auth = McpCredentials(client_id="program", client_secret="s3cret", issuer=f"{protected.issuer}/")
    with MCPClient.http("issues", protected.url, auth=auth) as client:
        registry = registered(client)
        assert (added(registry), protected.count("client_credentials")) == ({"sum": 3}, 1)
        protected.access.clear()
        assert (added(registry), protected.count("client_credentials")) == ({"sum": 3}, 2)
