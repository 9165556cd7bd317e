"""Results of MCP tool calls, from the SDK's own classes and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mcp_types
import pytest

from toolwire import ToolRegistry, ToolSpec

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
    {"type": "text", "text": "[resource] log, file:///log.txt, The log"},
    {"type": "text", "text": "[resource] file:///a.txt\ninside"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "text", "text": "[resource] file:///z, x/zip, 3 bytes"},
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


def test_without_structured_content_the_text_is_the_data() -> None:
    text = mcp_types.TextContent(type="text", text="plain")
    for result in results_of(mcp_types.CallToolResult(content=[text])):
        assert (result.success, result.data, result.text) == (True, "plain", "plain")


@pytest.mark.parametrize("value", ["text", {"content": [1]}, {"content": [], "rows": 2}, {"content": "x"}, [1], None])
def test_any_other_value_is_data_as_it_is(value: Any) -> None:
    assert called(lambda: value).data == value
