"""Lists and objects as tags, and text around CDATA, in replies in XML."""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.test_json_texts import described, tool_of
from tests.vocabulary.strategies import unhurried
from toolwire import BaseTool, ToolParameter, ToolResult
from toolwire.definition.from_schema import from_schema
from toolwire.protocols import get
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded
from toolwire.protocols.xml.render import cdata
from toolwire.seeds import parse_tool_calls
from toolwire.vocabulary.calls import Reply

XML = get("xml")
ROW = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}}}
TOOL = from_schema(
    "take",
    "",
    {
        "type": "object",
        "properties": {
            "urls": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            "row": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "null"}]},
            "perhaps": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "free": {"type": "object"},
            "either": {"type": ["array", "object"]},
            "text": {"type": "string"},
            "any": {},
        },
        "$defs": {"Row": ROW},
    },
)


def call(params: str) -> str:
    return f"<tool_call><name>take</name><params>{params}</params></tool_call>"


def read(params: str) -> Reply:
    return XML.parse(call(params), [TOOL])


LIST, OBJECT = "Its tags were read as a list.", "Its tags were read as an object."


@pytest.mark.parametrize(
    ("params", "arguments", "told"),
    [
        ("<urls><item><![CDATA[a]]></item></urls>", {"urls": ["a"]}, LIST),
        ("<urls>\n  <url>a &amp; b</url>\n  <!-- two -->\n  <url>10</url>\n</urls>", {"urls": ["a & b", "10"]}, LIST),
        ("<urls><item><![CDATA[</item></urls>]]></item></urls>", {"urls": ["</item></urls>"]}, LIST),
        ("<urls><item>\n<![CDATA[ a ]]>\n</item></urls>", {"urls": [" a "]}, LIST),
        ("<urls><item>a & b</item><item/></urls>", {"urls": ["a & b", ""]}, LIST),
        ("<numbers><n>1</n><n> 2 </n></numbers>", {"numbers": [1, 2]}, LIST),
        ("<pair><p>1</p><p>2</p></pair>", {"pair": [1, "2"]}, LIST),
        ("<rows><row><a>1</a><b><i>x</i></b></row></rows>", {"rows": [{"a": 1, "b": ["x"]}]}, LIST),
        ("<rows><row>{\"a\": 1}</row></rows>", {"rows": [{"a": 1}]}, LIST),
        ("<row><a>1</a></row>", {"row": {"a": 1}}, OBJECT),
        ("<free><a>1</a><b>x</b></free>", {"free": {"a": 1, "b": "x"}}, OBJECT),
        ("<either><a>1</a><a>2</a></either>", {"either": [1, 2]}, LIST),
        ("<either><a>1</a><b>2</b></either>", {"either": {"a": 1, "b": 2}}, OBJECT),
        ('<param name="urls"><item>a</item></param>', {"urls": ["a"]}, LIST),
        ("<urls/>", {"urls": []}, "An empty text was read as an empty list."),
        ("<urls> </urls>", {"urls": []}, "An empty text was read as an empty list."),
        ("<perhaps/>", {"perhaps": []}, "An empty text was read as an empty list."),
        ("<perhaps></perhaps>", {"perhaps": []}, "An empty text was read as an empty list."),
        ("<row/>", {"row": {}}, "An empty text was read as an empty object."),
        ("<row><![CDATA[]]></row>", {"row": {}}, "An empty text was read as an empty object."),
        ("<free></free>", {"free": {}}, "An empty text was read as an empty object."),
    ],
)  # fmt: skip
def test_tags_are_read_as_the_list_or_object_that_the_tool_takes(
    params: str, arguments: dict[str, Any], told: str
) -> None:
    reply = read(params)
    assert [(each.arguments) for each in reply.calls] == [arguments]
    assert [(problem.message, problem.repaired) for problem in reply.problems] == [(told, True)]
    stream = XML.stream([TOOL])
    for character in call(params):
        stream.feed(character)
    assert stream.reply() == reply


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ("<urls><item>a</item>x</urls>", "Text stands between the tags in the value. Write only tags in it, or JSON."),
        (
            "<urls><item>a</item><![CDATA[b]]></urls>",
            "Text stands between the tags in the value. Write only tags in it, or JSON.",
        ),
        (
            "<urls><item id='1'>a</item></urls>",
            "<item> in a value has attributes. Write only text or tags in it, or the value as JSON.",
        ),
        (
            "<urls><a>1</a><b>2</b></urls>",
            "The tags in the value differ, and it is a list. Write one <item> for each item.",
        ),
        ("<row><a>1</a><a>2</a></row>", "<a> is given twice in the value, which is an object. Write it once."),
        (
            "<row><a><x>1</x></a></row>",
            "Tags stand in <a>, and it must be an integer. Put the whole value into CDATA.",
        ),
        (
            "<urls><item><b>x</b></item></urls>",
            "Tags stand in <item>, and it must be a string. Put the whole value into CDATA.",
        ),
        ("<either><a>1</a></either>", "The tag in the value may be an item or a field. Write JSON, in CDATA."),
    ],
)
def test_tags_with_no_or_two_readings_are_refused_with_the_reason(params: str, reason: str) -> None:
    name = params[1 : params.index(">")]
    reply = read(params)
    assert reply.calls == ()
    assert [(problem.place, problem.message) for problem in reply.problems] == [
        ("line 1", f"<{name}> cannot be read: {reason}")
    ]


@pytest.mark.parametrize("params", ["<text><item>a</item></text>", "<any><item>a</item></any>"])
def test_tags_stay_text_where_the_tool_takes_texts(params: str) -> None:
    (found,) = read(params).calls
    assert list(found.arguments.values()) == ["<item>a</item>"]
    assert read(params.replace("a", "<![CDATA[a]]>")).calls == ()


def test_tags_have_a_depth() -> None:
    tool = tool_of({"type": "array"})
    for levels, is_read in ((60, True), (70, False)):
        tags = "<it>" * levels + "</it>" * levels
        reply = XML.parse(f"<tool_call><name>take</name><params>{tags}</params></tool_call>", [tool])
        assert bool(reply.calls) == is_read or reply.is_refused


def in_tags(value: Any) -> str:
    """Writes a list or an object as tags, and a text as CDATA or escaped."""
    if isinstance(value, list):
        return "".join(f"<item>{in_tags(item)}</item>" for item in value)
    if isinstance(value, dict):
        return "".join(f"<{name}>{in_tags(item)}</{name}>" for name, item in value.items())
    if isinstance(value, str):
        return cdata(value) if len(value) % 2 or not value.strip() else escape(value)
    return json.dumps(value)


@settings(unhurried)
@given(data=described())
def test_tags_are_the_value_that_they_were_made_of(data: tuple[dict[str, Any], Any]) -> None:
    schema, value = data
    reply = XML.parse(call(f"<it>{in_tags(value)}</it>"), [tool_of(schema)])
    assert [each.arguments for each in reply.calls] == [{"it": value}]
    assert all(problem.repaired for problem in reply.problems)
    assert reply.problems != ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<![CDATA[a]]><![CDATA[b]]>c", "abc"),
        ("<![CDATA[a]]> b ", "a b "),
        ("a<![CDATA[<b>]]>", "a<b>"),
        ("a &lt; <![CDATA[ & ]]> &amp;<![CDATA[c]]>\n", "a <  &  &c"),
        ("\n <![CDATA[a]]> \n", "a"),
    ],
)
def test_text_and_sections_are_one_text(value: str, text: str) -> None:
    params = f"<text>{value}</text><numbers>[1]</numbers>"
    reply = read(params)
    assert [each.arguments for each in reply.calls] == [{"text": text, "numbers": [1]}]
    assert reply.problems == ()


@pytest.mark.parametrize("value", ["<![CDATA[a]]> & b", "a & b <![CDATA[c]]>", "<![CDATA[a]]>b<i>c</i>"])
def test_text_that_is_not_well_formed_beside_a_section_is_refused(value: str) -> None:
    assert read(f"<text>{value}</text>").is_refused


def test_an_end_of_cdata_in_tags_is_refused() -> None:
    reply = read("<urls><item>a]]>b</item></urls>")
    assert [problem.message for problem in reply.problems] == [
        "It is not clear where the CDATA of <urls> begins and ends. Write it once."
    ]


PIECES = st.lists(
    st.one_of(
        st.text("ab &<>]'\n", max_size=5).map(lambda text: (text, escape(text))),
        st.text("ab &<>]'\n", max_size=5).map(lambda text: (text, cdata(text))),
    ),
    min_size=1,
    max_size=5,
)


@settings(unhurried)
@given(pieces=PIECES, size=st.integers(1, 9))
def test_a_stream_tells_the_text_that_is_read(pieces: list[tuple[str, str]], size: int) -> None:
    text = call(f"<text>{''.join(xml for _, xml in pieces)}</text>")
    stream = XML.stream([TOOL])
    events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
    reply = XML.parse(text, [TOOL])
    assert stream.reply() == reply
    assert [event.call for event in events if isinstance(event, CallEnded)] == list(reply.calls) != []
    value = reply.calls[0].arguments["text"]
    assert "".join(event.text for event in events if isinstance(event, ArgumentsDelta)) == value
    assert value.strip() == "".join(plain for plain, _ in pieces).strip()


class Take(BaseTool):
    def get_parameters(self) -> list[ToolParameter]:
        return [
            *(ToolParameter("query", "string", ""), ToolParameter("count", "integer", "", False)),
            *(ToolParameter("ratio", "number", "", False), ToolParameter("urls", "array", "", False)),
            ToolParameter("options", "object", "", False),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=params)


SEED_CALL = call(
    "<query>2024</query><count>3</count><ratio>1.50</ratio>"
    "<urls><item><![CDATA[a]]></item><item>b</item></urls><options><a>1</a></options>"
)


async def test_the_copies_of_calls_that_were_read_without_tools_can_be_run() -> None:
    tool = Take("take", "Takes.")
    (found,) = parse_tool_calls(SEED_CALL)
    (known,) = parse_tool_calls(SEED_CALL, [tool])
    copies = [found.params, dict(found.params), json.loads(json.dumps(found.params)), known.params]
    expected = {"query": "2024", "count": 3, "ratio": 1.5, "urls": ["a", "b"], "options": {"a": 1}}
    for copied in copies:
        data = (await tool(**copied)).data
        assert ({name: data[name] for name in expected}, type(data["query"])) == (expected, str)


@pytest.mark.parametrize("text", ["3.10", "1.0", "1e3", "007", "-0", "0.10", "00", "100000000000000000000.5"])
def test_a_number_that_writes_another_text_is_not_guessed(text: str) -> None:
    assert parse_tool_calls(call(f"<text>{text}</text>"))[0].params == {"text": text}


@given(st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,30})?", fullmatch=True))
async def test_a_guess_is_undone_where_the_tool_takes_a_text(text: str) -> None:
    (found,) = parse_tool_calls(call(f"<query>{text}</query>"))
    assert (await Take("take", "Takes.")(**found.params)).data["query"] == text
