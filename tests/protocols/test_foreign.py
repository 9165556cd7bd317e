"""Calls in other models' wrappings: read or refused, in every text format, and never an answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.processor import LINEAR, growth, milliseconds
from tests.protocols.wrappings import READ, REFUSED, Wrapping
from toolwire import ToolSpec
from toolwire.protocols import get

FORMATS = ["xml", "json"]
TEXT_FORMATS = ["attp", *FORMATS]


def search(query: str, limit: int = 10, tags: list[str] | None = None) -> list[str]:
    """Finds pages."""
    return [query] * limit


def get_weather(city: str = "Oslo", exact: bool = False) -> str:
    """Tells the weather."""
    return f"{city} {exact}"


TOOLS = [ToolSpec.from_function(search), ToolSpec.from_function(get_weather)]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "otters"}),
    ("search", {"query": 'a (b) [c] "d" it\'s', "limit": 3}),
    ("search", {"query": "水獭", "tags": ["x", "y z"]}),
    ("get_weather", {"city": "Ås", "exact": True}),
    ("search", {"query": "name=search, {x}: 1"}),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("wrapping", READ.values(), ids=READ)
def test_a_wrapping_with_one_reading_is_read_and_told(wrapping: Wrapping, format: str) -> None:
    for name, arguments in CALLS:
        text = wrapping(name, arguments)
        reply = get(format).parse(text, TOOLS)
        assert [(call.name, dict(call.arguments)) for call in reply.calls] == [(name, arguments)], (text, reply)
        assert reply.problems or format == "json"
        assert not reply.is_refused


@pytest.mark.threat(24)
@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize(
    "wrapping", [*READ.values(), *REFUSED.values()], ids=[*READ, *(f"{name}, refused" for name in REFUSED)]
)
def test_the_shape_of_a_call_is_never_an_answer(wrapping: Wrapping, format: str) -> None:
    protocol = get(format)
    for name, arguments in CALLS:
        for around in ("{}", "I look it up.\n{}", "I look it up.\n\n{}\n\nThen I tell you."):
            text = around.format(wrapping(name, arguments)) if "{}" in around else around
            reply = protocol.parse(text, TOOLS)
            assert reply.calls or reply.is_refused, (text, reply)
            assert not (reply.calls and reply.is_refused)


PROSE = [
    "I used search to find it: there are 3 otters.",
    "The tool `search(query='x')` finds pages, and `get_weather()` tells the weather.",
    "Call search(query) with a word; get_weather takes a city (such as Oslo).",
    "Tools: search, get_weather.",
    "1. search finds pages\n2. get_weather: tells the weather",
    '> [search(query=\'x\')]\n> <function_call>{"name": "search", "arguments": {}}</function_call>\nSo it was.',
    'It wrote `<invoke name="search">` in its reply.',
    "<think>[search(query='x')]</think>There are 3 otters.",
    '<tool_response>\n<function_call>{"name": "search", "arguments": {}}</function_call>\n</tool_response>',
    "In Python:\n```python\npages = search(query='x')\nprint(pages)\n```\nThat prints them.",
    "The word search = a look at many pages. Action: none needed.",
    '{"name": "Ada", "age": 36}',
    '{"search": "a word", "count": 3}',
    '{"replies": [{"name": "search", "arguments": {}}]}',
    'It wrote "<function_call>{"name": "search", "arguments": {}}</function_call>" there.',
    'It wrote "<search><query>x</query></search>" there, or `<search><query>x</query></search>`.',
    "> <search><query>x</query></search>\nSo it was.",
    "a < b and search > c: [1, 2, 3] (see above)",
    "Action items:\n- search the archive\n- get_weather for Oslo",
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", PROSE)
def test_prose_that_mentions_a_tool_is_an_answer(text: str, format: str) -> None:
    reply = get(format).parse(text, TOOLS)
    assert (reply.calls, reply.problems) == ((), ())
    assert reply.text


def _cut(text: str, seed: int) -> list[str]:
    chance, pieces, position = random.Random(seed), list[str](), 0
    while position < len(text):
        size = 1 if seed == 0 else chance.randint(1, 12)
        pieces.append(text[position : position + size])
        position += size
    return pieces


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize(
    "wrapping", [*READ.values(), *REFUSED.values()], ids=[*READ, *(f"{name}, refused" for name in REFUSED)]
)
def test_a_stream_reads_what_parse_reads(wrapping: Wrapping, format: str) -> None:
    text = f"I look.\n{wrapping(*CALLS[1])}\n"
    whole = get(format).parse(text, TOOLS)
    for seed in range(4):
        stream = get(format).stream(TOOLS)
        for piece in _cut(text, seed):
            stream.feed(piece)
        assert stream.reply() == whole


PUMPS = {
    **{
        name: lambda n, wrapping=wrapping: (wrapping(*CALLS[0]) + "\n") * (n // len(wrapping(*CALLS[0])))
        for name, wrapping in READ.items()
    },
    "open lists": lambda n: "[search(" * (n // 8),
    "open lines": lambda n: "[search(\n" * (n // 9),
    "open tokens": lambda n: "<|tool_call|>" * (n // 13),
    "open tags": lambda n: "<invoke name=" * (n // 13),
    "tags with spaces": lambda n: "search <a " + " " * n,
    "actions": lambda n: "Action: search\n" * (n // 15),
    "parameters": lambda n: '<invoke name="search">' + '<parameter name="a">' * (n // 20),
    "keys": lambda n: '"search": {' * (n // 11),
    "code spans": lambda n: "`search " * (n // 8),
    "observations": lambda n: "search\nObservation: x\nAction: y\n" * (n // 31),
    "fences": lambda n: "search\n```python\nx\n```\n" * (n // 23),
    "minus": lambda n: f"[search(query={'-' * n}1)]",
}
SIZE = 65_536
HALF = SIZE // 2
LIMIT_MS = 200


@pytest.mark.threat(46)
@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Any, format: str) -> None:
    parse = get(format).parse
    assert growth(lambda text: parse(text, TOOLS), pump(HALF // 4), pump(HALF)) <= LINEAR


@pytest.mark.threat(46)
@pytest.mark.parametrize("format", ["json"])
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_the_worst_text_is_read_in_time(pump: Any, format: str) -> None:
    text = pump(SIZE)
    assert milliseconds(lambda: get(format).parse(text, TOOLS), enough=LIMIT_MS) <= LIMIT_MS
