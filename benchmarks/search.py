"""The hit rates of tool search among two thousand real tools, the tokens that it saves, and the time that it takes."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace

from tests.catalogue.service_tools import service_tools
from tests.catalogue.tool_queries import Find, Language, Part, queries, recall

from benchmarks.timing import Figure, show
from benchmarks.tokens import Count, quick_tokenizer
from toolwire.builtin.search_tools import FOUND_DEFAULT, search_tools_tool
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.search import ToolSearch
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.protocols import get
from toolwire.vocabulary.calls import NOBODY

TOOLS = 1_000
PARTS: tuple[Part, ...] = ("test", "development")
LANGUAGES: tuple[Language, ...] = ("english", "chinese")
ROUNDS = 5
MOST_FOUND = 10
"""Tools that a query finds at most; the largest number whose hit rate is measured."""


def figures() -> list[Figure]:
    """Milliseconds: the first index, the index after one more tool has come, one query (the median of all)."""
    tools = service_tools()[:: len(service_tools()) // TOOLS][:TOOLS]
    entries = [Entry(name=tool.name, tool=tool, handle=tool) for tool in tools]
    last = entries.pop()
    searches = [ToolSearch(lambda: entries) for _ in range(ROUNDS)]
    first = [_ms(search, "send an email") for search in searches]
    entries.append(last)
    again = [_ms(search, "send an email") for search in searches]
    texts = [query.text for language in ("english", "chinese") for query in queries("test", language)]
    asked = [_ms(searches[0], text) for text in texts]
    return [
        Figure(
            name="index of 1,000 tools, when first searched", ratio=statistics.median(first), limit=1_000, unit="ms"
        ),
        Figure(name="the same after one more has come", ratio=statistics.median(again), limit=300, unit="ms"),
        Figure(name="one query among 1,000 tools", ratio=statistics.median(asked), limit=10, unit="ms"),
    ]


def recalls() -> dict[str, dict[str, float]]:
    """The share of queries with the right tool among the first so many, by set of queries and searched text."""
    ways = {"names, descriptions, parameters": service_search(), "names alone": search_of(_bare_tools())}
    asked = {f"{part}, {language}": queries(part, language) for part in PARTS for language in LANGUAGES}
    return {
        f"{what}, {way}": {str(first): recall(texts, find, first) for first in (1, 5, 10)}
        for way, find in ways.items()
        for what, texts in asked.items()
    }


@cache
def service_search() -> Find:
    """A search over all service tools. Its index is built once."""
    return search_of(service_tools())


def search_of(tools: Iterable[Tool]) -> Find:
    """A search over some tools that gives their names, at most `MOST_FOUND`. It runs each query once."""
    entries = [Entry(name=tool.name, tool=tool, handle=tool) for tool in tools]
    search = ToolSearch(lambda: entries)
    found = cache(lambda query: [entry.name for entry in search.find(query, MOST_FOUND)])
    return lambda query, limit: found(query)[:limit]


def prompt_tokens(protocol: str, count: Count) -> tuple[int, int, int]:
    """Tokens of a prompt with all tools, of one with the search, and of what one search mostly gives."""
    tools = {tool.name: tool for tool in service_tools()}
    find = service_search()
    search = search_tools_tool(lambda query, limit, _: [tools[name] for name in find(query, limit)])
    assert search.function is not None
    asked = [query.text for language in LANGUAGES for query in queries("test", language)]
    answers = [
        count(search.function(query=query, limit=FOUND_DEFAULT, context=SimpleNamespace(caller=NOBODY)).text)
        for query in asked
    ]
    whole, short = (count(str(get(protocol).describe(told))) for told in (tools.values(), [search]))
    return whole, short, round(statistics.median(answers))


def _bare_tools() -> list[Tool]:
    return [from_schema(tool.name) for tool in service_tools()]


def main() -> int:
    """Everything, as `docs/tools.md` has it."""
    print(f"{len(service_tools())} tools")
    for what, shares in recalls().items():
        print(f"  {what:<60}" + "".join(f"  @{first} {share:.3f}" for first, share in shares.items()))
    for protocol in ("attp", "json", "openai"):
        whole, short, answer = prompt_tokens(protocol, quick_tokenizer()["o200k"])
        print(f"  {protocol:<10} all {whole:>9,}  with the search {short:>6,}  one search {answer:>6,} tokens")
    timed = figures()
    show("Time", timed)
    return 0 if all(figure.is_met for figure in timed) else 1


def _ms(search: ToolSearch, query: str) -> float:
    started = time.perf_counter()
    search.find(query, 5)
    return (time.perf_counter() - started) * 1_000


if __name__ == "__main__":
    sys.exit(main())
