"""One client of a server does not shut out the others: it has a share of the sessions, forms, streams and news."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from mcp import Client
from tests.gateway.served_tools import new_registry
from tests.gateway.serving import serving
from tests.gateway.test_asking_clients import Person, chose, told
from tests.gateway.test_limits import initialize
from tests.gateway.test_waiting_calls import unanswered
from tests.gateway.upstream_server import NOTE, Upstream
from tests.patience import PATIENCE_S
from toolwire import ConfigurationError, ToolRegistry, ToolServer
from toolwire.gateway.clients import owner_of


class Names:
    """Takes each token for the name of its principal."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="editor", subject=token, scopes=[])


@contextmanager
def served(folder: Path, registry: ToolRegistry | None = None, **options: Any) -> Generator[str]:
    made = new_registry() if registry is None else registry
    verifier = None if "token" in options else Names()
    server = ToolServer(made, "tests", store=f"sqlite:///{folder}/runs.db", token_verifier=verifier, **options)
    with serving(server.asgi()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


def http_of(name: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {name}"}, timeout=PATIENCE_S)


@asynccontextmanager
async def client_of(url: str, name: str, **options: Any) -> AsyncGenerator[Client]:
    async with http_of(name) as http, Client(streamable_http_client(url, http_client=http), **options) as client:
        yield client


async def test_one_principal_cannot_open_all_sessions(tmp_path: Path) -> None:
    with served(tmp_path, sessions=4) as url:
        async with http_of("mallory") as mallory, http_of("ann") as ann:
            opened = [await initialize(mallory, url) for _ in range(4)]
            assert (await initialize(ann, url)).status_code == 200
            assert [one.status_code for one in opened] == [200, 503, 503, 503]
            assert opened[1].text == "1 session of this client is open on this server already."
            # One that has ended makes room.
            await mallory.delete(url, headers={"mcp-session-id": opened[0].headers["mcp-session-id"]})
            assert (await initialize(mallory, url)).status_code == 200


async def test_a_refused_opening_takes_no_place_for_longer(tmp_path: Path) -> None:
    with served(tmp_path, sessions=4) as url:
        async with http_of("ann") as ann:
            for _ in range(3):
                assert (await ann.post(url, json={"no": "message"})).status_code == 400
            assert (await initialize(ann, url)).status_code == 200


async def test_clients_with_the_one_token_share_by_address(tmp_path: Path) -> None:
    with served(tmp_path, sessions=4, token="the-token") as url:
        async with http_of("the-token") as one:
            assert [(await initialize(one, url)).status_code for _ in range(2)] == [200, 503]


async def test_forms_of_one_principal_do_not_keep_others_from_theirs(tmp_path: Path) -> None:
    record, person = tmp_path / "record", Person(chose("once"))
    with served(tmp_path, waiting=4) as url:
        async with (
            unanswered(url, tmp_path / "other", 1, token="mallory"),
            client_of(url, "mallory", mode="legacy", elicitation_callback=Person()) as mallory,
            client_of(url, "ann", mode="legacy", elicitation_callback=person) as ann,
        ):
            arguments = {"amount": 5, "record": str(record)}
            assert told(await mallory.call_tool("pay", arguments))[0] == "approval_required"
            assert told(await ann.call_tool("pay", arguments)) == ("success", "paid 5")
    assert len(person.forms) == 1


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry()
    made.register_mcp_client(Upstream().client("notes"))
    yield made
    made.close()


async def test_one_principal_cannot_have_all_subscriptions_of_a_server(tmp_path: Path, registry: ToolRegistry) -> None:
    many = [f"notes+note://{number}" for number in range(1_000)]
    with served(tmp_path, registry) as url:
        async with client_of(url, "mallory") as mallory, client_of(url, "ann") as ann:
            async with mallory.listen(resource_subscriptions=many) as hers:
                async with ann.listen(resource_subscriptions=[f"notes+{NOTE}"]) as his:
                    assert his.honored.resource_subscriptions == [f"notes+{NOTE}"]
                assert len(hers.honored.resource_subscriptions or []) == 250
            # What has ended makes room. The end of a stream reaches the server later.
            with anyio.fail_after(PATIENCE_S):
                while True:
                    async with mallory.listen(resource_subscriptions=[f"notes+{NOTE}"]) as again:
                        if again.honored.resource_subscriptions:
                            break


async def test_one_principal_cannot_have_all_streams(tmp_path: Path, registry: ToolRegistry) -> None:
    with served(tmp_path, registry, share=0.001, connections=100_000) as url:
        async with AsyncExitStack() as stack:
            mallory = await stack.enter_async_context(client_of(url, "mallory"))
            ann = await stack.enter_async_context(client_of(url, "ann"))
            await stack.enter_async_context(mallory.listen(tools_list_changed=True))
            with pytest.raises(MCPError, match="1 stream of this client is open"):
                await stack.enter_async_context(mallory.listen(tools_list_changed=True))
            await stack.enter_async_context(ann.listen(tools_list_changed=True))


async def test_a_uri_and_a_name_have_a_length(registry: ToolRegistry) -> None:
    server = ToolServer(registry, "tests").in_memory()
    async with Client(server) as client:
        assert len((await client.read_resource("notes+note://".ljust(8_192, "x"))).contents) == 1
        with pytest.raises(MCPError, match="longer than 8,192"):
            await client.read_resource("notes+note://".ljust(8_193, "x"))
        for length, said in ((1_024, "Unknown prompt"), (1_025, "longer than 1,024")):
            with pytest.raises(MCPError, match=said):
                await client.get_prompt("x" * length)
        for length in (1_024, 1_025):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("x" * length)
    async with Client(server, mode="legacy") as client:
        params = types.SubscribeRequestParams(uri="notes+note://".ljust(8_193, "x"))
        with pytest.raises(MCPError, match="longer than 8,192"):
            await client.session.send_request(types.SubscribeRequest(params=params), types.EmptyResult)


def test_a_client_is_its_principal_or_else_its_network() -> None:
    def at(host: str) -> Request:
        return Request({"type": "http", "client": (host, 1)})

    assert owner_of(at("10.0.0.5")) == "address 10.0.0.5"
    assert owner_of(at("2001:db8::1")) == owner_of(at("2001:db8::ffff:2")) == "address 2001:db8::/64"
    assert owner_of(at("2001:db8:0:1::1")) != owner_of(at("2001:db8::1"))
    assert (owner_of(None), owner_of(Request({"type": "http", "client": None}))) == (None, None)
    token = AccessToken(token="t", client_id="editor", subject="ann", scopes=[], claims={"iss": "here"})
    before = auth_context_var.set(AuthenticatedUser(token))
    try:
        assert owner_of(at("10.0.0.5")) == "principal here ann"
    finally:
        auth_context_var.reset(before)


def test_a_share_is_at_most_all() -> None:
    with pytest.raises(ConfigurationError, match=r"share=1\.5"):
        ToolServer(new_registry(), "tests", share=1.5)
