"""Calls in the text of a native reply: only a text that is nothing but calls has them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.processor import LINEAR, growth
from tests.protocols.test_foreign import CALLS, PUMPS, TOOLS
from tests.protocols.test_leftovers import OFFERED, UNREAD
from tests.protocols.token_damages import FORMS
from tests.protocols.wrappings import READ, Wrapping
from toolwire.protocols.base import REPLY_LIMIT_BYTES
from toolwire.protocols.text_calls import TextCalls, read_text_calls

NOTHING = TextCalls()
QUOTED = TextCalls(has_quoted_calls=True)


def read(text: str) -> list[tuple[str, dict[str, object]]]:
    found = read_text_calls(text, OFFERED)
    assert not found.has_quoted_calls
    return [(call.name, dict(call.arguments)) for call in found.calls]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        'to=functions.weather {"city": "Oslo"}',
        '{"name": "weather", "parameters": {"city": "Oslo"}}',
        '```json\n{"name": "weather", "parameters": {"city": "Oslo"}}\n```',
        '[{"name": "weather", "arguments": {"city": "Oslo"}}]',
        '{"tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]}',
        'Thought: I look.\nAction: weather\nAction Input: {"city": "Oslo"}',
        "weather(city='Oslo')",
    ],
)
def test_a_text_that_is_nothing_but_a_call_is_that_call(text: str) -> None:
    assert read(text) == [("weather", {"city": "Oslo"})]


@pytest.mark.parametrize("wrapping", READ.values(), ids=READ)
def test_every_form_that_the_text_protocols_read_is_read(wrapping: Wrapping) -> None:
    for name, arguments in CALLS:
        text = wrapping(name, arguments)
        found = read_text_calls(text, TOOLS)
        assert [(call.name, dict(call.arguments)) for call in found.calls] == [(name, arguments)], text
        assert read_text_calls(f"I look it up.\n{text}", TOOLS).calls == ()
        assert read_text_calls(f"I look it up.\n{text}", TOOLS).has_quoted_calls


@pytest.mark.parametrize("form", ["json", "xml", "invoke", "TOOLCALL"])
def test_several_calls_are_read_in_order(form: str) -> None:
    given = [("search", {"query": "otters"}), ("get_weather", {"city": "Oslo", "exact": True})]
    found = read_text_calls(FORMS[form](given), TOOLS)
    assert [(call.name, dict(call.arguments)) for call in found.calls] == given


@pytest.mark.parametrize(
    "kind",
    [
        "tokens of another model",
        "a word of JSON in a Python call",
        "a key of another name",
        "an action without its input's label",
        "a token for each end",
    ],
)
def test_a_call_that_cannot_be_read_is_a_problem(kind: str) -> None:
    found = read_text_calls(UNREAD[kind], OFFERED)
    assert (found.calls, found.has_quoted_calls) == ((), False)
    assert [problem.repaired for problem in found.problems] == [False]


def test_a_call_that_was_cut_off_is_a_problem() -> None:
    found = read_text_calls('<tool_call>\n{"name": "weather", "arguments": {"city": "Os', OFFERED)
    assert [problem.repaired for problem in found.problems] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "The weather is fine (as of now).",
        'It wrote `{"name": "weather", "arguments": {"city": "Oslo"}}` there.',
        "> <tool_call>weather</tool_call>\nSo it was.",
        '{"name": "Oslo", "arguments": {"city": "Oslo"}}',
        '{"name": "weather", "arguments": {"city": "Oslo"}, "comment": "as you asked"}',
        '{"name": "weather", "city": "Oslo"}',
        '{"name": "weather"}',
        '{"weather": {"city": "Oslo"}}',
        '[{"name": "weather", "arguments": {}}, {"name": "Oslo", "arguments": {}}]',
        '{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}',
        "```python\nprint(weather('Oslo'))\n```",
        "",
    ],
)
def test_an_answer_that_resembles_or_mentions_a_call_is_none(text: str) -> None:
    assert read_text_calls(text, OFFERED) == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        'I call {"name": "weather", "arguments": {"city": "Oslo"}} for you.',
        'Write it so:\n```json\n{"name": "weather", "arguments": {"city": "Oslo"}}\n```\nThen wait.',
        '<invoke name="now"></invoke>\nThat is the time.',
        '<weather>{"city": "Oslo"</weather>\nThat is the weather.',
    ],
)
def test_a_call_with_prose_around_it_may_be_quoted(text: str) -> None:
    assert read_text_calls(text, OFFERED) == QUOTED


def test_a_repair_of_a_call_is_told() -> None:
    found = read_text_calls('{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}', OFFERED)
    assert [(call.name, dict(call.arguments)) for call in found.calls] == [("weather", {"city": "Oslo"})]
    assert [problem.message for problem in found.problems] == [
        "The arguments of 'weather' stand in a JSON string; it was decoded."
    ]


@pytest.mark.parametrize(("size", "is_read"), [(REPLY_LIMIT_BYTES, True), (REPLY_LIMIT_BYTES + 1, False)])
def test_a_text_over_the_limit_of_a_reply_is_an_answer(size: int, is_read: bool) -> None:
    text = json.dumps({"name": "weather", "arguments": {"city": ""}})
    text = text.replace('""', f'"{"x" * (size - len(text))}"')
    assert bool(read_text_calls(text, OFFERED).calls) is is_read


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(lambda text: read_text_calls(text, TOOLS), pump(8_192), pump(32_768)) <= LINEAR
