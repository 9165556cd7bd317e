"""Calls with the tool as a tag and its parameters as tags inside it: read with one reading, else refused."""

from __future__ import annotations

import pytest

from tests.protocols.test_foreign import TOOLS
from toolwire.protocols import get

CALL = "<search>\n<query>a < b</query>\n<limit>3</limit>\n</search>"
FORMATS = ["xml", "json"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("around", ["{}", "I look it up.\n{}", "{}\nThat is all.", "Look: {}", "```xml\n{}\n```"])
def test_text_around_the_call_does_not_change_it(around: str, format: str) -> None:
    (call,) = get(format).parse(around.replace("{}", CALL), TOOLS).calls
    assert (call.name, call.arguments, call.raw_text) == ("search", {"query": "a < b", "limit": 3}, CALL)


@pytest.mark.parametrize("format", FORMATS)
def test_several_calls_are_read_in_order(format: str) -> None:
    reply = get(format).parse(f"{CALL}\n<get_weather><city>Oslo</city></get_weather>", TOOLS)
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("search", {"query": "a < b", "limit": 3}),
        ("get_weather", {"city": "Oslo"}),
    ]


@pytest.mark.threat(24)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("query", "words"),
        CALL.replace("<query>", '<query type="json">'),
        CALL.replace("limit", "query"),
        CALL.replace("</limit>", ""),
        CALL.removesuffix("</search>"),
        CALL.replace("</search>", "three\n</search>"),
        "<search></search>",
        f"You could write:\n```xml\n{CALL}\n```\nShall I?",
    ],
    ids=["unknown tag", "attribute", "twice", "tag not closed", "call not closed", "text inside", "empty", "fenced"],
)
def test_a_doubt_is_refused(text: str, format: str) -> None:
    reply = get(format).parse(text, TOOLS)
    assert reply.is_refused
    assert not reply.calls


@pytest.mark.threat(24)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("quoted", [f'It wrote "{CALL}" there.', f"<think>{CALL}</think>None.", "A `<search>` tag."])
def test_a_quoted_call_is_text(quoted: str, format: str) -> None:
    reply = get(format).parse(quoted, TOOLS)
    assert (reply.calls, reply.is_refused) == ((), False)
