"""Bearer tokens: who may call, under which caller, and that a token goes no further."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.conftest import Served
from tests.gateway.served_tools import new_registry
from tests.gateway.serving import call_body, raw, serving
from tests.gateway.test_states import INVALID, never, said, waiting
from toolwire import CallContext, ConfigurationError, MCPClient, ToolRegistry, ToolServer

RESOURCE = "https://tools.example.com/mcp"
SETTINGS: dict[str, Any] = {
    "issuer_url": "https://issuer.example.com",
    "resource_server_url": RESOURCE,
    "required_scopes": ["call"],
    "validate_token_resource": True,
}


class Verifier:
    """Knows three people, and a token that was issued for another server."""

    async def verify_token(self, token: str) -> AccessToken | None:
        known: dict[str, dict[str, Any]] = {
            "ann-1": {"subject": "ann"},
            "bob-1": {"subject": "bob"},
            "no-scope": {"subject": "cid", "scopes": []},
            "elsewhere": {"subject": "ann", "resource": "https://other.example.com/mcp"},
            "expired": {"subject": "ann", "expires_at": 1},
        }
        if token not in known:
            return None
        common: dict[str, Any] = {"client_id": "editor", "scopes": ["call"], "resource": RESOURCE}
        return AccessToken(token=token, **{**common, **known[token]})


def whoami(context: CallContext) -> str:
    """Shows the caller."""
    caller = context.caller
    return f"{caller.principal}/{caller.agent}"


@contextmanager
def verified(folder: Path) -> Generator[int]:
    registry = new_registry()
    registry.register(whoami)
    server = ToolServer(
        registry,
        "tests",
        store=f"sqlite:///{folder}/runs.db",
        token_verifier=Verifier(),
        auth=AuthSettings(**SETTINGS),
    )
    with serving(server.asgi()) as port:
        yield port


def bearer(token: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {token}")


@asynccontextmanager
async def client_of(port: int, token: str, **options: Any) -> AsyncGenerator[Client]:
    async with httpx2.AsyncClient(headers=dict([bearer(token)])) as http:
        server = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(server, **options) as client:
            yield client


def test_one_token_opens_the_server_and_nothing_else_does() -> None:
    server = ToolServer(new_registry(), "tests", token="the-token")
    with serving(server.asgi()) as port:
        assert raw(port, bearer("the-token"))[0] == 200
        for header in [("X", "y"), bearer("the-toke"), bearer("the-token2"), bearer(""), bearer("thé-token")]:
            assert raw(port, header)[0] == 401
        assert raw(port, ("Authorization", "Basic the-token"))[0] == 401
        assert raw(port, bearer("the-token"), bearer("other"))[0] == 400


def test_the_command_takes_the_token_from_a_variable(served: Callable[..., Served]) -> None:
    server = served("--token-env", "SERVE_TOKEN", env={"SERVE_TOKEN": "the-token"})
    assert (raw(server.port)[0], raw(server.port, bearer("the-token"))[0]) == (401, 200)


def test_a_verifier_decides_with_the_scopes_the_resource_and_the_time(tmp_path: Path) -> None:
    with verified(tmp_path) as port:
        found = {token: raw(port, bearer(token))[0] for token in ("ann-1", "no-scope", "elsewhere", "expired", "x")}
    assert found == {"ann-1": 200, "no-scope": 403, "elsewhere": 401, "expired": 401, "x": 401}


def test_the_metadata_of_the_resource_name_its_issuer(tmp_path: Path) -> None:
    with verified(tmp_path) as port:
        found = httpx2.get(f"http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp").json()
        refused = httpx2.post(f"http://127.0.0.1:{port}/mcp", json={})
    assert (found["resource"], found["authorization_servers"]) == (RESOURCE, ["https://issuer.example.com"])
    metadata = "https://tools.example.com/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{metadata}"' in refused.headers["www-authenticate"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_has_the_caller_of_its_token(tmp_path: Path, mode: Any) -> None:
    with verified(tmp_path) as port:
        for token, caller in (("ann-1", "ann/editor"), ("bob-1", "bob/editor")):
            async with client_of(port, token, mode=mode) as client:
                assert said(await client.call_tool("whoami")) == caller


async def test_a_state_of_another_principal_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with verified(tmp_path) as port:
        async with (
            client_of(port, "ann-1", elicitation_callback=never) as ann,
            client_of(port, "bob-1", elicitation_callback=never) as bob,
        ):
            call = await waiting(ann, record)
            assert await call.refused(client=bob) == INVALID
            assert not record.exists()
            assert said(await call.send()) == "paid 5"


async def test_a_session_of_another_principal_is_not_found(tmp_path: Path) -> None:
    with verified(tmp_path) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"}) as http:
            start = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"},
            }
            message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
            opened = await http.post(url, json=message, headers=dict([bearer("ann-1")]))
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            found = [
                (await http.post(url, json=ping, headers={**session, **dict([bearer(token)])})).status_code
                for token in ("ann-1", "bob-1")
            ]
    assert found == [200, 404]


async def test_a_token_is_never_sent_on() -> None:
    """A tool of an upstream server is called for a client with a token, and the upstream sees no such token."""
    seen: list[dict[bytes, bytes]] = []
    upstream = ToolServer(new_registry(), "upstream").asgi()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]))
        await upstream(scope, receive, send)

    with serving(watched) as upstream_port:
        registry = ToolRegistry()
        client = MCPClient.http("up", f"http://127.0.0.1:{upstream_port}/mcp")
        registry.register_mcp_client(client, permission="auto")
        with serving(ToolServer(registry, "tests", token="the-token").asgi()) as port:
            async with client_of(port, "the-token") as sdk:
                assert (await sdk.call_tool("up_add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        registry.close()
    assert len(seen) > 2
    assert [headers for headers in seen if b"authorization" in headers] == []
    assert "the-token" not in json.dumps([{str(name): str(value) for name, value in one.items()} for one in seen])


async def test_a_tool_that_a_caller_may_not_see_is_unknown_to_it(tmp_path: Path) -> None:
    registry = ToolRegistry(visible=lambda tool, caller: tool != "pay" or caller.principal == "ann")
    registry.register(new_registry().to_toolspecs()["pay"])
    registry.register(new_registry().to_toolspecs()["add"])
    server = ToolServer(registry, "tests", token_verifier=Verifier(), auth=AuthSettings(**SETTINGS))
    with serving(server.asgi()) as port:
        async with client_of(port, "ann-1") as ann, client_of(port, "bob-1") as bob:
            lists = [[tool.name for tool in (await one.list_tools()).tools] for one in (ann, bob)]
            with pytest.raises(MCPError) as error:
                await bob.call_tool("pay", {"amount": 1, "record": str(tmp_path / "record")})
    assert lists == [["pay", "add"], ["add"]]
    assert error.value.code == types.INVALID_PARAMS


def test_headers_are_not_compared_with_the_schema_of_a_tool_that_the_caller_may_not_see(tmp_path: Path) -> None:
    """The answer would show that the tool is there."""
    registry = ToolRegistry(visible=lambda tool, caller: caller.principal == "ann")
    registry.register(new_registry().to_toolspecs()["files/hard"], "hard")
    server = ToolServer(registry, "tests", token_verifier=Verifier(), auth=AuthSettings(**SETTINGS))
    body = call_body("hard", {"kind": "a"})
    with serving(server.asgi()) as port:
        answers = [json.loads(raw(port, bearer(one), body=body, name="hard")[1]) for one in ("ann-1", "bob-1")]
    assert [answer["error"]["code"] for answer in answers] == [types.HEADER_MISMATCH, types.INVALID_PARAMS]


@pytest.mark.parametrize(
    "settings",
    [
        {"token": ""},
        {"token": "x", "token_verifier": Verifier()},
        {"auth": AuthSettings(**SETTINGS)},
        {"hosts": "example.com"},
        {"calls": 0},
        {"drain_s": float("inf")},
    ],
)
def test_settings_that_contradict_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ToolServer([], "tests", **settings)
