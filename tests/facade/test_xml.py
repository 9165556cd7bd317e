"""Calls in XML for those who drive the model themselves."""

from __future__ import annotations

import pytest

from toolwire import ToolPromptGenerator, ToolResult, ToolSpec, XMLToolCallParser, parse_tool_calls

CALL = "<tool_call><name>find</name><params><text><![CDATA[10]]></text></params></tool_call>"


def find(text: str, exact: bool = True, rows: list[int] | None = None) -> str:
    """Finds text."""
    return text


def test_a_list_of_calls_comes_back_and_their_values_are_converted_by_the_tools() -> None:
    assert [call.params for call in parse_tool_calls(CALL)] == [{"text": 10}]
    assert [call.params for call in parse_tool_calls(CALL, [find])] == [{"text": "10"}]
    assert XMLToolCallParser().parse_tool_calls(CALL, [ToolSpec.from_function(find)])[0].params == {"text": "10"}


@pytest.mark.parametrize("text", ["", "text", CALL[:-30], f"<think>{CALL}</think>", f"{CALL} <tool_call><name>find"])
def test_nothing_is_called_that_is_not_whole_and_meant(text: str) -> None:
    assert parse_tool_calls(text) == []


def test_an_instruction_shows_every_parameter_with_a_value_that_fits() -> None:
    instruction = ToolPromptGenerator.generate_tool_instruction([find])
    assert instruction.split("\n\n")[1] == (
        "### find\n"
        "Description: Finds text.\n"
        "Parameters:\n"
        "  - text: string (required)\n"
        "  - exact: boolean (optional)\n"
        "    Default: true\n"
        "  - rows: array of integer or null (optional)\n"
        "Example:\n"
        "<tool_call>\n  <name>find</name>\n  <params>\n"
        "    <text><![CDATA[your_text_here]]></text>\n"
        "    <exact><![CDATA[true]]></exact>\n"
        "    <rows><![CDATA[[]]]></rows>\n"
        "  </params>\n</tool_call>"
    )


def test_a_tool_without_parameters_is_shown_so() -> None:
    tool = ToolSpec.from_jsonschema(name="now", description="Tells the time.", input_schema={"type": "object"})
    assert ToolPromptGenerator.generate_tool_instruction([tool]).split("\n\n")[1] == (
        "### now\nDescription: Tells the time.\nParameters: none\nExample:\n"
        "<tool_call>\n  <name>now</name>\n  <params></params>\n</tool_call>"
    )


@pytest.mark.parametrize(
    ("result", "success", "inner"),
    [
        ({"success": True, "data": "a]]>b"}, "true", "<data><![CDATA[a]]]]><![CDATA[>b]]></data>"),
        ({"success": True, "data": {"a": "中"}}, "true", '<data><![CDATA[{"a": "中"}]]></data>'),
        ({"success": False, "data": None, "error": "no"}, "false", "<error><![CDATA[no]]></error>"),
        ({"rows": [1]}, "true", '<data><![CDATA[{"rows": [1]}]]></data>'),
        (ToolResult(True, 3), "true", "<data><![CDATA[3]]></data>"),
    ],
)
def test_a_result_is_a_block_of_xml(result: dict[str, object] | ToolResult, success: str, inner: str) -> None:
    assert ToolPromptGenerator.format_tool_result("t", result) == (
        f"<tool_result>\n  <name>t</name>\n  <success>{success}</success>\n  {inner}\n</tool_result>"
    )
