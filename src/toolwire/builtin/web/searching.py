"""Search engines of the web, each asked by its own API, with one shape of results."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import httpx2

from toolwire.builtin.web.fetching import URL_LIMIT
from toolwire.builtin.web.outside_text import outside_text
from toolwire.builtin.web.own_threads import run_in_thread
from toolwire.builtin.web.refusals import FetchFailed

DEADLINE_S = 20.0
"""Maximum seconds of one search. A model waits no longer for one search."""
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
"""Maximum bytes of an engine's answer: 50 results with fields of the greatest length have 1 MiB."""
TEXT_LIMIT = 4_000
"""Maximum characters of one field of a result. A longer one is cut; the page itself can be fetched."""
BRAVE_CHARS = 400
"""Maximum characters of a query to Brave, which refuses a longer one."""
BRAVE_WORDS = 50
"""Maximum words of a query to Brave."""
ProviderName = Literal["bocha", "tavily", "brave", "searxng", "ddgs"]
FRESHNESS = ("noLimit", "oneDay", "oneWeek", "oneMonth", "oneYear")
_PERIODS = {"oneDay": "day", "oneWeek": "week", "oneMonth": "month", "oneYear": "year"}
_DDGS_SILENT = "the search engines of ddgs cannot be reached"
_DATES = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.\.(\d{4}-\d{2}-\d{2}))?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One page that a search found. A field that the engine does not fill is empty."""

    title: str
    url: str
    snippet: str
    """Some words of the page."""
    summary: str
    """A longer summary of the page."""
    site: str
    """The name of the site, or its host."""
    published: str
    """The date as the engine writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One search."""

    query: str
    freshness: str
    """One of `FRESHNESS`, a day as 2026-01-31, or days as 2026-01-01..2026-01-31."""
    count: int

    @property
    def period(self) -> str:
        """`day`, `week`, `month` or `year`; empty for other wishes."""
        return _PERIODS.get(self.freshness, "")

    @property
    def days(self) -> tuple[str, str] | None:
        """The first and the last day; None for other wishes."""
        found = _DATES.match(self.freshness)
        return None if found is None else (found[1], found[2] or found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A search engine with an API over HTTP."""

    name: ProviderName
    variable: str
    """The environment variable of its key, or of its URL."""
    url: str
    """The URL that is asked; empty if each installation has its own."""
    most: int
    """The number of results that one request can return."""
    request: Callable[[SearchRequest, str, str], httpx2.Request]
    """Makes the request from the search, the URL and the key."""
    results: Callable[[Mapping[str, Any]], list[SearchResult]]
    """Reads the results from the answer, without those that have no URL."""


def is_freshness(text: str) -> bool:
    """True if the text is one of `FRESHNESS`, a day or a range of days."""
    return text in FRESHNESS or _DATES.match(text) is not None


async def search(provider: Provider, wanted: SearchRequest, *, url: str, key: str) -> list[SearchResult]:
    """Asks an engine. The URL is the host's own choice, so no guard stands before it.

    Raises:
        FetchFailed: The engine cannot be reached, or refuses. The message is fit for a model and has no key.
    """
    try:
        async with asyncio.timeout(DEADLINE_S), httpx2.AsyncClient(trust_env=False, timeout=DEADLINE_S) as client:
            response = await client.send(provider.request(wanted, url, key), stream=True)
            try:
                body = await _read_answer(response)
            finally:
                await response.aclose()
    except (TimeoutError, httpx2.HTTPError):
        raise FetchFailed(f"the search engine {provider.name} cannot be reached", may_repeat=True) from None
    if not response.is_success:
        raise _engine_failure(provider.name, response.status_code)
    try:
        told: object = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise FetchFailed(f"the search engine {provider.name} did not answer with JSON", may_repeat=True)
    answer = cast("dict[str, Any]", told)
    # Bocha reports an error in the body of an answer with status 200.
    code = answer.get("code", 200)
    if str(code) != "200":
        raise _engine_failure(provider.name, code)
    return provider.results(answer)[: wanted.count]


async def _read_answer(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > ANSWER_LIMIT_BYTES:
            raise FetchFailed(f"the answer of the search engine has more than {ANSWER_LIMIT_BYTES:,} bytes")
    return bytes(body)


def _engine_failure(name: str, code: object) -> FetchFailed:
    reasons = {"401": "refuses the key", "403": "refuses the key or the format", "429": "has too many requests now"}
    why = reasons.get(str(code)[:20], f"answered {str(code)[:20]}")
    return FetchFailed(f"the search engine {name} {why}", may_repeat=True)


# The API's page at open.bochaai.com; its answer has the form of Bing's.
def _bocha(wanted: SearchRequest, url: str, key: str) -> httpx2.Request:
    body = {"query": wanted.query, "freshness": wanted.freshness, "summary": True, "count": wanted.count}
    return httpx2.Request("POST", url, json=body, headers={"Authorization": f"Bearer {key}"})


def _bocha_results(answer: Mapping[str, Any]) -> list[SearchResult]:
    items = _fetchable_items(answer, "data", "webPages", "value")
    return [
        _result(item, title="name", snippet="snippet", summary="summary", site="siteName", published="datePublished")
        for item in items
    ]


# docs.tavily.com/api-reference/endpoint/search. Only its topic "news" gives `published_date`.
def _tavily(wanted: SearchRequest, url: str, key: str) -> httpx2.Request:
    body: dict[str, Any] = {"query": wanted.query, "max_results": wanted.count}
    if wanted.period:
        body["time_range"] = wanted.period
    if wanted.days:
        body["start_date"], body["end_date"] = wanted.days
    return httpx2.Request("POST", url, json=body, headers={"Authorization": f"Bearer {key}"})


def _tavily_results(answer: Mapping[str, Any]) -> list[SearchResult]:
    return [
        _result(item, snippet="content", published="published_date") for item in _fetchable_items(answer, "results")
    ]


# api-dashboard.search.brave.com/api-reference/web/search/get
def _brave(wanted: SearchRequest, url: str, key: str) -> httpx2.Request:
    if len(wanted.query) > BRAVE_CHARS or len(wanted.query.split()) > BRAVE_WORDS:
        raise FetchFailed(f"brave takes at most {BRAVE_CHARS} characters and {BRAVE_WORDS} words: shorten the query")
    query: dict[str, str] = {"q": wanted.query, "count": str(wanted.count), "text_decorations": "false"}
    if wanted.period:
        query["freshness"] = f"p{wanted.period[0]}"
    if wanted.days:
        query["freshness"] = "to".join(wanted.days)
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return httpx2.Request("GET", url, params=query, headers=headers)


def _brave_results(answer: Mapping[str, Any]) -> list[SearchResult]:
    items = _fetchable_items(answer, "web", "results")
    return [
        _result({**item, "site": _site(item.get("profile"))}, snippet="description", site="site", published="page_age")
        for item in items
    ]


def _site(profile: object) -> object:
    """Returns the name in a profile of Brave, which may be missing."""
    return cast("dict[str, object]", profile).get("name") if isinstance(profile, dict) else None


# docs.searxng.org/dev/search_api, which leaves out "week"; `parse_time_range` of its source takes that too.
def _searxng(wanted: SearchRequest, url: str, key: str) -> httpx2.Request:
    query = {"q": wanted.query, "format": "json"}
    if wanted.days:
        raise FetchFailed(f"searxng knows no days: give freshness as one of {', '.join(FRESHNESS)}")
    if wanted.period:
        query["time_range"] = wanted.period
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.Request("GET", f"{url.rstrip('/')}/search", params=query, headers=headers)


def _searxng_results(answer: Mapping[str, Any]) -> list[SearchResult]:
    return [_result(item, snippet="content", published="publishedDate") for item in _fetchable_items(answer, "results")]


async def search_ddgs(wanted: SearchRequest) -> list[SearchResult]:
    """Asks by the package ddgs, which needs no key and has an HTTP client of its own. It blocks, so it has a thread.

    Raises:
        FetchFailed: No engine answered, or not within `DEADLINE_S`.
        ImportError: The package is not installed.
    """
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await run_in_thread(partial(_ask_ddgs, wanted), name="toolwire-search")
    except TimeoutError:
        raise FetchFailed(_DDGS_SILENT, may_repeat=True) from None


def _ask_ddgs(wanted: SearchRequest) -> list[SearchResult]:
    from ddgs import DDGS  # pyright: ignore[reportUnknownVariableType]
    from ddgs.exceptions import DDGSException

    limit = wanted.period[:1] or ("..".join(wanted.days) if wanted.days else None)
    try:
        found: Any = DDGS().text(wanted.query, timelimit=limit, max_results=wanted.count)
    except DDGSException as error:
        if "no results" in str(error).lower():
            return []
        raise FetchFailed(_DDGS_SILENT, may_repeat=True) from error
    items = [cast("Mapping[str, Any]", item) for item in found if isinstance(item, dict)]
    results = [_result(item, url="href", snippet="body") for item in items]
    return [each for each in results if 0 < len(each.url) <= URL_LIMIT][: wanted.count]


PROVIDERS = (
    Provider(
        name="bocha",
        variable="BOCHA_API_KEY",
        url="https://api.bochaai.com/v1/web-search",
        most=50,
        request=_bocha,
        results=_bocha_results,
    ),
    Provider(
        name="tavily",
        variable="TAVILY_API_KEY",
        url="https://api.tavily.com/search",
        most=20,
        request=_tavily,
        results=_tavily_results,
    ),
    Provider(
        name="brave",
        variable="BRAVE_API_KEY",
        url="https://api.search.brave.com/res/v1/web/search",
        most=20,
        request=_brave,
        results=_brave_results,
    ),
    Provider(name="searxng", variable="SEARXNG_URL", url="", most=50, request=_searxng, results=_searxng_results),
)
"""The engines in the order in which one is taken whose variable is set."""


def _fetchable_items(answer: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """Returns the objects in the list at the path that have a URL that can be fetched; none if the answer has another
    shape."""
    found: object = answer
    for name in path:
        found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    listed = cast("list[object]", found) if isinstance(found, list) else []
    items = [cast("Mapping[str, Any]", item) for item in listed if isinstance(item, dict)]
    return [item for item in items if 0 < len(_field_text(item, "url")) <= URL_LIMIT]


def _result(
    item: Mapping[str, Any],
    *,
    title: str = "title",
    url: str = "url",
    snippet: str = "",
    summary: str = "",
    site: str = "",
    published: str = "",
) -> SearchResult:
    address = _field_text(item, url)
    return SearchResult(
        title=_field_text(item, title),
        url=address,
        snippet=_field_text(item, snippet),
        summary=_field_text(item, summary),
        site=_field_text(item, site) or _host(address),
        published=_field_text(item, published),
    )


def _field_text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return outside_text(value, TEXT_LIMIT) if isinstance(value, str) else ""


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
