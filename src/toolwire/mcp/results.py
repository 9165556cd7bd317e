"""Converts the result of an MCP tool call to a `ToolResult`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, cast

from toolwire.mcp.fields import field_of
from toolwire.vocabulary.content import AudioBlock, Base64Source, ContentBlock, ImageBlock, TextBlock
from toolwire.vocabulary.results import ToolResult

_KEYS = frozenset(
    {
        *("content", "structuredContent", "structured_content", "isError", "is_error"),
        *("_meta", "meta", "resultType", "result_type"),
    }
)
"""The keys of a call's result as JSON. A mapping with any other key is a tool's own data."""


def reading_results(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Returns the function with its MCP results converted to `ToolResult`; every other value passes unchanged."""

    async def awaited(value: Awaitable[Any]) -> Any:
        return result_of_mcp(await value)

    def call(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return awaited(value) if _is_awaitable(value) else result_of_mcp(value)

    async def call_later(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return result_of_mcp(await value) if _is_awaitable(value) else value

    return wraps(function)(call_later if is_async else call)


def _is_awaitable(value: Any) -> bool:
    return hasattr(cast("object", type(value)), "__await__")


def result_of_mcp(value: Any) -> Any:
    """Converts a `CallToolResult`, of either SDK generation or as JSON, to a `ToolResult`. Any other value is returned
    as it is.

    A result with `isError` becomes the failure `tool_error`. Structured content becomes the data; blocks stay blocks.
    """
    if not _is_result(value):
        return value
    blocks = [_block(item) for item in field_of(value, "content") or ()]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    meta = field_of(value, "meta", "_meta")
    metadata = {"mcp": meta} if meta else None
    if field_of(value, "is_error", "isError"):
        rest = [block for block in blocks if block["type"] != "text"]
        return ToolResult(False, error="\n".join(texts) or None, metadata=metadata, content=rest)
    structured = field_of(value, "structured_content", "structuredContent")
    said = "\n".join(texts) if len(texts) == len(blocks) else None
    return ToolResult(True, said if structured is None else structured, None, metadata, content=blocks)


def _is_result(value: Any) -> bool:
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        content = fields.get("content")
        return isinstance(content, list) and fields.keys() <= _KEYS and all(map(_is_typed, cast("list[Any]", content)))
    return hasattr(value, "content") and (hasattr(value, "is_error") or hasattr(value, "isError"))


def _is_typed(item: Any) -> bool:
    return isinstance(field_of(item, "type"), str)


def _block(item: Any) -> ContentBlock:
    kind = field_of(item, "type")
    if kind == "text":
        return _text(str(field_of(item, "text") or ""))
    if kind in ("image", "audio"):
        return _media(str(field_of(item, "mime_type", "mimeType") or kind), str(field_of(item, "data") or ""), kind)
    if kind == "resource_link":
        told = (field_of(item, "title") or field_of(item, "name"), field_of(item, "uri"), field_of(item, "description"))
        return _text("[resource] " + ", ".join(str(part) for part in told if part))
    if kind == "resource":
        return _resource(field_of(item, "resource"))
    return _text(f"[{kind}]")


def _resource(resource: Any) -> ContentBlock:
    """Returns an embedded resource as a block: its text, its image or sound, or its type and size."""
    uri, mime_type = field_of(resource, "uri"), str(field_of(resource, "mime_type", "mimeType") or "")
    text, blob = field_of(resource, "text"), field_of(resource, "blob")
    if text is not None:
        return _text(f"[resource] {uri}\n{text}")
    family = mime_type.partition("/")[0]
    if family in ("image", "audio"):
        return _media(mime_type, str(blob or ""), family)
    return _text(f"[resource] {uri}, {mime_type or 'of unknown type'}, {len(str(blob or '')) * 3 // 4} bytes")


def _media(media_type: str, data: str, kind: str) -> ContentBlock:
    source = Base64Source(type="base64", media_type=media_type, data=data)
    return ImageBlock(type="image", source=source) if kind == "image" else AudioBlock(type="audio", source=source)


def _text(text: str) -> TextBlock:
    return TextBlock(type="text", text=text)
