"""Images of MCP servers in programs: the value of a program keeps them, in whichever form the server gave them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp import Client
from toolwire import ToolRegistry, ToolServer, ToolSpec

PIXEL = "iVBORw0KGgo="
PICTURE: dict[str, Any] = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
SOUND: dict[str, Any] = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SOUND_BLOCK = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}}
SCHEMA = {"type": "object", "properties": {"content": {"type": "array"}}, "required": ["content"]}


def registry_of(*items: Any) -> ToolRegistry:
    """Returns a registry with a tool that repeats its blocks in its structured content, as a file server does."""
    value = {"name": "read_media_file", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}
    answer = {"content": list(items), "structuredContent": {"content": list(items)}}
    registry = ToolRegistry()
    registry.register(ToolSpec.from_mcp(value, function=lambda: answer, permission="auto"))
    registry.enable_code_execution()
    return registry


CODE: dict[str, tuple[str, str]] = {
    "the result": ("read_media_file()", '{"content": ["[image]"]}'),
    "its content": ("read_media_file()['content']", '["[image]"]'),
    "its block": ("read_media_file()['content'][0]", "[image]"),
    "its block beside data": ("{'n': 1, 'of': read_media_file()['content'][0]}", '{"n": 1, "of": "[image]"}'),
    "an assigned result": ("__result__ = read_media_file()", '{"content": ["[image]"]}'),
}


@pytest.mark.parametrize("name", CODE)
def test_the_image_leaves_the_program_as_a_block(name: str) -> None:
    code, text = CODE[name]
    result = registry_of(PICTURE).invoke("code_execution", {"code": code})
    told, *media = result.content
    assert (told["text"], media) == (text, [BLOCK])  # type: ignore[typeddict-item]
    assert PIXEL not in result.text


@pytest.mark.parametrize(
    ("item", "block"),
    [
        (SOUND, SOUND_BLOCK),
        ({**PICTURE, "annotations": {"priority": 1}, "_meta": {"a": 1}}, BLOCK),
        ({**PICTURE, "mimeType": "image/jpeg"}, {**BLOCK, "source": {**BLOCK["source"], "media_type": "image/jpeg"}}),  # type: ignore[dict-item]
    ],
)
def test_other_media_leave_it_too(item: Any, block: Any) -> None:
    result = registry_of(item).invoke("code_execution", {"code": "read_media_file()"})
    assert result.content[1:] == [block]


NO_MEDIA: list[tuple[dict[str, Any], Any]] = [
    ({**PICTURE, "data": "?"}, "[image: image/png, 0 bytes]"),
    ({**PICTURE, "data": 3}, {**PICTURE, "data": 3}),
    ({**PICTURE, "width": 3}, "[image: image/png, 8 bytes]"),
    ({"type": "image"}, {"type": "image"}),
]


@pytest.mark.parametrize(("item", "told"), NO_MEDIA)
def test_what_is_no_block_stays_in_the_value(item: dict[str, Any], told: Any) -> None:
    result = registry_of(item).invoke("code_execution", {"code": "read_media_file()['content'][0]"})
    assert ([block["type"] for block in result.content], json.loads(result.text)) == (["text"], told)


async def test_a_client_in_code_mode_receives_the_image() -> None:
    server = ToolServer(registry_of(PICTURE), "files", mode="code")
    async with Client(server.in_memory()) as client:
        result: Any = await client.call_tool("run_program", {"code": "read_media_file()"})
    told = [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in result.content]
    assert told == [{"type": "text", "text": '{"content": ["[image]"]}'}, PICTURE]
