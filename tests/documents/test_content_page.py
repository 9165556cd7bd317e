"""The page about content: its two tables are those that the formats and the conversion produce."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

import toolwire.protocols
from toolwire import ToolCall, ToolRegistry, ToolResult, ToolSpec
from toolwire.mcp.convert import result_of_mcp

PAGE = (Path(__file__).parents[2] / "docs" / "content.md").read_text()
PIXEL = "iVBORw0KGgo="
INLINE = {"type": "base64", "media_type": "image/png", "data": PIXEL}
SOUND = {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}
PICTURE: dict[str, Any] = {"type": "image", "source": INLINE}
BLOCKS: dict[str, dict[str, Any]] = {
    "`text`": {"type": "text", "text": "two rows"},
    "`text` with annotations": {"type": "text", "text": "two rows", "annotations": {"audience": ["user"]}},
    "`image`, base64": PICTURE,
    "`image`, URL": {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    "`image`, SVG": {"type": "image", "source": {**INLINE, "media_type": "image/svg+xml", "data": "PHN2Zy8+"}},
    "`audio`, base64 WAV": {"type": "audio", "source": SOUND},
    "`audio`, URL": {"type": "audio", "source": {"type": "url", "url": "https://example.com/a.wav"}},
    "`resource`, text": {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
    "`resource`, image": {"type": "resource", "resource": {"uri": "f:///p", "blob": PIXEL, "mimeType": "image/png"}},
    "`resource`, other bytes": {"type": "resource", "resource": {"uri": "file:///z", "blob": "AAAA"}},
    "`resource_link`": {"type": "resource_link", "uri": "file:///log.txt", "name": "log", "description": "The log"},
}
FORMATS = {
    "OpenAI": "openai",
    "OpenAI Responses": "openai-responses",
    "Anthropic": "anthropic",
    "Gemini": "gemini",
    "XML": "xml",
    "JSON text": "json",
    "ATTP": "attp",
}
TEXTS = {
    "two rows": "text",
    "inside": "URI and text",
    "[resource] log, file:///log.txt, The log": "name, URI, description",
    "[resource] file:///z, of unknown type, 3 bytes": "URI, type, size",
    "[image]": "`[image]`",
    "[image: image/svg+xml, 6 bytes": "`[image: ...]`",
    "[audio]": "`[audio]`",
}


def sent(protocol: str, block: Any) -> str:
    """How the table names the form in which a model receives the block."""
    call = ToolCall("look", {}, id="call_1")
    message = toolwire.protocols.get(protocol).format([ToolResult(True, content=[block], call=call)])
    text = message if isinstance(message, str) else json.dumps(message)
    assert "audience" not in text
    if any(given["data"] in text for given in (INLINE, SOUND)) or "https://" in text:
        assert protocol in ("openai", "openai-responses", "anthropic", "gemini")
        return "sound" if "UklGRg==" in text else "image"
    return next(word for said, word in TEXTS.items() if said in text)


def test_the_table_of_formats_is_that_of_the_formats() -> None:
    rows = [f"| block | {' | '.join(FORMATS)} |", "|" + "---|" * (len(FORMATS) + 1)]
    for name, block in BLOCKS.items():
        rows.append(f"| {name} | {' | '.join(sent(protocol, block) for protocol in FORMATS.values())} |")
    assert "\n".join(rows) + "\n" in PAGE


MCP: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "two rows"},
    "image": {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    "resource": {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
    "resource_link": {"type": "resource_link", "uri": "file:///log.txt", "name": "log"},
    "any other": {"type": "poem"},
}


def test_the_table_of_mcp_is_that_of_the_conversion() -> None:
    rows = ["| MCP's block | here |", "|---|---|"]
    for name, block in MCP.items():
        annotated = {**block, "annotations": {"priority": 1}}
        (here,) = result_of_mcp({"content": [annotated]}).content
        kept = "with annotations" if "annotations" in here else "its type in brackets"
        rows.append(f"| {name} | `{here['type']}`, {kept} |")
    assert "\n".join(rows) + "\n" in PAGE


def program(code: str, block: Any) -> ToolResult:
    def look() -> Any:
        return toolwire.ToolResponse(block)

    registry = ToolRegistry()
    registry.register(look)
    registry.enable_code_execution()
    return registry.invoke("code_execution", {"code": code})


LOOK = [{"type": "text", "text": "look"}, PICTURE]


def test_a_program_receives_mixed_content_as_blocks() -> None:
    result = program("[block['type'] for block in look()]", LOOK)
    assert json.loads(result.text) == ["text", "image"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("look()", "look\n[image]"),
        ("look()[1]", "[image]"),
        ("print('one')\nlook()[1]", "one\n[image]"),
        ("{'picture': look()[1], 'rows': 2}", '{"picture": "[image]", "rows": 2}'),
        ("[1, [look()[1]]]", '[1, ["[image]"]]'),
    ],
)
def test_a_block_that_a_program_returns_leaves_as_a_block(code: str, text: str) -> None:
    result = program(code, LOOK)
    said, *media = cast("list[Any]", result.content)
    assert (said["text"], media) == (text, [PICTURE])
    assert PIXEL not in result.text


def test_a_value_that_only_looks_like_a_picture_stays_text() -> None:
    row = {"type": "image", "source": 3}
    result = program(f"{row!r}", LOOK)
    assert (json.loads(result.text), len(result.content)) == (row, 1)


def test_a_deeply_nested_value_needs_no_recursion() -> None:
    from toolwire.vocabulary.model_text import media_apart

    value: Any = PICTURE
    for _ in range(100_000):
        value = [value]
    assert media_apart(value)[1] == [PICTURE]
    while type(value) is list:  # freed level by level
        value = value.pop()


def test_a_long_text_in_a_resource_is_cut_and_does_not_follow_whole() -> None:
    text = "x" * 5_000

    def read() -> Any:
        return {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": text}}, {"type": "text"}]}

    registry = ToolRegistry(result_limit_bytes=1_000)
    tool = {"name": "read", "inputSchema": {"type": "object", "properties": {}}}
    registry.register(ToolSpec.from_mcp(tool, function=read, permission="auto"))
    result = registry.invoke("read", {})
    assert (result.metadata["is_cut"], len(result.content), len(result.text) < 1_200) == (True, 1, True)
