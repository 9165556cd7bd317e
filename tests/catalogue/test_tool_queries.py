"""Queries of people and models, in English and Chinese, find the right one of more than a thousand real tools."""

from __future__ import annotations

import random
from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from benchmarks.search import search_of, service_search
from benchmarks.tokens import quick_tokenizer

from tests.catalogue.service_tools import GOOGLE, TENCENT, service_tools
from tests.catalogue.tool_queries import Find, Query, queries, recall
from toolwire.builtin.search_tools import search_tools_tool
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.protocols import get
from toolwire.vocabulary.calls import NOBODY

ENGLISH, CHINESE = queries("test", "english"), queries("test", "chinese")
LEAST = {"english": 0.8, "chinese": 0.7}
"""Recall among the first five."""


@pytest.fixture
def found() -> Find:
    return service_search()


def test_tools_and_queries_are_as_many_as_they_claim() -> None:
    assert len(service_tools()) == len({tool.name for tool in service_tools()}) >= 1_000
    assert len({*GOOGLE, "slack", *TENCENT}) >= 15
    assert (len(ENGLISH) >= 120, len(CHINESE) >= 80) == (True, True)
    texts = [query.text for query in (*ENGLISH, *CHINESE, *queries("development", "english"))]
    assert len(set(texts)) == len(texts)


def test_every_answer_is_a_tool() -> None:
    names = [tool.name for tool in service_tools()]
    parts = [queries(part, language) for part in ("test", "development") for language in ("english", "chinese")]
    answers = {answer for part in parts for query in part for answer in query.answers}
    assert [
        one for one in sorted(answers) if not any(Query(text="", answers=(one,)).is_answered_by(n) for n in names)
    ] == []


def test_no_query_is_taken_from_a_description() -> None:
    descriptions = "\n".join(tool.description.lower() for tool in service_tools())
    assert [query.text for query in (*ENGLISH, *CHINESE) if query.text.lower() in descriptions] == []


def test_english_queries_find_their_tools(found: Find) -> None:
    assert recall(ENGLISH, found) >= LEAST["english"]


def test_chinese_queries_find_their_tools(found: Find) -> None:
    assert recall(CHINESE, found) >= LEAST["chinese"]


def test_names_alone_and_chance_do_not_suffice() -> None:
    tools = service_tools()
    by_name = search_of(from_schema(tool.name) for tool in tools)
    assert recall(ENGLISH, by_name) < LEAST["english"]
    assert recall(CHINESE, by_name) < LEAST["chinese"]
    chance = random.Random(1)
    names = [tool.name for tool in tools]
    assert recall((*ENGLISH, *CHINESE), lambda _, limit: chance.sample(names, limit)) < 0.1


@pytest.mark.parametrize("protocol", ["attp", "json", "openai", "anthropic"])
def test_a_prompt_with_the_search_and_what_it_found_saves_nine_tenths(protocol: str, found: Find) -> None:
    known = {tool.name: tool for tool in service_tools()}
    search = search_tools_tool(lambda query, limit, _: [known[name] for name in found(query, limit)])
    count = quick_tokenizer()["o200k"]
    assert search.function is not None
    answers = [
        search.function(query=query.text, limit=5, context=SimpleNamespace(caller=NOBODY)).text
        for query in ENGLISH[::10]
    ]

    def cost(tools: Iterable[Tool]) -> int:
        return count(str(get(protocol).describe(tools)))

    searched = cost([search]) + max(map(count, answers))
    assert searched <= 0.1 * cost(known.values())
