"""Blocks that the author of a tool built in another spelling are read, and the rest becomes words."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types
import pytest

from toolwire import ToolRegistry, ToolResponse, ToolResult
from toolwire.vocabulary.given_blocks import read_blocks

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}
IMAGE = {"type": "image", "source": SOURCE}
UNTYPED = {"type": "image", "source": {**SOURCE, "media_type": ""}}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "file:///a"}
MCP_IMAGE = mcp_types.ImageContent(type="image", data=PNG, mime_type="image/png")
HINT = "Read the error; change the arguments or try another tool."


def image_at(url: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        (None, []),
        ("a", [text("a")]),
        (text("a"), [text("a")]),
        (["a", 5, None], [text("a"), text("5"), text("null")]),
        ([IMAGE], [IMAGE]),
        ([{"type": "image", "data": PNG, "mimeType": "image/png"}], [IMAGE]),
        ([{"type": "image", "data": base64.b64decode(PNG), "mimeType": "image/png"}], [IMAGE]),
        ([{"type": "image", "source": {"type": "base64", "data": PNG}}], [UNTYPED]),
        (
            [{"type": "image", "url": "https://a.eu/b.png"}],
            [image_at("https://a.eu/b.png")],
        ),
        (
            [{"type": "image_url", "image_url": {"url": "data:,"}}],
            [image_at("data:,")],
        ),
        ([{"type": "image"}], [text("[image: without data]")]),
        ([{"type": "audio", "source": None}], [text("[audio: without data]")]),
        ([{"type": "text", "text": "a", "more": 1}], [text("a")]),
        ([{"type": "text", "text": 5}], [text("5")]),
        ([{"type": "text"}], [text('{"type": "text"}')]),
        ([{"type": "chart", "rows": [1]}], [text('{"type": "chart", "rows": [1]}')]),
        ([{"type": "chart", "rows": object()}], [text("[chart]")]),
        ([object()], [text("[object]")]),
        ([{"type": "resource_link", "uri": "file:///a"}], [LINK]),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "a", "blob": "YQ==", "size": 1}}],
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}],
        ),
        ([{"type": "resource"}], [text('{"type": "resource"}')]),
        ([{**text("a"), "annotations": {"priority": 1}}], [{**text("a"), "annotations": {"priority": 1}}]),
        ([{**text("a"), "annotations": {"weight": 1}}], [text("a")]),
        (MCP_IMAGE, [IMAGE]),
        ([mcp_types.TextContent(type="text", text="a"), MCP_IMAGE], [text("a"), IMAGE]),
    ],
)
def test_what_can_be_read_of_a_block_is_read(given: Any, blocks: Any) -> None:
    assert list(read_blocks(given)) == blocks


def result_of(value: Any) -> ToolResult:
    def show() -> Any:
        """Shows."""
        return value

    registry = ToolRegistry()
    registry.register(show)
    return registry.invoke("show", {})


@pytest.mark.parametrize(
    "value",
    [
        ToolResponse(content=["a", {"type": "image"}]),  # pyright: ignore[reportArgumentType]
        ToolResult(True, content=["a", {"type": "image"}]),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_result_is_not_lost_for_a_block_that_was_built_wrongly(value: Any) -> None:
    result = result_of(value)
    assert (result.success, result.text) == (True, "a\n[image: without data]")


def test_a_text_alone_is_the_content_of_a_result() -> None:
    assert result_of(ToolResult(True, 1, content="abc")).text == "abc"  # pyright: ignore[reportArgumentType]
    assert result_of(ToolResponse(content="abc")).text == "abc"  # pyright: ignore[reportArgumentType]


def test_content_objects_of_mcp_are_blocks() -> None:
    assert result_of(MCP_IMAGE).content == [IMAGE]
    assert result_of(["A map:", MCP_IMAGE]).content == [text("A map:"), IMAGE]


def test_a_call_result_of_mcp_is_a_result() -> None:
    content: Any = [mcp_types.TextContent(type="text", text="two")]
    given = mcp_types.CallToolResult(content=content, structured_content={"n": 2})
    assert (result_of(given).data, result_of(given).text) == ({"n": 2}, "two")
    failed = result_of(mcp_types.CallToolResult(content=content, is_error=True))
    assert (failed.success, failed.text) == (False, f"two\n{HINT}")
