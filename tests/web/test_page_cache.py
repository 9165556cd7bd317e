"""Pages are kept for a while, and what cannot be read says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.web.servers import LoopbackServer, answer, serving
from toolwire.builtin.web import page_cache as module
from toolwire.builtin.web.fetching import Fetched
from toolwire.builtin.web.page_cache import CACHE_TIME_S, Pages
from toolwire.builtin.web.refusals import FetchFailed


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def pages_of(server: LoopbackServer, clock: Callable[[], float] | None = None) -> Pages:
    return Pages([("127.0.0.1", server.port)], clock or Clock())


async def test_a_page_is_fetched_once_in_a_quarter_of_an_hour() -> None:
    clock = Clock()
    async with serving(lambda path: answer(b"{}", content_type="application/json")) as server:
        pages, url = pages_of(server, clock), f"http://127.0.0.1:{server.port}/a"
        first = await pages.get(url)
        clock.now = CACHE_TIME_S - 1
        assert await pages.get(url) == first
        assert len(server.requests) == 1
        clock.now = CACHE_TIME_S
        await pages.get(url)
        assert len(server.requests) == 2


async def test_the_page_that_was_unused_for_longest_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_LIMIT_BYTES", 2_000)
    async with serving(lambda path: answer(b"y" * 1_000, content_type="text/plain")) as server:
        pages, base = pages_of(server), f"http://127.0.0.1:{server.port}"
        for path in ("/a", "/b", "/a", "/c", "/a", "/b"):
            await pages.get(base + path)
    assert server.paths == ["/a", "/b", "/c", "/b"]


async def test_a_page_above_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_LIMIT_BYTES", 999)
    async with serving(lambda path: answer(b"y" * 1_000, content_type="text/plain")) as server:
        pages, url = pages_of(server), f"http://127.0.0.1:{server.port}/a"
        assert await pages.get(url) == await pages.get(url)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "why", "may_repeat"),
    [
        ("404 Not Found", "the server answered 404 Not Found", False),
        ("429 Slow Down", "the server answered 429 Too Many Requests", True),
        ("503 Busy", "the server answered 503 Service Unavailable", True),
        ("799 Own", "the server answered 799", False),
        ("304 Same", "the server answered 304 Not Modified", False),
    ],
)
async def test_an_answer_without_a_page_is_told_and_not_kept(status: str, why: str, may_repeat: bool) -> None:
    async with serving(lambda path: answer(b"no", status=status)) as server:
        pages, url = pages_of(server), f"http://127.0.0.1:{server.port}/a"
        for _ in range(2):
            with pytest.raises(FetchFailed) as failed:
                await pages.get(url)
            assert (str(failed.value), failed.value.may_repeat) == (why, may_repeat)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", "Zoë".encode("latin-1"), "Zoë"),
        ("text/plain", b"\xef\xbb\xbfZo\xc3\xab", "Zoë"),
        ("text/plain; charset=x-unknown", b"plain\xff", "plain�"),
        ("application/json", b'{"a": [1]}', '{"a": [1]}'),
        ("application/rss+xml", b"<rss/>", "<rss/>"),
        ("text/markdown", b"# Title", "# Title"),
        ("text/html", b"<html><body><p>short</p></body></html>", "short"),
        ("", b"<html><body><p>short</p></body></html>", "short"),
    ],
)
async def test_texts_are_decoded_and_html_is_parsed(content_type: str, body: bytes, text: str) -> None:
    async with serving(lambda path: answer(body, content_type=content_type)) as server:
        page = await pages_of(server).get(f"http://127.0.0.1:{server.port}/a")
    assert (page.text, page.is_whole) == (text, True)


def rendering(body: bytes | None) -> Callable[..., Any]:
    """Returns a stand-in for the browser; None is a page that it does not render."""

    async def render(url: str, **_: object) -> Fetched | None:
        found = Fetched(url=url, status=200, content_type="text/html", charset="utf-8", body=body or b"")
        return None if body is None else found

    return render


async def test_a_page_without_text_says_why() -> None:
    async with serving(lambda path: answer(b"<html><body><script>go()</script></body></html>")) as server:
        pages, url = pages_of(server), f"http://127.0.0.1:{server.port}/a"
        with pytest.raises(FetchFailed) as failed:
            await pages.get(url)
        with pytest.raises(FetchFailed) as rendered:
            await pages.get(url, rendering(b"<html><body></body></html>"))
    assert str(failed.value) == (
        "the page has no text: it may be made by JavaScript, which render=true runs, or of images"
    )
    assert str(rendered.value) == "the page has no text, also after its JavaScript: it may be made of images"


async def test_a_rendered_page_is_kept_beside_the_fetched_one() -> None:
    async with serving(lambda path: answer(b"<p>fetched")) as server:
        pages, url = pages_of(server), f"http://127.0.0.1:{server.port}/a"
        assert (await pages.get(url)).text == "fetched"
        assert (await pages.get(url, rendering(b"<p>made by a script"))).text == "made by a script"
        assert (await pages.get(url, rendering(b"<p>another"))).text == "made by a script"
        assert (await pages.get(url)).text == "fetched"
    assert len(server.requests) == 1


async def test_content_that_a_browser_does_not_render_is_fetched() -> None:
    async with serving(lambda path: answer(b"{}", content_type="application/json")) as server:
        assert (await pages_of(server).get(f"http://127.0.0.1:{server.port}/a", rendering(None))).text == "{}"
