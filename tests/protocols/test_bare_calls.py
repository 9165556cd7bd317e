"""Calls in Python syntax, and tools before braces: only a text that is nothing but readable calls makes them."""

from __future__ import annotations

import pytest

from tests.protocols.test_leftovers import FORMATS, OFFERED, calls
from toolwire.protocols import get

REFUSED = [
    'purge(table="t1", table="t2")',
    'purge({"table": "t1", "table": "t2"})',
    'purge(**{"table": "t1"})',
    '<|tool_call_start|>[purge(table="t1", table="t2")]<|tool_call_end|>',
    'purge(table="t1") and weather(city="Oslo")',
    "purge() or now()",
    'purge(table="t1") if broken else now()',
    'purge(table="t1").result',
    '<|python_tag|>purge(table="t1") and weather(city="Oslo")',
    '<|python_tag|>purge(table="t1").result',
    '<|python_tag|>purge(table="t1") < 3',
    'I will not run\n\npurge(table="t1")\n\nunless you confirm.',
    'if x > 5\n    purge(table="t1")\n',
    'for table in tables:\n    purge(table="t1")\n',
    'Traceback (most recent call last):\n  File "a.py", line 3\n    purge(table="t1")\nValueError: no',
    'purge(table="all", where=None)\n\n    Empties a table.\n',
    'weather(city="Oslo")\nweather(Oslo)',
    'weather(city="Oslo")\n2. weather(city="Rome")',
    'weather(city="Oslo")\nunknown(x=1)',
    'purge {"table": "t1"}',
    'purge\n{"table": "t1"}',
    'purge: {"table": "t1"}',
    '<｜DSML｜invoke name="weather"><｜DSML｜parameter name="city">Oslo</｜DSML｜parameter></｜DSML｜invoke>',
    '<｜DSML｜invoke name="other"></｜DSML｜invoke>',
    "<start_function_call>call:weather{city:<escape>Oslo<escape>}<end_function_call>",
    "<start_function_call>call:other{}<end_function_call>",
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", REFUSED)
def test_a_text_with_more_or_less_than_calls_is_refused(text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)


ANSWERS = [
    "purge() deletes every table, so I did not call it.",
    'def purge(table: str = "all") -> None:\n    """Empties a table."""',
    "purge {table} is how I write it.",
    'Run this:\n```js\npurge(table="t1")\n```',
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", ANSWERS)
def test_prose_that_begins_with_a_tool_is_an_answer(text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.problems) == ((), ())


OSLO, NOW = ("weather", {"city": "Oslo"}), ("now", {})


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        'weather(city="Oslo")\n\nnow()\n',
        '[weather(city="Oslo"), now()]',
        '<think>weather(city="Rome")</think>\nweather(city="Oslo")\nnow()',
        '```\nweather(city="Oslo")\nnow()\n```',
        '```tool_code\nweather(city="Oslo")\nnow()\n```',
        '<|python_tag|>weather(city="Oslo"); now()<|eom_id|>',
        '<|tool_call_start|>[weather(city="Oslo")]<|tool_call_end|> and <|tool_call_start|>[now()]<|tool_call_end|>',
    ],
)
def test_a_text_that_is_nothing_but_calls_makes_them_all(text: str, format: str) -> None:
    assert calls(get(format).parse(text, OFFERED)) == [OSLO, NOW]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("language", ["js", "javascript", "c", "bash", "sql", "html"])
@pytest.mark.parametrize("call", ['purge(table="t1")', '{"name": "purge", "arguments": {"table": "t1"}}'])
def test_a_fence_of_another_language_makes_no_call(call: str, language: str, format: str) -> None:
    assert get(format).parse(f"```{language}\n{call}\n```", OFFERED).calls == ()


@pytest.mark.parametrize("format", FORMATS)
def test_an_unknown_tool_behind_a_recipient_is_named(format: str) -> None:
    reply = get(format).parse('to=functions.wether {"city": "Oslo"}', OFFERED)
    assert calls(reply) == [("wether", {"city": "Oslo"})]
