"""Models search the web by engines that speak their documented APIs, with one shape of results."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.patience import PATIENCE_S
from tests.web.servers import LoopbackServer, answer, serving
from toolwire import ConfigurationError, ToolRegistry, ToolResult
from toolwire.builtin.web import searching
from toolwire.builtin.web.fetching import URL_LIMIT
from toolwire.facade.built_in.web_search_tool import COUNT_LIMIT
from toolwire.tools import WebSearchTool

Name = Literal["bocha", "tavily", "brave", "searxng"]
VARIABLES = ("BOCHA_API_KEY", "TAVILY_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL")
URL = "https://example.org/tide"
ANSWERS: dict[Name, dict[str, Any]] = {
    "bocha": {
        "code": 200,
        "log_id": "1",
        "msg": None,
        "data": {
            "_type": "SearchResponse",
            "queryContext": {"originalQuery": "tide"},
            "webPages": {
                "totalEstimatedMatches": 1,
                "value": [
                    {
                        "id": "https://api.bochaai.com/v1/#WebPages.0",
                        "name": "Tide",
                        "url": URL,
                        "displayUrl": URL,
                        "snippet": "High at noon",
                        "summary": "High at noon, low at six",
                        "siteName": "Harbour",
                        "datePublished": "2026-01-31T11:58:00+08:00",
                        "dateLastCrawled": "2026-01-31T11:58:00Z",
                    }
                ],
            },
        },
    },
    "tavily": {
        "query": "tide",
        "answer": None,
        "images": [],
        "results": [
            {"title": "Tide", "url": URL, "content": "High at noon", "score": 0.9, "published_date": "2026-01-31"}
        ],
        "response_time": 1.1,
    },
    "brave": {
        "type": "search",
        "query": {"original": "tide"},
        "web": {
            "type": "search",
            "results": [
                {
                    "title": "Tide",
                    "url": URL,
                    "description": "High at noon",
                    "page_age": "2026-01-31T00:00:00",
                    "profile": {"name": "Harbour", "url": URL, "long_name": "example.org", "img": ""},
                    "meta_url": {"hostname": "example.org"},
                }
            ],
        },
    },
    "searxng": {
        "query": "tide",
        "number_of_results": 1,
        "results": [
            {
                "title": "Tide",
                "url": URL,
                "content": "High at noon",
                "engine": "duckduckgo",
                "publishedDate": "2026-01-31T00:00:00",
            }
        ],
        "unresponsive_engines": [],
    },
}
FOUND: dict[Name, dict[str, str]] = {
    "bocha": {"summary": "High at noon, low at six", "site": "Harbour", "published": "2026-01-31T11:58:00+08:00"},
    "tavily": {"summary": "", "site": "example.org", "published": "2026-01-31"},
    "brave": {"summary": "", "site": "Harbour", "published": "2026-01-31T00:00:00"},
    "searxng": {"summary": "", "site": "example.org", "published": "2026-01-31T00:00:00"},
}
WISHES = "noLimit, oneDay, oneWeek, oneMonth, oneYear, a day as 2026-01-31, or days as 2026-01-01..2026-01-31"
NAMES: tuple[Name, ...] = ("bocha", "tavily", "brave", "searxng")


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def replying(body: object, **more: str) -> Callable[[str], bytes]:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda path: answer(text, content_type="application/json", **more)


async def search(name: Name, server: LoopbackServer, **arguments: Any) -> ToolResult:
    registry = ToolRegistry()
    registry.register(WebSearchTool(name, key="k-123", url=f"http://127.0.0.1:{server.port}/api"))
    return await registry.ainvoke("web_search", {"query": "tide", **arguments})


def sent(server: LoopbackServer) -> dict[str, Any]:
    """Returns the parameters of the last request, of its body or of its URL."""
    if server.bodies[-1]:
        body: dict[str, Any] = json.loads(server.bodies[-1])
        return body
    return {name: values[0] for name, values in parse_qs(urlsplit(server.paths[-1]).query).items()}


@pytest.mark.requirement("base.builtin.web-search")
@pytest.mark.parametrize("name", NAMES)
async def test_each_engine_gives_results_of_one_shape_without_being_asked(name: Name) -> None:
    async with serving(replying(ANSWERS[name])) as server:
        found = await search(name, server)
    shape = {"title": "Tide", "url": URL, "snippet": "High at noon", **FOUND[name]}
    assert found.data == [shape]
    text = shape["summary"] or shape["snippet"]
    assert found.text == f"1. Tide ({shape['published']})\n{URL}\n{text}"


KEYS = {
    "bocha": "authorization: bearer k-123",
    "tavily": "authorization: bearer k-123",
    "brave": "x-subscription-token: k-123",
    "searxng": "authorization: bearer k-123",
}


@pytest.mark.parametrize("name", NAMES)
async def test_the_key_is_sent_as_the_engine_wants_it(name: Name) -> None:
    async with serving(replying(ANSWERS[name])) as server:
        await search(name, server)
    assert KEYS[name] in server.requests[0].lower()
    assert "k-123" not in server.paths[0]


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("bocha", {}, {"query": "tide", "freshness": "noLimit", "summary": True, "count": 10}),
        ("bocha", {"freshness": "oneWeek", "count": 50}, {"freshness": "oneWeek", "count": 50}),
        ("bocha", {"freshness": "2026-01-01..2026-01-31"}, {"freshness": "2026-01-01..2026-01-31"}),
        ("tavily", {}, {"query": "tide", "max_results": 10}),
        ("tavily", {"freshness": "oneMonth", "count": 20}, {"time_range": "month", "max_results": 20}),
        ("tavily", {"freshness": "2026-01-31"}, {"start_date": "2026-01-31", "end_date": "2026-01-31"}),
        ("brave", {}, {"q": "tide", "count": "10", "text_decorations": "false"}),
        ("brave", {"freshness": "oneYear", "count": 1}, {"freshness": "py", "count": "1"}),
        ("brave", {"freshness": "2026-01-01..2026-01-31"}, {"freshness": "2026-01-01to2026-01-31"}),
        ("searxng", {}, {"q": "tide", "format": "json"}),
        ("searxng", {"freshness": "oneDay"}, {"time_range": "day"}),
    ],
)
async def test_a_search_is_written_as_the_engine_wants_it(
    name: Name, given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    async with serving(replying(ANSWERS[name])) as server:
        assert (await search(name, server, **given)).success
    told = sent(server)
    assert {each: told.get(each) for each in wanted} == wanted
    assert given or set(told) == set(wanted)


async def test_searxng_is_asked_at_its_search_page_and_knows_no_days() -> None:
    async with serving(replying(ANSWERS["searxng"])) as server:
        await search("searxng", server)
        refused = await search("searxng", server, freshness="2026-01-31")
    assert urlsplit(server.paths[0]).path == "/api/search"
    assert refused.error == (
        "searxng knows no days: give freshness as one of noLimit, oneDay, oneWeek, oneMonth, oneYear"
    )
    assert len(server.requests) == 1


@pytest.mark.parametrize(("longest", "longer"), [("x" * 400, "x" * 401), ("x " * 50, "x " * 51)])
async def test_brave_takes_a_query_up_to_its_limits_and_is_not_asked_above_them(longest: str, longer: str) -> None:
    async with serving(replying(ANSWERS["brave"])) as server:
        assert (await search("brave", server, query=longest)).success
        refused = await search("brave", server, query=longer)
    assert refused.error == "brave takes at most 400 characters and 50 words: shorten the query"
    assert len(server.requests) == 1


async def test_a_site_without_a_profile_is_named_by_its_host() -> None:
    found = {"web": {"results": [{"url": URL}, {"url": URL, "profile": {"name": 7}}]}}
    async with serving(replying(found)) as server:
        assert [each["site"] for each in (await search("brave", server)).data] == ["example.org"] * 2


async def test_an_engine_that_gives_fewer_says_so() -> None:
    async with serving(replying(ANSWERS["tavily"])) as server:
        found = await search("tavily", server, count=21)
    assert sent(server)["max_results"] == 20
    assert found.text.startswith("[tavily gives at most 20]\n\n1. Tide")


async def test_no_more_results_than_asked_for_are_returned() -> None:
    many = {"results": ANSWERS["searxng"]["results"] * 30}
    async with serving(replying(many)) as server:
        assert len((await search("searxng", server, count=7)).data) == 7


@pytest.mark.parametrize("count", [1, COUNT_LIMIT])
async def test_the_smallest_and_the_greatest_count_are_allowed(count: int) -> None:
    async with serving(replying(ANSWERS["bocha"])) as server:
        assert (await search("bocha", server, count=count)).success


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"count": 0}, "count is 0: give a number from 1 to 50"),
        ({"count": COUNT_LIMIT + 1}, "count is 51: give a number from 1 to 50"),
        (
            {"freshness": "today"},
            f"freshness is 'today': give {WISHES}",
        ),
        ({"query": " "}, "query is empty: give the words to search for"),
    ],
)
async def test_wrong_arguments_are_told_and_nothing_is_sent(arguments: dict[str, Any], why: str) -> None:
    async with serving(replying(ANSWERS["bocha"])) as server:
        refused = await search("bocha", server, **arguments)
    assert (refused.error, server.requests) == (why, [])


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"code": 403, "msg": "no balance"}, "200 OK", "the search engine bocha refuses the key or the format"),
        ({"code": "401", "message": "Invalid API KEY"}, "200 OK", "the search engine bocha refuses the key"),
        ({"code": 429}, "200 OK", "the search engine bocha has too many requests now"),
        ({"code": 500}, "200 OK", "the search engine bocha answered 500"),
        ({}, "401 Unauthorized", "the search engine bocha refuses the key"),
        ({}, "429 Too Many", "the search engine bocha has too many requests now"),
        ({}, "302 Found", "the search engine bocha answered 302"),
        (b"<html>", "200 OK", "the search engine bocha did not answer with JSON"),
        (b"[]", "200 OK", "the search engine bocha did not answer with JSON"),
        (b"[" * 100_000, "200 OK", "the search engine bocha did not answer with JSON"),
    ],
)
async def test_a_refusal_is_found_in_the_status_and_in_the_code(body: object, status: str, why: str) -> None:
    async with serving(replying(body, status=status)) as server:
        refused = await search("bocha", server)
    assert refused.failure is not None
    assert (refused.failure.kind, refused.error) == ("unavailable", why)


@pytest.mark.parametrize(
    "body",
    [
        {"code": 200},
        {"code": 200, "data": None},
        {"code": 200, "data": {"webPages": []}},
        {"code": 200, "data": {"webPages": {"value": "x"}}},
        {"code": 200, "data": {"webPages": {"value": [None, 7, {}, {"url": 7}, {"name": "no url"}]}}},
    ],
)
async def test_an_answer_of_another_shape_holds_no_results(body: object) -> None:
    async with serving(replying(body)) as server:
        found = await search("bocha", server)
    assert (found.data, found.text) == ([], "Nothing was found.")


async def test_a_result_with_a_strange_url_has_no_site() -> None:
    async with serving(replying({"results": [{"url": "http://[", "title": 7}]})) as server:
        found = await search("tavily", server)
    assert found.data == [{"title": "", "url": "http://[", "snippet": "", "summary": "", "site": "", "published": ""}]


@pytest.mark.parametrize(("length", "kept"), [(searching.TEXT_LIMIT, 4_000), (searching.TEXT_LIMIT + 1, 4_000)])
async def test_a_field_has_at_most_the_limit_of_characters(length: int, kept: int) -> None:
    found = {"results": [{"url": URL, "content": "x" * (length - 1) + "y"}]}
    async with serving(replying(found)) as server:
        snippet = (await search("tavily", server)).data[0]["snippet"]
    assert (len(snippet), snippet.endswith("y")) == (kept, length == kept)


@pytest.mark.parametrize("more", [0, 1])
async def test_a_result_whose_url_cannot_be_fetched_is_left_out(more: int) -> None:
    url = "https://example.org/" + "x" * (URL_LIMIT - 20 + more)
    async with serving(replying({"results": [{"url": url}, {"url": URL}]})) as server:
        found = (await search("tavily", server)).data
    assert [each["url"] for each in found] == [url, URL][more:]


async def test_a_long_answer_and_a_slow_engine_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(json.dumps(ANSWERS["bocha"]).encode())
    async with serving(replying(ANSWERS["bocha"])) as server:
        monkeypatch.setattr(searching, "ANSWER_LIMIT_BYTES", size)
        assert (await search("bocha", server)).success
        monkeypatch.setattr(searching, "ANSWER_LIMIT_BYTES", size - 1)
        long = await search("bocha", server)
    assert long.error == f"the answer of the search engine has more than {size - 1} bytes"

    async def silent(path: str, writer: Any) -> None:
        await writer.drain()
        await closed.wait()

    import asyncio

    closed = asyncio.Event()
    monkeypatch.setattr(searching, "DEADLINE_S", 0.2)
    async with serving(silent, writes=True) as server:
        slow = await search("bocha", server)
        closed.set()
    assert slow.error == "the search engine bocha cannot be reached"


def test_the_first_engine_with_a_variable_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    for name in reversed(VARIABLES):
        monkeypatch.setenv(name, "http://localhost:8080" if name == "SEARXNG_URL" else "k-1")
        provider = WebSearchTool()._provider
        assert provider is not None
        taken.append(provider.name)
    assert taken == ["searxng", "brave", "tavily", "bocha"]


def test_without_a_variable_the_developer_reads_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        WebSearchTool()
    assert str(refused.value) == (
        "web_search has no search engine: set one of BOCHA_API_KEY, TAVILY_API_KEY, BRAVE_API_KEY, SEARXNG_URL, "
        "or use WebSearchTool('ddgs')"
    )
    with pytest.raises(ConfigurationError, match="the engine brave needs BRAVE_API_KEY in the environment"):
        WebSearchTool("brave")
    with pytest.raises(ConfigurationError, match="is not a search engine: use bocha, tavily, brave, searxng or ddgs"):
        WebSearchTool("google")  # type: ignore[arg-type]


async def test_ddgs_needs_no_key_and_gives_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in answers: the package asks hosts of the internet."""
    asked: list[tuple[str, dict[str, Any]]] = []
    hung = threading.Event()
    from ddgs import exceptions

    class DDGS:
        def text(self, query: str, **given: Any) -> list[dict[str, str]]:
            asked.append((query, given))
            if query == "nothing":
                raise exceptions.DDGSException("No results found.")
            if query == "hangs":
                hung.wait(PATIENCE_S)
            if query == "down":
                raise exceptions.DDGSException("no engine answers")
            return [{"title": "Tide", "href": URL, "body": "High at noon"}]

    package = ModuleType("ddgs")
    package.DDGS = DDGS  # type: ignore[attr-defined]
    registry = ToolRegistry()
    registry.register(WebSearchTool("ddgs"))
    monkeypatch.setitem(sys.modules, "ddgs", package)
    monkeypatch.setitem(sys.modules, "ddgs.exceptions", exceptions)
    found = await registry.ainvoke("web_search", {"query": "tide", "freshness": "oneWeek", "count": 3})
    none = await registry.ainvoke("web_search", {"query": "nothing"})
    down = await registry.ainvoke("web_search", {"query": "down"})
    monkeypatch.setattr(searching, "DEADLINE_S", 0.1)
    hangs = await registry.ainvoke("web_search", {"query": "hangs"})
    hung.set()
    assert hangs.error == "the search engines of ddgs cannot be reached"
    shape = {"title": "Tide", "url": URL, "snippet": "High at noon", "summary": "", "site": "example.org"}
    assert found.data == [{**shape, "published": ""}]
    assert asked[0] == ("tide", {"timelimit": "w", "max_results": 3})
    assert (none.text, down.error) == ("Nothing was found.", "the search engines of ddgs cannot be reached")


def test_without_the_packages_the_developer_reads_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'toolwire\[web,ddgs\]'"):
        WebSearchTool("ddgs")
    monkeypatch.delitem(sys.modules, "toolwire.builtin.web.searching")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'toolwire\[web\]'"):
        WebSearchTool("bocha", key="k-1")


def test_a_search_is_sent_and_its_results_are_untrusted() -> None:
    assert WebSearchTool.effects.kinds == {"read", "send"}
    assert WebSearchTool.effects.labels == {"untrusted"}
