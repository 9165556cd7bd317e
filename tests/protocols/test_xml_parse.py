"""Replies in XML: those read unchanged, those repaired, and those refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import Session
from toolwire.definition.from_schema import from_schema
from toolwire.protocols import get
from toolwire.protocols.streaming import CallEnded
from toolwire.protocols.xml.element import SPLIT_END
from toolwire.vocabulary.calls import Problem, Reply, ToolCall

XML = get("xml")
TOOL = from_schema(
    "t",
    "A tool.",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "rows": {"type": "array", "items": {"type": "integer"}},
            "filter": {"$ref": "#/$defs/Filter"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {"type": ["string", "integer"]},
            "lines": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
            "page": {"type": ["string", "object", "null"]},
            "choice": {"enum": ["1", 2]},
            "any": {},
        },
        "$defs": {"Filter": {"type": "object"}},
    },
)


def wrapped(params: str, name: str = "t") -> str:
    return f"<tool_call><name>{name}</name><params>{params}</params></tool_call>"


def read(params: str) -> Reply:
    return XML.parse(wrapped(params), [TOOL])


def repairs(reply: Reply) -> list[str]:
    return [problem.message for problem in reply.problems if problem.repaired]


def refusal(reply: Reply) -> tuple[str, str]:
    assert reply.calls == ()
    (problem,) = (problem for problem in reply.problems if not problem.repaired)
    return problem.place, problem.message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "10", "10"),
        ("text", "true", "true"),
        ("text", "[1]", "[1]"),
        ("count", "10", 10),
        ("count", " 10\n", 10),
        ("count", "007", "007"),
        ("count", "ten", "ten"),
        ("count", "1e400", "1e400"),
        ("ratio", "1e5", 1e5),
        ("ratio", "3", 3),
        ("ratio", "NaN", "NaN"),
        ("flag", "true", True),
        ("flag", "1", "1"),
        ("rows", "[1, 2]", [1, 2]),
        ("rows", "1", "1"),
        ("rows", '"[1, 2]"', '"[1, 2]"'),
        ("filter", '"{}"', '"{}"'),
        ("lines", '["a"]', '["a"]'),
        ("lines", '["a",]', '["a",]'),
        ("lines", '"[1]"', '"[1]"'),
        ("lines", "", ""),
        ("page", '{"a": 1}', '{"a": 1}'),
        ("page", "null", None),
        ("page", "", ""),
        ("filter", '{"a": {"b": null}}', {"a": {"b": None}}),
        ("maybe", "null", None),
        ("maybe", "None", "None"),
        ("maybe", "10", "10"),
        ("either", "10", "10"),
        ("choice", "1", "1"),
        ("choice", "2", 2),
        ("any", "10", 10),
        ("any", "[1]", "[1]"),
        ("unknown", "true", True),
    ],
)
def test_the_schema_says_what_a_text_stands_for(name: str, text: str, value: object) -> None:
    reply = read(f"<{name}><![CDATA[{text}]]></{name}>")
    found = reply.calls[0].arguments[name]
    assert (type(found), found, reply.problems) == (type(value), value, ())


UNCLEAR = f"It is not clear where the value of <text> ends. Put it into CDATA, and write ]]> in it as {SPLIT_END}."
OWN_TAGS = "Close each parameter by its own tag; put a value with tags into CDATA."
TAGS_OF_OTHERS = ["<text>a 1</count>", "<text><![CDATA[a 1]]></count>", "<text><count>1</count>"]
"""Parameters of which a closing and an opening tag are lost. What is left is no value of the first one."""
TAGS_WITHIN = {
    "<text>a</count><count>1</text>": "count",
    "<text>a <count>1</count> b</text>": "count",
    "<text><text>a</text>": "text",
    "<text>a<text></text>": "text",
}


@pytest.mark.parametrize(
    ("params", "arguments", "told"),
    [
        ("<flag>True</flag>", {"flag": True}, ["True was read as true."]),
        ("<rows>[1, 2,]</rows>", {"rows": [1, 2]}, None),
        (
            "<text>a & b &lt; c</text>",
            {"text": "a & b &lt; c"},
            ["&lt; in <text> was left as it is: the value is not well-formed XML text."],
        ),
        ("<text>a < b</text>", {"text": "a < b"}, None),
        ("<text>&nbsp;</text>", {"text": "&nbsp;"}, None),
        ("<text>&#0;</text>", {"text": "&#0;"}, None),
        ("<text>&#xD800; &#9999999;</text>", {"text": "&#xD800; &#9999999;"}, None),
        ("<text>&lt;b&gt;]]&gt;</text><count>1</count>", {"text": "<b>]]>", "count": 1}, []),
        (
            "<text>if a < b: <b>x</b></text><count>1</count>",
            {"text": "if a < b: <b>x</b>", "count": 1},
            ["<text> holds tags outside of CDATA; they were read as text."],
        ),
        ("<text><![CDATA[x]]></txt><count>1</count>", {"text": "x", "count": 1}, ["</txt> closes <text>."]),
        ("<text><![CDATA[x]]><count>1</count>", {"text": "x", "count": 1}, ["<text> is not closed."]),
        ("<text>x</txt>", {"text": "x"}, ["</txt> closes <text>."]),
        (
            "<text><![CDATA[a[b[0]]>1]]></text>",
            {"text": "a[b[0]]>1"},
            ["]]> inside the CDATA of <text> was read as text."],
        ),
        (
            "<text><![CDATA[a <![CDATA[b]]> c]]></text>",
            {"text": "a <![CDATA[b]]> c"},
            ["CDATA inside the CDATA of <text> was read as text."],
        ),
    ],
)
def test_a_slip_is_repaired_where_one_reading_is_left(
    params: str, arguments: dict[str, Any], told: list[str] | None
) -> None:
    reply = read(params)
    assert reply.calls[0].arguments == arguments
    assert repairs(reply) == told if told is not None else repairs(reply)


@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        ("<text><![CDATA[a]]]]><![CDATA[>b]]></text>", {"text": "a]]>b"}),
        ("<text><![CDATA[a]]> <![CDATA[b]]></text>", {"text": "a b"}),
        ("<text>\n  <![CDATA[a]]>\n</text>", {"text": "a"}),
        ("<text><![CDATA[</text></params></tool_call>]]></text>", {"text": "</text></params></tool_call>"}),
        ("<text><![CDATA[x <![CDATA[ y]]></text>", {"text": "x <![CDATA[ y"}),
        ("<text> two  words </text>", {"text": " two  words "}),
        ("<text>a &lt; b &amp;&amp; c &gt; &quot;d&apos;</text>", {"text": "a < b && c > \"d'"}),
        ("<text>&#65;&#x42;&#x1F600;</text>", {"text": "AB\U0001f600"}),
        ("<text>&amp;lt;</text>", {"text": "&lt;"}),
        ("<text>a && b</text>", {"text": "a && b"}),
        ("<text>a & b</text>", {"text": "a & b"}),
        ("<text><![CDATA[&lt;]]></text>", {"text": "&lt;"}),
        ("<filter>{&quot;a&quot;: 1}</filter>", {"filter": {"a": 1}}),
        ("<text/><count />", {"text": "", "count": ""}),
        ("<!-- first --><text>a</text>\n<!-- <count>1</count> -->", {"text": "a"}),
        ('<param name="two words"><![CDATA[x]]></param>', {"two words": "x"}),
        ("<name>a</name><params>b</params>", {"name": "a", "params": "b"}),
        ('<text type="json">"\\ud83d\\ude00\\r\\n"</text>', {"text": "😀\r\n"}),
        ("", {}),
    ],
)
def test_a_correct_text_is_read_without_problems(params: str, arguments: dict[str, Any]) -> None:
    reply = read(params)
    assert (reply.calls[0].arguments, reply.problems) == (arguments, ())


@pytest.mark.parametrize(
    ("reply", "place", "message"),
    [
        (
            "<tool_call>",
            "line 1",
            "The call is not complete: the reply ends in the middle of it. Make it shorter.",
        ),
        (
            "<tool_call><name>t</name><params><text><![CDATA[x",
            "line 1",
            "<text> is never closed: the reply ends in the middle of the call. Make it shorter.",
        ),
        (
            "<tool_call><name>t</name>\n<params><text><![CDATA[x]]></text>",
            "line 2",
            "The call is not complete: the reply ends in the middle of it. Make it shorter.",
        ),
        (
            '<tool_call>{"name": 3}</tool_call>',
            "line 1",
            "The call is JSON. Write <name> and <params>, each argument in a tag of its own.",
        ),
        (
            wrapped("<text>a</text>\n<text>b</text>"),
            "line 2",
            "<text> is given twice in one call. Write it once; write a list as JSON.",
        ),
        (
            wrapped("<text><![CDATA[x</text><count><![CDATA[1]]></count>"),
            "line 1",
            "The CDATA of <text> is not closed before the next one opens. Close it by ]]>.",
        ),
        (
            wrapped("<text>a</text> so <count>1</count>"),
            "line 1",
            UNCLEAR,
        ),
        *((wrapped(params), "line 1", UNCLEAR) for params in TAGS_OF_OTHERS),
        *(
            (
                wrapped(params),
                "line 1",
                f"The value of <text> holds a tag of the parameter {own!r}. {OWN_TAGS}",
            )
            for params, own in TAGS_WITHIN.items()
        ),
        (wrapped("<text>a</text>", name=" "), "line 1", "<name> is empty. Write a tool's name in it."),
        (wrapped("", name="n" * 257), "line 1", "<name> has more than 256 characters. Write a tool's name in it."),
        (wrapped(f"<{'k' * 257}>1</{'k' * 257}>"), "line 1", "A parameter's name has more than 256 characters."),
        (
            f"<!DOCTYPE x [<!ENTITY a 'b'>]>\n{wrapped('<text>&a;</text>')}",
            "line 1",
            "The reply declares a document type. Write calls without one; entities are not expanded.",
        ),
        (
            f"So:\n```xml\n{wrapped('')}\n```",
            "line 2",
            "The call stands in a code fence among other text, so it may not be meant. Write it by itself.",
        ),
        (
            f"{wrapped('')}</think>",
            "line 1",
            "The call stands before </think>, so it may not be meant. Write it by itself.",
        ),
        ("<think>hm", "line 1", "<think> is never closed, so the reply is all thinking. Close it, then answer."),
        ("<think>hm</think>", "", "The reply is all thinking."),
        (" \n", "", "The reply is empty."),
        (wrapped("") * 65, "", "The reply makes more than 64 calls. Make fewer at a time."),
        (wrapped("") + "<fail>no</fail>", "", "The reply both calls a tool and fails. Write one of them."),
        (
            wrapped('<any type="json">{"a": [NaN]}</any>'),
            "line 1",
            "<any> cannot be read: JSON has no NaN. Write a number, a string or null.",
        ),
        ("x" * 262_145, "", "The reply has 262145 bytes; the limit is 262144. Write a shorter one."),
        (None, "", "The reply is empty."),
    ],
)
def test_an_ambiguous_reply_is_refused_with_the_reason(reply: Any, place: str, message: str) -> None:
    assert refusal(XML.parse(reply, [TOOL])) == (place, message)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            '<tool_call name="t"><params><count>1</count></params></tool_call>',
            ["The name was read from the attribute of <tool_call>."],
        ),
        (
            "<tool_call><name>t</name><count>1</count></tool_call>",
            ["<params> is missing around the parameters."],
        ),
        (
            '<tool_call name="t"><count>1</count></tool_call>',
            [
                "The name was read from the attribute of <tool_call>.",
                "<params> is missing around the parameters.",
            ],
        ),
        (
            '<tool_call name="t"><name>t</name><params><count>1</count></params></tool_call>',
            ["The name was read from the attribute of <tool_call>."],
        ),
    ],
)
def test_a_name_as_attribute_and_parameters_without_a_block_are_read_and_reported(call: str, told: list[str]) -> None:
    for text in (call, f"```xml\n{call}\n```"):
        assert XML.recognises(text)
        reply = XML.parse(text, [TOOL])
        assert [(found.name, found.arguments) for found in reply.calls] == [("t", {"count": 1})]
        assert [message for message in repairs(reply) if "fence" not in message] == told


def test_without_a_block_a_tool_may_have_a_parameter_called_name() -> None:
    tool = from_schema("t", "", {"type": "object", "properties": {"name": {"type": "string"}}})
    for call in (
        "<tool_call><name>t</name><name>Ada</name></tool_call>",
        '<tool_call name="t"><name>Ada</name></tool_call>',
    ):
        assert XML.parse(call, [tool]).calls[0].arguments == {"name": "Ada"}


@pytest.mark.parametrize(
    "call",
    [
        '<tool_call name="t"><name>u</name><params></params></tool_call>',
        "<tool_call><name>t</name><count>1</count><params><count>2</count></params></tool_call>",
        "<tool_call><name>t</name><params><count>1</count></params><count>2</count></tool_call>",
        "<tool_call><count>1</count></tool_call>",
    ],
)
def test_a_call_with_two_names_or_two_blocks_is_refused(call: str) -> None:
    reply = XML.parse(call, [TOOL])
    assert (reply.calls, reply.is_refused) == ((), True)


def test_one_damaged_call_stops_the_others_too() -> None:
    reply = XML.parse(wrapped("<text>a</text>") + "<tool_call><name>t</name><params><text><![CDATA[b", [TOOL])
    assert (reply.calls, reply.is_refused) == ((), True)


def test_text_thought_and_calls_are_told_apart() -> None:
    first, second = wrapped("<count>1</count>"), wrapped("<count>2</count>")
    reply = XML.parse(f"<think>Let me see.</think>\nFirst\n{first}\nthen\n{second}\nDone.", [TOOL])
    assert reply == Reply(
        calls=(ToolCall("t", {"count": 1}, raw_text=first), ToolCall("t", {"count": 2}, raw_text=second)),
        thought="Let me see.",
        text="First\n\nthen\n\nDone.",
    )


def test_a_call_without_its_wrapper_is_a_call() -> None:
    text = "<name>t</name>\n<params>\n<count><![CDATA[1]]></count>\n</params>"
    assert XML.parse(f"Well:\n{text}", [TOOL]) == Reply(
        calls=(ToolCall("t", {"count": 1}, raw_text=text),),
        text="Well:",
        problems=(Problem(message="<tool_call> is missing around the call.", repaired=True, place="line 2"),),
    )


@pytest.mark.parametrize(
    "text",
    [
        "Just an answer.",
        "Use <tool_call> for that.",
        "<name>Ada</name> is a name.",
        f'{{"say": "{wrapped("")}"}}',
        "<!DOCTYPE html>\n<p>1 &lt; 2</p>",
    ],
)
def test_text_without_a_call_is_an_answer(text: str) -> None:
    assert XML.parse(text, [TOOL]) == Reply(text=text)


def test_a_fence_around_the_whole_reply_is_left_out() -> None:
    reply = XML.parse(f"```xml\n{wrapped('<text><![CDATA[```x```]]></text>')}\n```\n", [TOOL])
    assert (reply.calls[0].arguments, repairs(reply)) == (
        {"text": "```x```"},
        ["The code fence around the reply was left out."],
    )


def test_calls_before_the_end_of_thinking_are_thoughts() -> None:
    reply = XML.parse(f"{wrapped('<count>1</count>')}\nno, better:</think>{wrapped('<count>2</count>')}", [TOOL])
    assert [call.arguments for call in reply.calls] == [{"count": 2}]
    assert repairs(reply) == ["The text before </think> was left out, a call too."]


def test_calls_after_a_result_that_the_model_made_up_are_left_out() -> None:
    text = f"{wrapped('<count>1</count>')}\n<tool_result>3</tool_result>\n{wrapped('<count>3</count>')}"
    reply = XML.parse(text, [TOOL])
    assert [call.arguments for call in reply.calls] == [{"count": 1}]
    assert repairs(reply) == ["The reply goes on with a result of its own; calls after it were left out."]


def test_a_model_may_say_that_it_cannot() -> None:
    assert XML.parse("<fail><![CDATA[No such tool.]]></fail>") == Reply(failure="No such tool.")


@pytest.mark.threat(44)
def test_entities_are_never_expanded() -> None:
    bomb = "<!DOCTYPE a [" + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9)) + "]>"
    assert XML.parse(bomb + wrapped("<text>&a8;</text>"), [TOOL]).calls == ()
    assert read("<text><![CDATA[&a8;]]></text>").calls[0].arguments == {"text": "&a8;"}


@pytest.mark.threat(45)
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 100_000, '{"a":' * 20_000, "-" + "9" * 5_000])
def test_deep_or_long_text_stays_text_or_is_refused(text: str) -> None:
    for name in ("rows", "count", "filter", "any"):
        reply = read(f"<{name}><![CDATA[{text}]]></{name}>")
        assert reply.calls[0].arguments == {name: text} if reply.calls else reply.is_refused


LISTED = "Its values between commas were read as a list."
LISTS = from_schema(
    "t",
    "A tool.",
    {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "integer"}},
            "ratios": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
            "flags": {"type": "array", "items": {"type": ["boolean", "null"]}},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]},
            "names": {"type": "array", "items": {"type": "string"}},
            "mixed": {"type": "array", "items": {"type": ["integer", "string"]}},
            "nested": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "both": {"type": ["array", "string"], "items": {"type": "integer"}},
            "free": {"type": "array"},
            "point": {"type": "object", "properties": {"at": {"type": "array", "items": {"type": "number"}}}},
        },
    },
)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rows", "2, 3, 4", [2, 3, 4]),
        ("rows", "\n -2,3 ,\n4\n", [-2, 3, 4]),
        ("ratios", "1, 2.5, 1e3", [1, 2.5, 1e3]),
        ("flags", "true, False, None", [True, False, None]),
        ("pair", "3, true", [3, True]),
        ("point", "<at>1, 2.5</at>", {"at": [1, 2.5]}),
        ("rows", "2", "2"),
        ("rows", "2, 3,", "2, 3,"),
        ("rows", "2, 3.5", "2, 3.5"),
        ("rows", "2, x", "2, x"),
        ("rows", "02, 3", "02, 3"),
        ("rows", "2 3", "2 3"),
        ("flags", "1, 0", "1, 0"),
        ("names", "Oslo, Lima", "Oslo, Lima"),
        ("names", "2, 3", "2, 3"),
        ("mixed", "2, 3", "2, 3"),
        ("nested", "2, 3", "2, 3"),
        ("both", "2, 3", "2, 3"),
        ("free", "2, 3", "2, 3"),
        ("pair", "3, true, 4", "3, true, 4"),
    ],
)
def test_numbers_and_booleans_between_commas_are_a_list_by_the_schema(name: str, text: str, value: object) -> None:
    call = wrapped(f"<{name}>{text}</{name}>")
    reply = XML.parse(call, [LISTS])
    assert [dict(found.arguments) for found in reply.calls] == [{name: value}]
    assert (LISTED in repairs(reply)) == (not isinstance(value, str))
    stream = XML.stream([LISTS])
    for character in call:
        stream.feed(character)
    assert stream.reply() == reply


def test_a_list_of_texts_that_was_not_split_is_refused_with_its_form() -> None:
    def visit(cities: list[str]) -> None:
        """Visits cities."""

    turn = Session([visit], protocol="xml").run_turn(wrapped("<cities>Oslo, Lima</cities>", name="visit"))
    assert '"Oslo, Lima"' not in turn.text.partition("write ")[0]
    assert 'write ["Oslo", "Lima"], or ["Oslo, Lima"] if it is one item.' in turn.text


FENCED = "```xml\n{}\n```\n"
FENCES_NOTE = "The code fences around the calls were left out."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (FENCED.format(wrapped("<count>1</count>")) + "\n" + FENCED.format(wrapped("<count>2</count>")), 2),
        (FENCED.format(wrapped("<count>1</count>")) * 3, 3),
        (FENCED.format(wrapped("<text><![CDATA[a\n```\nb]]></text>")) + FENCED.format(wrapped("")), 2),
        (FENCED.format("<tool_calls>" + wrapped("") + wrapped("") + "</tool_calls>") + FENCED.format(wrapped("")), 3),
    ],
    ids=["two", "three", "a fence in a value", "several in one"],
)
def test_several_fences_with_nothing_but_calls_are_left_out(text: str, count: int) -> None:
    reply = XML.parse(text, [TOOL])
    assert (len(reply.calls), reply.text, repairs(reply)) == (count, "", [FENCES_NOTE])
    stream = XML.stream([TOOL])
    events = [event for character in text for event in stream.feed(character)]
    assert stream.reply() == reply
    assert [event.call for event in events if isinstance(event, CallEnded)] == list(reply.calls)


@pytest.mark.threat(24)
@pytest.mark.parametrize(
    "text",
    [
        "{0}Then:\n{0}",
        "{0}{0}That is how.",
        "{0}```\nls\n```\n",
        "{0}```python\nprint(1)\n```\n{0}",
        "So:\n{0}{0}",
    ],
)
def test_the_control_fences_with_other_text_are_quotations(text: str) -> None:
    reply = XML.parse(text.format(FENCED.format(wrapped("<count>1</count>"))), [TOOL])
    assert (reply.calls, reply.is_refused) == ((), True)


def test_a_damaged_call_in_one_of_several_fences_stops_the_others() -> None:
    text = FENCED.format(wrapped("<count>1</count>")) + FENCED.format(wrapped("<text>a</text><text>b</text>"))
    assert refusal(XML.parse(text, [TOOL]))[1] == (
        "<text> is given twice in one call. Write it once; write a list as JSON."
    )
