"""Requests that a page of another origin makes a browser send, and requests with two readings, call nothing."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.gateway.serving import raw, serving
from toolwire import ToolServer
from toolwire.gateway.http.header_guard import HttpGuard

ran: list[int] = []


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    ran.append(a)
    return a + b


@pytest.fixture
def port() -> Generator[int]:
    ran.clear()
    server = ToolServer(
        [add], "tests", hosts=["tools.example.com", "10.0.0.5:8000"], origins=["https://app.example.com"]
    )
    with serving(server.asgi()) as port:
        yield port


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8000"),
        *("tools.example.com", "tools.example.com:443", "10.0.0.5:8000"),
    ],
)
def test_a_host_of_the_server_is_served(port: int, host: str) -> None:
    assert raw(port, host=host)[0] == 200
    assert ran == [1]


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost"),
        *("localhost:evil", "localhost:80@evil.example", "localhost:80.evil.example", "evil.example#localhost"),
        *("localhost:99999", "localhost:", "localhost.", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"),
        *(
            "::1",
            "[::1].evil.example",
            "10.0.0.5",
            "10.0.0.5:8001",
            "user@localhost",
            "*",
            "localhost,evil.example",
            "",
        ),
    ],
)
def test_any_other_host_is_refused(port: int, host: str) -> None:
    assert (raw(port, host=host)[0] in (400, 421), ran) == (True, [])


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "https://127.0.0.1:{port}", "https://app.example.com"])
def test_an_origin_of_the_server_may_call(port: int, origin: str) -> None:
    assert (raw(port, ("Origin", origin.format(port=port)))[0], ran) == (200, [1])


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example", "null", "", "http://localhost:{port}", "http://127.0.0.1", "http://127.0.0.1:1"),
        *("http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}@evil.example", "127.0.0.1:{port}"),
        *("file://", "https://app.example.com.evil.example", "https://app.example.com:444", "http://app.example.com"),
        *(
            "https://APP.example.com/",
            "ftp://127.0.0.1:{port}",
            "http://127.0.0.1:{port}/",
            "http://127.0.0.1:{port} x",
        ),
    ],
)
def test_any_other_origin_is_refused(port: int, origin: str) -> None:
    assert (raw(port, ("Origin", origin.format(port=port)))[0], ran) == (403, [])


@pytest.mark.parametrize(
    "header",
    [
        ("Host", "evil.example"),
        ("Host", "127.0.0.1"),
        ("MCP-Protocol-Version", "2026-07-28"),
    ],
)
def test_a_header_that_stands_twice_is_refused(port: int, header: tuple[str, str]) -> None:
    assert (raw(port, header)[0], ran) == (400, [])


@pytest.mark.parametrize("header", ["Origin", "Authorization", "Mcp-Session-Id"])
def test_a_pair_of_optional_headers_is_refused(port: int, header: str) -> None:
    assert (raw(port, (header, f"http://127.0.0.1:{port}"), (header, "https://evil.example"))[0], ran) == (400, [])


def test_without_the_guard_each_attack_calls_the_tool(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with the protection taken away, the attacks of this page run the tool."""

    async def open_door(self: Any, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    monkeypatch.setattr(HttpGuard, "__call__", open_door)
    assert raw(port, host="evil.example")[0] == 200
    assert raw(port, ("Origin", "https://evil.example"))[0] == 200
    assert raw(port, ("Origin", f"http://127.0.0.1:{port}"), ("Origin", "https://evil.example"))[0] == 200
    assert ran == [1, 1, 1]
