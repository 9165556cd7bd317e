"""Calls in XML by the seed on tools as classes: its examples as they are written, and their results."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from toolwire import BaseTool, ToolCall, ToolParameter, ToolPromptGenerator, ToolResult, XMLToolCallParser
from toolwire import parse_tool_calls as parse

CALL = """\
<tool_call>
  <name>web_search</name>
  <params>
    <query><![CDATA[Python async best practices]]></query>
    <max_results><![CDATA[10]]></max_results>
  </params>
</tool_call>"""

BLOCK = """\
### web_search
Description: Search the web for information using Bocha AI search engine
Parameters:
  - query: string (required) - Search query using keywords.
  - freshness: string (optional) - Time range filter: 'noLimit', 'oneDay', ...
    Default: noLimit
  - count: integer (optional) - Number of results to return (1-50)
    Default: 10
Example:
<tool_call>
  <name>web_search</name>
  <params>
    <query><![CDATA[your_query_here]]></query>
    <freshness><![CDATA[noLimit]]></freshness>
    <count><![CDATA[10]]></count>
  </params>
</tool_call>"""


class WebSearchTool(BaseTool):
    def __init__(self):
        super().__init__("web_search", "Search the web for information using Bocha AI search engine")

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("query", "string", "Search query using keywords."),
            ToolParameter("freshness", "string", "Time range filter: 'noLimit', 'oneDay', ...", False, "noLimit"),
            ToolParameter("count", "integer", "Number of results to return (1-50)", False, 10),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=params)


def call_of(value: str) -> str:
    return f"<tool_call><name>t</name><params><value><![CDATA[{value}]]></value></params></tool_call>"


@pytest.mark.requirement("xml.parse.static", "xml.parse.text-to-calls", "xml.format.call", "xml.call.raw-text")
def test_the_seeds_call_is_read_with_its_text() -> None:
    arguments = {"query": "Python async best practices", "max_results": 10}
    assert XMLToolCallParser.parse_tool_calls(f"我来搜索。\n{CALL}\n") == [
        ToolCall("web_search", arguments, raw_text=CALL)
    ]
    assert (parse(CALL)[0].params, parse(CALL)[0].raw_text) == (arguments, CALL)


@pytest.mark.requirement("xml.parse.function")
def test_the_function_does_what_the_method_does() -> None:
    text = f"{CALL}\n{CALL}"
    assert parse(text) == XMLToolCallParser.parse_tool_calls(text)
    assert parse("no call") == []


@pytest.mark.requirement("xml.format.cdata", "xml.format.multiline", "xml.format.verbatim")
@pytest.mark.parametrize(
    "value",
    [
        "a < b && c > d",
        "<b>bold</b>",
        "&lt; &amp; &#65; &unknown;",
        "&lt;b&gt; &amp; &#65;",
        "def f():\n    return 1\n",
        "  spaces \t",
        "中文 😀",
        "",
    ],
)
def test_a_value_in_cdata_comes_back_character_for_character(value: str) -> None:
    assert parse(call_of(value))[0].params == {"value": value}


@pytest.mark.requirement("xml.convert.bool", "xml.convert.int", "xml.convert.float")
@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("false", False), ("123", 123), ("-7", -7), ("0", 0), ("3.14", 3.14), ("-0.5", -0.5)],
)
def test_plain_values_are_converted_where_no_tool_is_known(text: str, value: object) -> None:
    found = parse(call_of(text))[0].params["value"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.requirement("xml.convert.text")
@pytest.mark.parametrize(
    "text",
    ["007", "1e5", " 10 ", "10\n", "True", "NaN", "1_000", "+1", ".5", "5.", "１２", "--1", "null", "[1]", "1.2.3"],
)
def test_anything_else_stays_text(text: str) -> None:
    assert parse(call_of(text))[0].params == {"value": text}


def test_the_schema_of_a_known_tool_decides() -> None:
    text = CALL.replace("max_results", "count").replace("Python async best practices", "2024")
    assert parse(text, [WebSearchTool()])[0].params == {"query": "2024", "count": 10}


@pytest.mark.requirement("xml.parse.fallback")
@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("<![CDATA[", "").replace("]]>", ""),
        CALL.removeprefix("<tool_call>").removesuffix("</tool_call>"),
        CALL.removesuffix("</tool_call>"),
        CALL.replace("</query>", "</qurey>"),
        CALL.replace("</max_results>", ""),
        CALL.replace("</params>", ""),
        f"```xml\n{CALL}\n```",
    ],
    ids=["no CDATA", "no wrapper", "not closed", "misspelt", "parameter not closed", "params not closed", "fence"],
)
def test_a_call_that_is_not_well_formed_is_read_where_it_is_clear(text: str) -> None:
    assert [(call.name, call.params) for call in parse(text)] == [
        ("web_search", {"query": "Python async best practices", "max_results": 10})
    ]


@pytest.mark.requirement(
    "xml.prompt.seed-block",
    "xml.prompt.tools",
    "xml.prompt.parameters",
    "xml.prompt.example",
    "xml.prompt.notes",
    "xml.prompt.from-tools",
)
def test_the_instruction_holds_the_seeds_block_and_ends_with_what_to_mind() -> None:
    instruction = ToolPromptGenerator.generate_tool_instruction([WebSearchTool()])
    assert instruction == (
        f"Available tools, and how to call each of them:\n\n{BLOCK}\n\n"
        "Notes:\n"
        "- Write one <tool_call> for each call, exactly in this form and without a code fence.\n"
        "- Put every value into CDATA, as it is; write lists and objects as JSON, and ]]> inside a value as "
        "]]]]><![CDATA[>.\n"
        "- Give all required parameters; leave out optional ones that you do not need.\n"
        "- Call only the tools above, and wait for their results instead of writing them yourself."
    )


@pytest.mark.requirement("xml.prompt.format-result")
def test_a_result_is_xml_that_survives_the_end_of_cdata_and_is_never_read_as_a_call() -> None:
    data = {"title": f"]]> & <b> {CALL}"}
    text = ToolPromptGenerator.format_tool_result("web_search", ToolResult(success=True, data=data).to_dict())
    tree = ElementTree.fromstring(text)
    assert [(part.tag, part.text) for part in tree] == [
        ("name", "web_search"),
        ("success", "true"),
        ("data", '{"title": "' + data["title"].replace("\n", "\\n") + '"}'),
    ]
    assert parse(text) == []


def test_a_failed_result_says_why() -> None:
    result = ToolResult(success=False, error="no route to host").to_dict()
    assert ToolPromptGenerator.format_tool_result("web_search", result) == (
        "<tool_result>\n  <name>web_search</name>\n  <success>false</success>\n"
        "  <error><![CDATA[no route to host]]></error>\n</tool_result>"
    )
