"""A result is sent once where the client's protocol lets it, and no client loses anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp import Client
from tests.gateway.conftest import Era
from tests.gateway.serving import call_body, raw, serving
from tests.patience import PATIENCE_S
from toolwire import MCPClient, ToolRegistry, ToolServer

LENGTH = 100_000
ENVELOPE_BYTES = 400
"""Bytes around a result: its members, and the members of the message."""


def page() -> str:
    """Gives a long text."""
    return "x" * LENGTH


def size() -> dict[str, int]:
    """Gives an object."""
    return {"bytes": LENGTH}


def pages() -> list[str]:
    """Gives a list."""
    return ["x"]


@pytest.fixture
def port() -> Iterator[int]:
    with serving(ToolServer([page, size, pages], "books").asgi()) as found:
        yield found


class Handshake:
    """A client of one handshake protocol, byte by byte."""

    def __init__(self, port: int, version: str) -> None:
        self._url, self._headers = f"http://127.0.0.1:{port}/mcp", {"Accept": "application/json, text/event-stream"}
        who = {"name": "old", "version": "1"}
        started = self._post("initialize", protocolVersion=version, capabilities={}, clientInfo=who)
        self._headers |= {"Mcp-Session-Id": started.headers["mcp-session-id"], "MCP-Protocol-Version": version}

    def request(self, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
        """Returns the bytes of the answer, and its result."""
        answer = self._post(method, **params)
        return len(answer.content), json.loads(answer.text.partition("data: ")[2])["result"]

    def _post(self, method: str, **params: Any) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx2.post(self._url, json=message, headers=self._headers, timeout=PATIENCE_S)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_a_text_is_sent_once(port: int, version: str) -> None:
    bytes_sent, result = Handshake(port, version).request("tools/call", name="page", arguments={})
    assert result == {"content": [{"type": "text", "text": "x" * LENGTH}], "isError": False}
    assert LENGTH < bytes_sent < LENGTH + ENVELOPE_BYTES


def test_a_text_is_sent_once_by_the_later_protocol(port: int) -> None:
    status, body = raw(port, body=call_body("page", {}), name="page")
    assert (status, LENGTH < len(body) < LENGTH + ENVELOPE_BYTES) == (200, True)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_structured_content_is_for_protocols_that_have_it_and_the_text_for_all(port: int, version: str) -> None:
    client = Handshake(port, version)
    _, result = client.request("tools/call", name="size", arguments={})
    _, listed = client.request("tools/list")
    is_known = version >= "2025-06-18"
    assert result["content"] == [{"type": "text", "text": '{"bytes": 100000}'}]
    assert result.get("structuredContent") == ({"bytes": LENGTH} if is_known else None)
    with_schema = [tool["name"] for tool in listed["tools"] if "outputSchema" in tool]
    assert with_schema == (["size", "pages"] if is_known else [])


async def test_the_sdks_client_takes_both(era: Era) -> None:
    async with Client(ToolServer([page, size, pages], "books").in_memory(), mode=era) as client:
        # It checks results against the output schemas of the list.
        await client.list_tools()
        found = await client.call_tool("page", {})
        assert (found.structured_content, len(found.content)) == (None, 1)
        assert (await client.call_tool("size", {})).structured_content == {"bytes": LENGTH}
        assert (await client.call_tool("pages", {})).structured_content == {"result": ["x"]}


def test_a_program_behind_our_own_client_gets_the_text_itself() -> None:
    registry = ToolRegistry(rules=[{"tool": "books/*", "effect": "auto"}])
    registry.register_mcp_client(MCPClient.in_memory("books", ToolServer([page, size, pages], "books").in_memory()))
    try:
        ran = registry.run_program("[len(books_page()), books_size(), books_pages()]")
        assert (ran.status, ran.value) == ("finished", [LENGTH, {"bytes": LENGTH}, {"result": ["x"]}]), ran
    finally:
        registry.close()
