"""A server of the public internet cannot have a login send requests into a private network."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable

import httpx2
import pytest

from tests.mcp.client.authorization_server import Protected, browser
from tests.patience import PATIENCE_S
from toolwire import MCPClient, ServerUnavailable
from toolwire.builtin.web import addresses, guard
from toolwire.mcp.oauth import authorization_network
from toolwire.mcp.oauth.authorization_network import AuthorizationNetwork
from toolwire.mcp.oauth.granting import AuthorizationFailed

SERVER = "https://tools.example.com/mcp"
FORMS = ["10.0.0.5", "192.168.1.1", "169.254.169.254", "127.0.0.1", "[::1]", "[::ffff:10.0.0.5]", "[fd00::1]"]


class Stream:
    """The connection of an answer, at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return self._address, 443


class Wire(httpx2.AsyncBaseTransport):
    """Answers each request, and keeps its URL. The MCP server is at `address`."""

    def __init__(self, address: str) -> None:
        self._address, self.asked = address, list[str]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.method} {request.url}")
        return httpx2.Response(200, extensions={"network_stream": Stream(self._address)})


async def found(host: str, _: int) -> Iterable[str]:
    """Resolves an address as itself, and each name to a private one."""
    return [host if host[0].isdigit() or ":" in host else "10.0.0.9"]


def network(wire: Wire) -> AuthorizationNetwork:
    return AuthorizationNetwork(SERVER, wire, guard.GuardedTransport(resolve=found))


@pytest.mark.parametrize("host", [*FORMS, "vault.internal"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_public_server_leads_to_no_private_host_and_a_private_one_does(host: str, method: str) -> None:
    request = httpx2.Request(method, f"https://{host}/token")
    public, private = Wire("93.184.216.34"), Wire("10.0.0.7")
    with pytest.raises(AuthorizationFailed, match=r"is not on the public internet, and the MCP server tools"):
        await network(public).handle_async_request(request)
    assert public.asked == ["HEAD https://tools.example.com/.well-known/oauth-protected-resource/mcp"]
    await network(private).handle_async_request(request)
    assert private.asked[1:] == [f"{method} https://{host}/token"]


async def test_the_server_itself_is_asked_at_any_address() -> None:
    wire = Wire("93.184.216.34")
    await network(wire).handle_async_request(httpx2.Request("GET", "https://tools.example.com/.well-known/x"))
    assert wire.asked == ["GET https://tools.example.com/.well-known/x"]


async def test_a_host_without_an_address_does_not_answer() -> None:
    async def nothing(host: str, port: int) -> Iterable[str]:
        return []

    wire = Wire("93.184.216.34")
    made = AuthorizationNetwork(SERVER, wire, guard.GuardedTransport(resolve=nothing))
    with pytest.raises(httpx2.TransportError, match="is not known"):
        await made.handle_async_request(httpx2.Request("GET", "https://auth.example.com/"))
    assert wire.asked == []


@pytest.mark.parametrize("is_attack", [True, False])
def test_a_login_at_a_public_server_connects_to_no_private_host(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, is_attack: bool
) -> None:
    if is_attack:

        def why_not(address: str) -> str | None:
            return None if address == "127.0.0.1" else addresses.why_not(address)

        # This machine's address counts as public, so that the server has a public one.
        monkeypatch.setattr(authorization_network, "why_not", why_not)
        monkeypatch.setattr(guard, "why_not", why_not)
    reached = threading.Event()

    def accept() -> None:
        with contextlib.suppress(OSError):
            inside.accept()[0].close()
            reached.set()

    with socket.create_server(("127.0.0.2", 0)) as inside:
        thread = threading.Thread(target=accept)
        thread.start()
        protected.named_issuer = f"https://127.0.0.2:{inside.getsockname()[1]}"
        client = MCPClient.http("issues", protected.url, auth="oauth")
        with pytest.raises(ServerUnavailable) as refused:
            client.login(browser)
        # It wakes a thread that waits for a connection.
        inside.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)
    assert reached.is_set() is not is_attack
    assert ("is not on the public internet" in str(refused.value)) is is_attack


async def test_a_public_host_is_asked_through_the_guard(protected: Protected) -> None:
    host, port = protected.issuer.removeprefix("http://").split(":")
    allowed = guard.GuardedTransport(allow=[(host, int(port))])
    wire = Wire("93.184.216.34")
    async with httpx2.AsyncClient(transport=AuthorizationNetwork(SERVER, wire, allowed)) as client:
        answer = await client.get(f"{protected.issuer}/.well-known/oauth-authorization-server")
    assert (answer.json()["issuer"], wire.asked) == (f"{protected.issuer}/", [])
