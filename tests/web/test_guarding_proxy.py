"""The proxy of a browser leads to the places that the guard allows, and stops a page that needs too much."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Iterable

import pytest

from tests.web.servers import answer, serving
from toolwire.builtin.web import guarding_proxy as module
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.guarding_proxy import GuardingProxy, guarding_proxy

GREETING, WELCOME = b"\x05\x01\x00", b"\x05\x00"
DONE, NOT_ALLOWED, UNREACHABLE = 0, 2, 4
REQUEST = b"GET /a HTTP/1.1\r\n\r\n"


def named(host: str) -> bytes:
    return bytes([3, len(host)]) + host.encode()


def numbered(address: str) -> bytes:
    found = ipaddress.ip_address(address)
    return bytes([1 if found.version == 4 else 4]) + found.packed


async def asked(proxy: GuardingProxy, place: bytes, port: int) -> tuple[int, bytes]:
    """Returns the proxy's status and, if it is connected, all that the server answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        writer.write(GREETING)
        assert await reader.readexactly(2) == WELCOME
        writer.write(b"\x05\x01\x00" + place + port.to_bytes(2, "big"))
        version, status, *_ = await reader.readexactly(10)
        assert version == 5
        if status == DONE:
            writer.write(REQUEST)
        return status, await reader.read()
    finally:
        writer.close()


async def resolve(host: str, port: int) -> Iterable[str]:
    known = {"page.example": ["127.0.0.1"], "mixed.example": ["1.1.1.1", "127.0.0.1"]}
    return known.get(host) or ([host] if host[0].isdigit() or ":" in host else [])


async def test_a_browser_reaches_an_allowed_server_by_name_and_by_address() -> None:
    async with serving(lambda path: answer(b"page")) as server, serving(lambda path: answer(b"six"), host="::1") as six:
        transport = GuardedTransport([("127.0.0.1", server.port), ("::1", six.port)], resolve)
        async with guarding_proxy(transport, (server.port, six.port)) as proxy:
            for place in (named("page.example"), named("127.0.0.1"), numbered("127.0.0.1")):
                status, body = await asked(proxy, place, server.port)
                assert (status, body.partition(b"\r\n\r\n")[2]) == (DONE, b"page")
            for place in (named("::1"), named("[::1]"), numbered("::1")):
                status, body = await asked(proxy, place, six.port)
                assert (status, body.partition(b"\r\n\r\n")[2]) == (DONE, b"six")
            assert proxy.refusals == {}


@pytest.mark.threat(39)
@pytest.mark.threat(40)
async def test_what_the_guard_refuses_is_not_reached_and_the_reason_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gone = taken.getsockname()[1]
    async with serving(lambda path: answer(b"secret")) as server:
        transport = GuardedTransport([("127.0.0.1", gone)], resolve)
        async with guarding_proxy(transport, (80, server.port, gone)) as proxy:
            statuses = [
                (await asked(proxy, place, port))[0]
                for place, port in (
                    (numbered("127.0.0.1"), server.port),
                    (named("mixed.example"), server.port),
                    (numbered("::1"), server.port),
                    (named("169.254.169.254"), 80),
                    (named("1.1.1.1"), 22),
                    (named("unknown.example"), server.port),
                    (named("page.example"), gone),
                )
            ]
            reasons = {host: str(error) for host, error in proxy.refusals.items()}
        assert server.requests == []
    assert statuses == [NOT_ALLOWED] * 5 + [UNREACHABLE] * 2
    not_public = "is not on the public internet ({}): only public pages can be fetched"
    assert reasons == {
        "127.0.0.1": f"'127.0.0.1' {not_public.format('loopback')}",
        "mixed.example": f"'mixed.example' {not_public.format('loopback')}",
        "::1": f"'::1' {not_public.format('not a public IPv6 address')}",
        "169.254.169.254": f"'169.254.169.254' {not_public.format('link-local')}",
        "1.1.1.1": f"port 22 is not fetched: use 80 or {server.port} or {gone}",
        "unknown.example": "the host 'unknown.example' is not known: check the URL",
        "page.example": "the server of 'page.example' cannot be reached",
    }


@pytest.mark.parametrize(
    "said",
    [
        b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
        b"\x05\x01\x02",
        GREETING + b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50",
        GREETING + b"\x05\x01\x00\x07",
        GREETING + b"\x05",
        b"",
    ],
    ids=["http", "socks 4", "password", "bind", "kind", "ends", "nothing"],
)
async def test_a_connection_that_is_not_one_of_a_browser_is_closed(said: bytes) -> None:
    async with guarding_proxy(GuardedTransport(), (80,)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(said)
        writer.write_eof()
        assert await reader.read() in (b"", WELCOME)
        writer.close()


@pytest.mark.threat(42)
async def test_a_page_may_move_the_greatest_number_of_bytes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    page = answer(b"y" * 200_000)
    async with serving(lambda path: page) as server:
        transport = GuardedTransport([("127.0.0.1", server.port)], resolve)
        for limit, is_stopped in ((len(page) + len(REQUEST), False), (len(page) + len(REQUEST) - 1, True)):
            monkeypatch.setattr(module, "RENDER_LIMIT_BYTES", limit)
            async with guarding_proxy(transport, (server.port,)) as proxy:
                status, body = await asked(proxy, named("page.example"), server.port)
                assert (status, len(body) < len(page), proxy.stopped.done()) == (DONE, is_stopped, is_stopped)
            if is_stopped:
                why = f"the page needs more than {limit:,} bytes, with its scripts and images"
                assert str(proxy.stopped.result()) == why


@pytest.mark.threat(42)
async def test_a_page_may_make_the_greatest_number_of_requests_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_LIMIT", 2)
    why = "the page needs more than 2 requests, with its scripts and images"
    async with serving(lambda path: answer(b"page")) as server:
        transport = GuardedTransport([("127.0.0.1", server.port)], resolve)
        async with guarding_proxy(transport, (server.port,)) as proxy:
            for _ in range(2):
                assert (await asked(proxy, named("page.example"), server.port))[0] == DONE
            assert not proxy.stopped.done()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asked(proxy, named("page.example"), server.port)
            assert (str(proxy.stopped.result()), len(server.requests)) == (why, 2)
        async with guarding_proxy(transport, (server.port,)) as proxy:
            for number in range(1, 4):
                proxy.count_request(None)
                assert proxy.stopped.done() == (number > 2)


async def test_connections_end_with_the_proxy_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    held = asyncio.Event()

    async def hold(path: str, writer: asyncio.StreamWriter) -> None:
        held.set()
        await over.wait()

    over = asyncio.Event()
    async with serving(hold, writes=True) as server:
        transport = GuardedTransport([("127.0.0.1", server.port)], resolve)
        with caplog.at_level(logging.WARNING):
            async with guarding_proxy(transport, (server.port,)) as proxy:
                waiting = asyncio.ensure_future(asked(proxy, named("page.example"), server.port))
                await held.wait()
            assert await waiting == (DONE, b"")
        over.set()
    assert caplog.records == []
