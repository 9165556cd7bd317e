"""A reader leaves nothing over: a mark without its call refuses the reply, and no call runs without an argument."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.protocols.replies import Written, text_of
from tests.protocols.test_foreign import TOOLS
from tests.protocols.token_damages import FORMS, check_damages
from toolwire import ToolSpec
from toolwire.protocols import get
from toolwire.vocabulary.calls import Reply


def purge(table: str = "all", where: str | None = None) -> None:
    """Empties a table."""


def weather(city: str, days: int = 1) -> str:
    """Tells the weather."""
    return f"{city} {days}"


def now() -> str:
    """Tells the time."""
    return ""


def toggle(on: bool) -> None:
    """Switches the light."""


OFFERED = [ToolSpec.from_function(tool) for tool in (purge, weather, now, toggle)]
FORMATS = ["json", "xml"]


def calls(reply: Reply) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, dict(call.arguments)) for call in reply.calls]


def pairs(inner: str) -> str:
    return f"<tool_call>purge\n{inner}\n</tool_call>"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "inner",
    [
        "<arg_key>table</arg_key>",
        "<arg_value>t1</arg_value>",
        "<arg_key>table</arg_key>\n<arg_key>where</arg_key>\n<arg_value>t1</arg_value>\n<arg_value>id=1</arg_value>",
        "<arg_key>table<arg_value>t1</arg_value></arg_key>",
        "<arg_key>table</arg_key><arg_value>t1</arg_value><arg_key>where</arg_key>",
        "<arg_key>table</arg_key><arg_value>t1</arg_value><arg_value>id=1</arg_value>",
        "<arg_key>table</arg_key><arg_value>t1<arg_key>where</arg_key><arg_value>id=1</arg_value>",
        "<arg_key>table</arg_key><arg_key>table</arg_key><arg_value>t1</arg_value>",
        "<arg_key>table</arg_key><arg_value>t1</arg_value>, and\n<arg_key>where</arg_key><arg_value>id=1</arg_value>",
        "<arg_key>table</arg_key><arg_value>t1</arg_value>and<arg_key>where</arg_key><arg_value>id=1</arg_value>",
        "<arg_key>table</arg_key><arg_value>t1</arg_value>\nnow\n<arg_key>where</arg_key><arg_value>id=1</arg_value>",
    ],
)
def test_keys_and_values_that_are_no_pairs_are_refused(inner: str, format: str) -> None:
    reply = get(format).parse(pairs(inner), OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)


@pytest.mark.parametrize("format", FORMATS)
def test_whole_pairs_are_read(format: str) -> None:
    inner = "<arg_key>table</arg_key><arg_value>t1</arg_value>\n<arg_key>where</arg_key>\n<arg_value>id=1</arg_value>"
    assert calls(get(format).parse(pairs(inner), OFFERED)) == [("purge", {"table": "t1", "where": "id=1"})]


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_behind_other_text_is_read_too(format: str) -> None:
    call = '<|tool_call_start|>[weather(city="{}")]<|tool_call_end|>'
    reply = get(format).parse(f"First.{call.format('Oslo')}Second.{call.format('Rome')}", OFFERED)
    assert calls(reply) == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    assert reply.text == "First.\nSecond."


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("blank", ["▁", "_"])
@pytest.mark.parametrize("kind", ["", "function<｜tool▁sep｜>"])
def test_calls_between_separators_are_all_read(kind: str, blank: str, format: str) -> None:
    text = (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{kind}"
        '<steptml:invoke name="weather"><steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke>'
        f'<｜tool▁call▁end｜><｜tool▁sep｜><｜tool▁call▁begin｜>{kind}<steptml:invoke name="now"></steptml:invoke>'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )
    reply = get(format).parse(text.replace("▁", blank), OFFERED)
    assert calls(reply) == [("weather", {"city": "Oslo"}), ("now", {})]


UNREAD = {
    "tokens of another model": '<|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>',
    "a word of JSON in a Python call": "<|tool_call_start|>[toggle(on=true)]<|tool_call_end|>",
    "a key of another name": '{"name": "purge", "argument": {"table": "t1"}}',
    "a key of a made-up name": '{"name": "purge", "given": {"table": "t1"}}',
    "an action without its input's label": 'Action: purge\n{"table": "t1"}',
    "no name": '<tool_call>\n{"arguments": {"table": "t1"}}\n</tool_call>',
    "parameters without a call": '<parameter name="table">t1</parameter>\n</invoke>',
    "a token for each end": "<|tool_calls_section_begin|>purge<|tool_calls_section_end|>",
}


@pytest.mark.parametrize("format", ["attp", *FORMATS])
@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_marks_of_a_call_are_never_an_answer(text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)


ANSWERS = [
    "A call stands between <tool_call> and </tool_call> there.",
    "Write `<|tool_call|>` before it, or `<arg_key>`.",
    'Like this:\n```xml\n<invoke name="other">\n</invoke>\n```\nThat is the form.',
    "The capital is Oslo.<|im_end|>",
    "<|channel|>final<|message|>The capital is Oslo.",
    "The weather (as of now) = fine; purge nothing.",
    '{"name": "Oslo", "arguments": {"city": "Oslo"}, "size": 3}',
    '{"weather": "fine", "now": "noon"}',
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", ANSWERS)
def test_a_text_that_explains_calls_is_an_answer(text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.problems) == ((), ())


BESIDE: dict[str, Iterable[str]] = {
    "a parameter beside the arguments": (
        '<tool_call>\n[{"name": "purge", "arguments": {"table": "t1"}, "where": "id=1"}]\n</tool_call>',
        '{"action": "purge", "action_input": {"table": "t1"}, "where": "id=1"}',
        '[TOOL_CALLS] [{"name": "purge", "arguments": {"table": "t1"}, "where": "id=1"}]',
    ),
    "more behind the bracket": (
        "<|python_tag|>purge.call(table='t1') where='id=1'",
        "purge(table='t1'), where='id=1')",
        '<function=purge>{"table": "t1",} "where": "id=1"</function>',
    ),
    "a parameter or arguments on another line": (
        "purge(table='t1')\n<where>id=1</where>",
        'purge(table=\'t1\')\nand "arguments": {"where": "id=1"}',
        "<tool_call><name>purge</name><params><table>t1</table></params></tool_call>\n<where>id=1</where>",
    ),
    "two strings for one": ("purge(table='t''1')", "[purge(table=\"t\" '1')]"),
    "CDATA that does not begin": ("<purge><table>t1]]></table></purge>",),
    "CDATA that ends twice": (
        "<tool_call><name>purge</name><params><table><![CDATA[t1]]>]]></table></params></tool_call>",
    ),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in BESIDE.items() for text in texts])
def test_a_call_with_a_part_left_over_is_refused(kind: str, text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True), kind


@pytest.mark.threat(24)
@pytest.mark.parametrize("seed", range(4))
def test_no_lost_mark_changes_an_argument_or_loses_a_call_in_silence(seed: int) -> None:
    assert check_damages(200, seed) > 10


@pytest.mark.parametrize("form", FORMS)
def test_two_calls_of_a_form_are_both_read_or_the_reply_is_refused(form: str) -> None:
    given = [("search", {"query": "otters", "limit": 3}), ("get_weather", {"city": "Oslo", "exact": True})]
    for name in FORMATS:
        reply = get(name).parse(FORMS[form](given), TOOLS)
        assert calls(reply) == given or (reply.is_refused and not reply.calls)


_ATTP_MARK = re.compile(r"'{3}|\[tool_call\]|\b(?:thought|status|target|code)(?= =)|[\"=\[\]]")


@pytest.mark.threat(24)
def test_no_lost_mark_of_a_document_changes_its_program() -> None:
    code = "rows = search(query='otters', limit=3)\n__result__ = rows\n"
    text = text_of(Written(thought="find it", target="t", code=code))
    start, end = text.index(code), text.index(code) + len(code)
    marks = [found for found in _ATTP_MARK.finditer(text) if found.end() <= start or found.start() >= end]
    places = {place for mark in marks for place in mark.span()}
    for mark in marks:
        without = text[: mark.start()] + text[mark.end() :]
        shifted = {place if place <= mark.start() else place - len(mark[0]) for place in places - {mark.end()}}
        moved = [without[:place] + mark[0] + without[place:] for place in shifted]
        for damaged in (without, text[: mark.end()] + text[mark.start() :], *moved):
            reply = get("attp").parse(damaged, TOOLS)
            # A mark that moved into the program is a part of it.
            codes = [call.arguments["code"].replace(mark[0], "").strip() for call in reply.calls]
            assert codes == [code.replace(mark[0], "").strip()] or (reply.is_refused and not codes), damaged
