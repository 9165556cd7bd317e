"""Long answers, bombs and slow servers are stopped at the limit."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import httpx2
import pytest

from tests.patience import PATIENCE_S
from tests.web.servers import LoopbackServer, answer, serving
from toolwire.builtin.web import fetching, network
from toolwire.builtin.web.fetching import RATIO_FREE_BYTES, RATIO_LIMIT, Fetched, fetch
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.network import BODY_LIMIT_BYTES, HEADER_LIMIT_BYTES, READ_BYTES
from toolwire.builtin.web.refusals import Blocked, FetchFailed


async def got(server: LoopbackServer, deadline_s: float = PATIENCE_S, path: str = "/") -> Fetched:
    transport = GuardedTransport(allow=[("127.0.0.1", server.port)])
    url = f"http://127.0.0.1:{server.port}{path}"
    return await fetch(url, transport=transport, deadline_s=deadline_s, ports=(server.port,))


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that the guard received."""
    sizes: list[int] = []
    spend = network.BytesLeft.spend

    def counting(budget: network.BytesLeft, size: int) -> None:
        sizes.append(size)
        spend(budget, size)

    monkeypatch.setattr(network.BytesLeft, "spend", counting)
    return sizes


class Endless:
    """Writes until the other side closes the connection."""

    def __init__(self, start: bytes, more: bytes) -> None:
        self.start, self.more, self.is_over = start, more, asyncio.Event()

    async def __call__(self, path: str, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(self.start)
            while True:
                writer.write(self.more)
                await writer.drain()
                await asyncio.sleep(0)
        except OSError:
            pass
        finally:
            self.is_over.set()


START = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"


@pytest.mark.threat(42)
@pytest.mark.parametrize(
    ("start", "more", "limit"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"y" * 1_000 + b"\r\n", HEADER_LIMIT_BYTES, id="lines"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx-one: ", b"y" * 1_000, HEADER_LIMIT_BYTES, id="one line"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50, HEADER_LIMIT_BYTES, id="continue"),
        pytest.param(START + b"\r\n", b"y" * 65_536, HEADER_LIMIT_BYTES + BODY_LIMIT_BYTES, id="body"),
        pytest.param(
            START + b"transfer-encoding: chunked\r\n\r\n",
            b"10000\r\n" + b"y" * 65_536 + b"\r\n",
            HEADER_LIMIT_BYTES + BODY_LIMIT_BYTES,
            id="chunks",
        ),
        pytest.param(
            START + b"transfer-encoding: chunked\r\n\r\n0\r\n",
            b"x-more: " + b"y" * 1_000 + b"\r\n",
            HEADER_LIMIT_BYTES + BODY_LIMIT_BYTES,
            id="trailers",
        ),
    ],
)
async def test_an_endless_answer_stops_at_the_limit(start: bytes, more: bytes, limit: int, received: list[int]) -> None:
    endless = Endless(start, more)
    async with serving(endless, writes=True) as server:
        with pytest.raises(FetchFailed):
            await got(server)
        async with asyncio.timeout(PATIENCE_S):
            await endless.is_over.wait()
    assert sum(received) <= limit + 64 * 1024


@pytest.mark.threat(42)
async def test_without_the_guard_the_same_answer_is_read_on(received: list[int]) -> None:
    endless = Endless(START + b"\r\n", b"y" * 65_536)
    async with serving(endless, writes=True) as server, httpx2.AsyncClient(trust_env=False) as client:
        read = 0
        async with client.stream("GET", f"http://127.0.0.1:{server.port}/") as response:
            async for part in response.aiter_bytes():
                read += len(part)
                if read > 2 * BODY_LIMIT_BYTES:
                    break
    assert read > 2 * BODY_LIMIT_BYTES


async def test_a_page_of_the_greatest_size_is_read_and_a_greater_one_is_not() -> None:
    sizes = {"/fits": BODY_LIMIT_BYTES, "/long": BODY_LIMIT_BYTES + 1}
    async with serving(lambda path: answer(b"y" * sizes[path])) as server:
        assert len((await got(server, path="/fits")).body) == BODY_LIMIT_BYTES
        with pytest.raises(Blocked, match=f"the page has more than {BODY_LIMIT_BYTES:,} bytes"):
            await got(server, path="/long")


async def test_a_head_below_the_limit_is_read_and_one_above_it_is_not() -> None:
    sizes = {"/fits": HEADER_LIMIT_BYTES - 1_000, "/long": HEADER_LIMIT_BYTES + READ_BYTES + 1_000}
    async with serving(lambda path: answer(b"page", x_long="y" * sizes[path])) as server:
        assert (await got(server, path="/fits")).body == b"page"
        with pytest.raises(FetchFailed):
            await got(server, path="/long")


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(b"\0" * 1_048_576) for _ in range(megabytes)), packer.flush()])


@pytest.mark.threat(42)
async def test_a_bomb_is_stopped_before_it_takes_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = bomb(100)
    pieces: list[int] = []
    unpacked = fetching._unpack

    async def counting(parts: Any) -> Any:
        async for piece in unpacked(parts):
            pieces.append(len(piece))
            yield piece

    monkeypatch.setattr(fetching, "_unpack", counting)
    async with serving(lambda path: answer(packed, content_encoding="gzip")) as server:
        with pytest.raises(Blocked, match="one packed byte of the page becomes more than 200"):
            await got(server)
        assert sum(pieces) <= 4 * RATIO_FREE_BYTES
        # The control: without the two limits the bomb unpacks whole.
        monkeypatch.setattr(fetching, "RATIO_LIMIT", 10_000)
        monkeypatch.setattr(fetching, "BODY_LIMIT_BYTES", 1_000_000_000)
        assert len((await got(server)).body) == 100 * 1_048_576


@pytest.mark.threat(42)
async def test_a_bomb_of_a_low_ratio_stops_at_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "RATIO_LIMIT", 10_000)
    packed = bomb(12)
    async with serving(lambda path: answer(packed, content_encoding="gzip")) as server:
        with pytest.raises(Blocked, match=f"the page has more than {BODY_LIMIT_BYTES:,} bytes"):
            await got(server)


@pytest.mark.threat(42)
@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate", "zstd", "gzip;q=1"])
async def test_a_body_that_is_packed_otherwise_is_refused(encoding: str) -> None:
    async with serving(lambda path: answer(gzip.compress(b"x"), content_encoding=encoding)) as server:
        with pytest.raises(Blocked, match="and gzip was asked for"):
            await got(server)


async def test_a_packed_page_is_unpacked() -> None:
    page = b"<p>" + b"all of it, " * 10_000
    assert len(page) < RATIO_FREE_BYTES + RATIO_LIMIT * len(gzip.compress(page))
    async with serving(lambda path: answer(gzip.compress(page), content_encoding="gzip")) as server:
        assert (await got(server)).body == page


@pytest.mark.parametrize(("damage", "why"), [(slice(0, -4), "ends in its middle"), (slice(4, None), "is not gzip")])
async def test_a_damaged_packed_page_is_refused(damage: slice, why: str) -> None:
    packed = gzip.compress(b"page" * 100)[damage]
    async with serving(lambda path: answer(packed, content_encoding="gzip")) as server:
        with pytest.raises(FetchFailed, match=why):
            await got(server)


@pytest.mark.threat(42)
@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\n", START + b"\r\n"], ids=["first line", "head", "body"]
)
async def test_a_server_that_drips_is_left_at_the_deadline(start: bytes) -> None:
    """The limit of one read starts anew with each byte, so only a deadline for the whole ends this."""
    is_over, is_late, deadline_s, pause_s = asyncio.Event(), asyncio.Event(), 0.3, 0.01

    async def drip(path: str, writer: asyncio.StreamWriter) -> None:
        sent = 0
        try:
            writer.write(start)
            while True:
                writer.write(b"y")
                await writer.drain()
                await asyncio.sleep(pause_s)
                sent += 1
                if sent * pause_s > 2 * deadline_s:
                    is_late.set()
        except OSError:
            pass
        finally:
            is_over.set()

    async with serving(drip, writes=True) as server:
        with pytest.raises(FetchFailed, match=r"no whole answer within 0\.3 seconds") as failed:
            await got(server, deadline_s=deadline_s)
        assert failed.value.may_repeat
        async with asyncio.timeout(PATIENCE_S):
            await is_over.wait()
            # The control: without the deadline the same server still drips after twice that time.
            is_late.clear()
            dripped_on = asyncio.ensure_future(got(server))
            await is_late.wait()
            assert not dripped_on.done()
            dripped_on.cancel()


async def test_the_deadline_counts_all_redirects() -> None:
    async def slow(path: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.12)
        writer.write(answer(status="302 Found", location=f"{path}x"))
        await writer.drain()

    async with serving(slow, writes=True) as server:
        with pytest.raises(FetchFailed, match="no whole answer within"):
            await got(server, deadline_s=0.3)
        assert len(server.requests) <= 3


@pytest.mark.parametrize(
    ("content_type", "is_read"),
    [
        ("text/html; charset=utf-8", True),
        ("application/json", True),
        ("application/ld+json", True),
        ("application/atom+xml", True),
        ("application/pdf", True),
        ("", True),
        ("image/png", False),
        ("application/octet-stream", False),
        ("video/mp4", False),
    ],
)
async def test_only_texts_json_and_pdf_are_read(content_type: str, is_read: bool) -> None:
    async with serving(lambda path: answer(b"body", content_type=content_type)) as server:
        if is_read:
            assert (await got(server)).content_type == content_type.partition(";")[0]
        else:
            with pytest.raises(Blocked, match=f"the page is {content_type}: only HTML, PDF, JSON and text are read"):
                await got(server)


async def test_the_charset_and_the_status_are_told_and_the_body_of_an_error_is_not_read() -> None:
    pages = {
        "/": answer(b"x", content_type='text/html; a=b; Charset="ISO-8859-1"'),
        "/gone": answer(b"gone", status="404 Not Found"),
    }
    async with serving(lambda path: pages[path]) as server:
        assert (await got(server)).charset == "cp1252"
        found = await got(server, path="/gone")
        assert (found.status, found.body) == (404, b"")


async def test_a_server_that_is_not_one_of_http_is_told_so() -> None:
    async with serving(lambda path: b"SSH-2.0-OpenSSH_9.2\r\n") as server:
        with pytest.raises(FetchFailed, match="did not answer as HTTP wants it"):
            await got(server)
