"""Results of MCP tool calls, from the SDK's own classes and as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mcp_types
import pytest

from toolwire import DefinitionError, Session, ToolRegistry, ToolResult, ToolSpec
from toolwire.protocols.attp.render import success_document

TOOL = {"name": "search", "description": "Searches.", "inputSchema": {"type": "object", "properties": {}}}
PIXEL = "iVBORw0KGgo="
CONTENT = [
    mcp_types.TextContent(type="text", text="two rows"),
    mcp_types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
    mcp_types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
    mcp_types.ResourceLink(type="resource_link", name="log", uri="file:///log.txt", description="The log"),
    mcp_types.EmbeddedResource(
        type="resource", resource=mcp_types.TextResourceContents(uri="file:///a.txt", text="inside")
    ),
    mcp_types.EmbeddedResource(
        type="resource", resource=mcp_types.BlobResourceContents(uri="file:///p", blob=PIXEL, mime_type="image/png")
    ),
    mcp_types.EmbeddedResource(
        type="resource", resource=mcp_types.BlobResourceContents(uri="file:///z", blob="AAAA", mime_type="x/zip")
    ),
]
BLOCKS = [
    {"type": "text", "text": "two rows"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}},
    {"type": "resource_link", "uri": "file:///log.txt", "name": "log", "description": "The log"},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
    {"type": "resource", "resource": {"uri": "file:///p", "blob": PIXEL, "mimeType": "image/png"}},
    {"type": "resource", "resource": {"uri": "file:///z", "blob": "AAAA", "mimeType": "x/zip"}},
]


def forms(result: mcp_types.CallToolResult) -> list[Any]:
    """The result as both generations of the SDK and JSON give it."""
    received = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    older = SimpleNamespace(
        content=[SimpleNamespace(**item) for item in received["content"]],
        structuredContent=received.get("structuredContent"),
        isError=received.get("isError", False),
    )
    for item in older.content:
        if item.type == "resource":
            item.resource = SimpleNamespace(**item.resource)
    return [result, received, result.model_dump(mode="json"), older]


def drivers(value: Any) -> list[Callable[[], Any]]:
    """Sync and async functions, and a lambda around a coroutine function, that give the value."""

    async def later() -> Any:
        return value

    return [lambda: value, later, lambda: later()]


def called(function: Callable[[], Any]) -> Any:
    registry = ToolRegistry()
    registry.register(ToolSpec.from_mcp(TOOL, function=function, permission="auto"))
    return registry.invoke("search", {})


def results_of(result: mcp_types.CallToolResult) -> list[Any]:
    return [called(function) for form in forms(result) for function in drivers(form)]


def test_an_error_of_the_server_is_a_failure() -> None:
    text = mcp_types.TextContent(type="text", text="no such index")
    for result in results_of(mcp_types.CallToolResult(content=[text], is_error=True)):
        assert (result.success, result.error, result.failure.kind) == (False, "no such index", "tool_error")


def test_an_error_without_a_word_is_a_failure_too() -> None:
    for result in results_of(mcp_types.CallToolResult(content=[], is_error=True)):
        assert (result.success, result.error) == (False, "the tool failed without saying why")


def test_structured_content_is_the_data_and_blocks_are_blocks() -> None:
    given = mcp_types.CallToolResult(content=CONTENT, structured_content={"rows": [1, 2]})
    for result in results_of(given):
        assert (result.success, result.data, result.content) == (True, {"rows": [1, 2]}, BLOCKS)


def test_mixed_content_is_the_data_as_blocks() -> None:
    for result in results_of(mcp_types.CallToolResult(content=CONTENT)):
        assert (result.success, result.data, result.content) == (True, BLOCKS, BLOCKS)


def test_annotations_and_the_size_of_a_link_are_kept() -> None:
    annotations = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-12T15:00:58Z"}
    link = mcp_types.ResourceLink(
        type="resource_link",
        name="log",
        uri="file:///log.txt",
        mime_type="text/plain",
        size=12,
        annotations=mcp_types.Annotations(**annotations),
    )
    text = mcp_types.TextContent(type="text", text="rows", annotations=mcp_types.Annotations(priority=1))
    for result in results_of(mcp_types.CallToolResult(content=[link, text])):
        assert result.content == [
            {
                "type": "resource_link",
                "uri": "file:///log.txt",
                "name": "log",
                "mimeType": "text/plain",
                "size": 12,
                "annotations": annotations,
            },
            {"type": "text", "text": "rows", "annotations": {"priority": 1}},
        ]


@pytest.mark.parametrize("broken", [{"type": "resource"}, {"type": "resource_link", "uri": "x"}, {"type": "poem"}])
def test_a_block_of_a_wrong_or_unknown_form_is_named(broken: dict[str, Any]) -> None:
    assert called(lambda: {"content": [broken], "isError": False}).data == f"[{broken['type']}]"


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
CARELESS: list[tuple[dict[str, Any], Any]] = [
    ({"content": {"type": "text", "text": "rows"}}, "rows"),
    ({"content": {"type": "text", "text": None}, "isError": None}, ""),
    ({"content": None, "isError": False}, ""),
    ({"structuredContent": {"rows": 2}}, {"rows": 2}),
    ({"content": None, "structuredContent": {"rows": 2}}, {"rows": 2}),
    ({"content": [{"type": "image", "data": PIXEL}]}, [IMAGE]),
    ({"content": [{"type": "image", "data": PIXEL, "mimeType": None}]}, [IMAGE]),
]


@pytest.mark.parametrize(("given", "data"), CARELESS)
def test_what_can_be_read_of_a_careless_result_is_read(given: dict[str, Any], data: Any) -> None:
    result = called(lambda: given)
    assert (result.success, result.data) == (True, data)


def test_without_structured_content_the_text_is_the_data() -> None:
    text = mcp_types.TextContent(type="text", text="plain")
    for result in results_of(mcp_types.CallToolResult(content=[text])):
        assert (result.success, result.data, result.text) == (True, "plain", "plain")


@pytest.mark.parametrize("value", ["text", {"content": [1]}, {"content": [], "rows": 2}, {"content": "x"}, [1], None])
def test_any_other_value_is_data_as_it_is(value: Any) -> None:
    assert called(lambda: value).data == value


# -- output schemas ----------------------------------------------------------------------------------------------------

ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    "required": ["rows"],
}


def result_of(value: Any, schema: dict[str, Any]) -> ToolResult:
    """The result of a call of a server's tool with this output schema, where the tool gives this value."""
    tool = ToolSpec.from_mcp({**TOOL, "outputSchema": schema}, lambda: value, permission="auto")
    registry = ToolRegistry()
    registry.register(tool)
    return registry.invoke("search", {})


@pytest.mark.parametrize(
    ("value", "data", "misfit"),
    [
        (
            {"content": [], "structuredContent": {"rows": [""]}},
            {"rows": [""]},
            "'rows[0]' must be an integer, not ''.",
        ),
        ({"content": [], "structuredContent": {}}, {}, "'rows' is missing: give an array of integer."),
        ({"content": [{"type": "text", "text": "two"}]}, "two", "'result' must be an object with rows, not 'two'."),
        ({"rows": 3}, {"rows": 3}, "'rows' must be an array of integer, not 3."),
        (None, None, "'result' must be an object with rows, not None."),
    ],
)
def test_a_result_that_does_not_fit_its_output_schema_is_a_failure_that_keeps_the_data(
    value: Any, data: Any, misfit: str
) -> None:
    result = result_of(value, ROWS)
    assert result.error == f"'search' ran, but its result does not fit its output schema: {misfit}"
    assert result.failure is not None
    assert (result.failure.kind, result.failure.hint) == ("invalid_result", "It may have taken effect.")
    assert result.data == data


@pytest.mark.parametrize(
    "value", [{"content": [], "structuredContent": {"rows": [1]}}, {"rows": []}, {"rows": [2], "more": "x"}]
)
def test_a_result_that_fits_is_given(value: Any) -> None:
    result = result_of(value, ROWS)
    assert (result.success, result.data) == (True, value.get("structuredContent", value))


def test_what_a_failed_tool_says_is_not_checked() -> None:
    result = result_of({"content": [{"type": "text", "text": "no such table"}], "isError": True}, ROWS)
    assert result.failure is not None
    assert (result.failure.kind, result.error) == ("tool_error", "no such table")


def test_a_tool_of_the_host_may_return_what_its_output_schema_does_not_say() -> None:
    tool = ToolSpec.from_jsonschema(
        name="search",
        description="Searches.",
        input_schema=TOOL["inputSchema"],
        output_schema=ROWS,
        function=lambda: {"rows": 3},
    )
    registry = ToolRegistry()
    registry.register(tool)
    assert registry.invoke("search", {}).data == {"rows": 3}


def test_no_output_schema_of_a_stranger_holds_its_thread_up() -> None:
    choices = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(16)}
    doubling = {"type": "object", "anyOf": [{"$ref": "#/$defs/d0"}], "$defs": {**choices, "d16": {"type": "integer"}}}
    backtracking = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    started = time.process_time()
    results = [result_of({"a": "a" * 30 + "!"}, schema) for schema in (doubling, backtracking)]
    assert time.process_time() - started < 3
    assert [result.failure.kind for result in results if result.failure] == ["invalid_result"] * 2
    assert "takes more than 20,000 steps" in (results[0].error or "")


def test_a_program_hears_of_a_result_that_does_not_fit() -> None:
    tool = ToolSpec.from_mcp({**TOOL, "outputSchema": ROWS}, lambda: {"rows": 3}, permission="auto")
    session = Session([tool], protocol="attp")
    code = "try:\n    search()\nexcept Exception as error:\n    __result__ = str(error)"
    turn = session.run_turn(success_document(thought="t", target="g", code=code))
    assert "does not fit its output schema: 'rows' must be an array of integer" in turn.results[0].text


@pytest.mark.parametrize("schema", [{"type": "text"}, {"$ref": "https://example.com/schema"}])
def test_an_output_schema_that_cannot_be_used_is_refused_at_once(schema: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=r"tool 'search', output: "):
        ToolSpec.from_mcp({**TOOL, "outputSchema": schema}, lambda: None)
