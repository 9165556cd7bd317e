"""Calls in XML for those who drive the model themselves."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from toolwire import Toolkit, ToolRegistry, ToolResult, ToolSpec
from toolwire.seeds import ToolPromptGenerator, XMLToolCallParser, parse_tool_calls

CALL = "<tool_call><name>find</name><params><text><![CDATA[10]]></text></params></tool_call>"


def find(text: str, exact: bool = True, rows: list[int] | None = None) -> str:
    """Finds text."""
    return text


def test_a_list_of_calls_comes_back_and_their_values_are_converted_by_the_tools() -> None:
    assert [call.params for call in parse_tool_calls(CALL)] == [{"text": 10}]
    assert [call.params for call in parse_tool_calls(CALL, [find])] == [{"text": "10"}]
    assert XMLToolCallParser().parse_tool_calls(CALL, [ToolSpec.from_function(find)])[0].params == {"text": "10"}


BROKEN = "<tool_call><name>find</name><params><text><![CDATA[a]]></text><text>b</text></params></tool_call>"
CUT = "<tool_call><name>find</name><params><text><![CDATA[10"


def test_the_list_says_why_a_call_is_missing_and_one_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    calls = parse_tool_calls(f"{CALL}\n{BROKEN}")
    reason = "<text> is given twice in one call. Write it once; write a list as JSON."
    assert (calls, [(problem.place, problem.message, problem.repaired) for problem in calls.problems]) == (
        [],
        [("line 2", reason, False)],
    )
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("toolwire.xml", "WARNING", f"A reply was read only in part; it gave 0 calls. line 2: {reason}")
    ]


@pytest.mark.parametrize("text", [CALL, "An answer.", ""])
def test_a_text_without_an_unreadable_call_warns_of_nothing(text: str, caplog: pytest.LogCaptureFixture) -> None:
    parse_tool_calls(text)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"{CALL}\n{BROKEN}\n{CALL}", 2),
        (f"{BROKEN}\n{CALL}", 1),
        (f"{CALL}\n{CUT}", 1),
        ('<tool_call>{"name": "find"}</tool_call>' + CALL, 1),
        (CALL.replace("<text>", '<text type="json">').replace("10", "{") + CALL, 1),
        (f"```xml\n{BROKEN}\n{CALL}\n```", 1),
    ],
)
def test_the_calls_beside_an_unreadable_one_come_back_where_that_is_asked_for(text: str, count: int) -> None:
    calls = parse_tool_calls(text, [find], strict=False)
    assert [call.params for call in calls] == [{"text": "10"}] * count
    assert [problem.repaired for problem in calls.problems].count(False) == 1


def test_a_call_within_an_unreadable_call_is_never_read() -> None:
    inner = f"<tool_call><name>write</name><params><a>1</a><a>2</a>{CALL}</params></tool_call>{CALL}"
    assert parse_tool_calls(inner, strict=False) == []
    section = f"<tool_call><name>write</name><params><a>1</a><a>2</a><b><![CDATA[{CALL}]]></b></params></tool_call>"
    assert parse_tool_calls(section, strict=False) == []


TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}
VALUES = [
    *("10", "-3", "007", "0.5", "1e5", "true", "false", "True", "null", "", " 10 ", "a < b", "&lt;", "[1, 2]"),
    *('{"a": 1}', '["x"]', '"quoted"', "[1, 2,]", "{'a': True}", "中文 😀"),
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", TYPES)
async def test_the_seeds_own_loop_reads_values_as_the_schema_says(kind: str, value: str) -> None:
    received = list[Any]()

    def take(value: Any) -> str:
        """Takes a value."""
        received.append(value)
        return "taken"

    take.__annotations__["value"] = TYPES[kind]
    text = f"<tool_call><name>take</name><params><value><![CDATA[{value}]]></value></params></tool_call>"
    spec, registry, toolkit = ToolSpec.from_function(take), ToolRegistry(), Toolkit("agent")
    registry.register(spec)
    toolkit.add_tool(spec)
    (known,), (guessed,) = parse_tool_calls(text, [spec]), parse_tool_calls(text)
    results = [
        spec.run(known.params),
        spec.run(guessed.params),
        registry.invoke(guessed.name, guessed.params),
        await toolkit.execute_tool(guessed.name, guessed.params),
        spec.run(copy.deepcopy(guessed.params)),
        spec.run(pickle.loads(pickle.dumps(guessed)).params),
    ]
    first, *others = [(result.success, result.error) for result in results]
    assert others == [first] * len(others)
    assert [(type(item), item) for item in received[1:]] == [(type(item), item) for item in received[:1] * 5][
        : len(received) - 1
    ]
    assert len(received) in (0, len(results))


def test_a_value_that_the_owner_replaced_stays_as_it_is() -> None:
    (call,) = parse_tool_calls(CALL)
    call.params["text"] = "new"
    assert ToolSpec.from_function(find).run(call.params).data == "new"


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
        "    <rows><![CDATA[[1]]]></rows>\n"
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
