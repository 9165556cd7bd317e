"""Pages as text: fetched past the guard, parsed in another process, and kept for a quarter of an hour."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from toolwire.builtin.web.fetching import HTML, PORTS, URL_LIMIT, Fetched, fetch
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.outside_text import outside_text
from toolwire.builtin.web.own_threads import run_in_thread
from toolwire.builtin.web.page_reader import TEXT_LIMIT, PageText, page_reader
from toolwire.builtin.web.refusals import FetchFailed

DEADLINE_S = 30.0
"""Maximum seconds of fetching one page, redirects included. A model waits no longer for one page."""
CACHE_TIME_S = 15 * 60
"""Seconds for which a page is kept: a model that reads on gets the same page."""
CACHE_LIMIT_BYTES = 64 * 1024 * 1024
"""Maximum bytes of all kept texts: 640 articles of 100 KB. The page that was unused for longest leaves first."""
CONTENT_TYPE_LIMIT = 200
"""Maximum characters of a content type. The longest registered one has 73."""
Render = Callable[..., Awaitable[Fetched | None]]
"""`toolwire.builtin.web.browser.render`, which needs the extra `browser`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """The text of a page."""

    url: str
    """The URL after all redirects."""
    title: str
    """Empty if the page has none."""
    content_type: str
    """Such as text/html; empty if the server names none."""
    text: str
    """Markdown of HTML, the text of a PDF, or the source of JSON and all other texts."""
    is_whole: bool
    """False if the page has more text than `TEXT_LIMIT`."""


class Pages:
    """Fetches pages and keeps them. Threads and event loops may share it."""

    def __init__(self, allow: Iterable[tuple[str, int]] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """Takes addresses with ports that may be reached though they are not public."""
        allowed = frozenset(allow)
        self._ports = tuple(dict.fromkeys([*PORTS, *(port for _, port in allowed)]))
        self._transport = GuardedTransport(allow=allowed)
        self._clock = clock
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, bool], tuple[float, WebPage]] = OrderedDict()
        self._size = 0

    async def get(self, url: str, render: Render | None = None) -> WebPage:
        """Returns the page of a URL, which may be up to a quarter of an hour old. With `render` a browser runs its
        scripts first; content that a browser does not render is fetched.

        Raises:
            FetchFailed: It cannot be fetched or read. The message is fit for a model.
            SandboxUnavailable: This machine cannot confine the process that parses pages, or the browser.
        """
        key = (url, render is not None)
        kept = self._recall(key)
        if kept is not None:
            return kept
        found = await render(url, transport=self._transport, ports=self._ports) if render else None
        is_rendered = found is not None
        if found is None:
            found = await fetch(url, transport=self._transport, deadline_s=DEADLINE_S, ports=self._ports)
        if not 200 <= found.status < 300:
            raise FetchFailed(f"the server answered {_status(found.status)}", may_repeat=found.status in _LATER)
        page = await run_in_thread(partial(_page, found), name="toolwire-page")
        if not page.text.strip():
            raise FetchFailed(_NO_TEXT_RENDERED if is_rendered else _NO_TEXT)
        self._keep(key, page)
        return page

    def _recall(self, key: tuple[str, bool]) -> WebPage | None:
        with self._lock:
            kept = self._pages.get(key)
            if kept is None:
                return None
            until, page = kept
            if self._clock() >= until:
                self._drop(key)
                return None
            self._pages.move_to_end(key)
            return page

    def _keep(self, key: tuple[str, bool], page: WebPage) -> None:
        with self._lock:
            if key in self._pages:
                self._drop(key)
            self._pages[key] = (self._clock() + CACHE_TIME_S, page)
            self._size += _page_size(page)
            while self._size > CACHE_LIMIT_BYTES:
                self._drop(next(iter(self._pages)))

    def _drop(self, key: tuple[str, bool]) -> None:
        self._size -= _page_size(self._pages.pop(key)[1])


_LATER = (408, 425, 429, 500, 502, 503, 504)
_NO_TEXT = "the page has no text: it may be made by JavaScript, which render=true runs, or of images"
_NO_TEXT_RENDERED = "the page has no text, also after its JavaScript: it may be made of images"


def _page_size(page: WebPage) -> int:
    return len(page.text.encode()) + len(page.title.encode())


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _page(found: Fetched) -> WebPage:
    is_pdf = found.content_type == "application/pdf" or found.body.startswith(b"%PDF-")
    if is_pdf or found.content_type in HTML:
        kind = "pdf" if is_pdf else "html"
        read = page_reader().read(kind, found.body, url=found.url, charset=found.charset)
    else:
        text = found.body.decode(found.charset or "utf-8-sig", errors="replace")
        read = PageText(title="", text=outside_text(text, TEXT_LIMIT), is_whole=len(text) < TEXT_LIMIT)
    return WebPage(
        url=outside_text(found.url, URL_LIMIT),
        title=read.title,
        content_type=outside_text(found.content_type, CONTENT_TYPE_LIMIT),
        text=read.text,
        is_whole=read.is_whole,
    )
