"""Data as text for a model. A description of media stands in place of their base64."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from toolwire.vocabulary.blocks import (
    ContentBlock,
    blob_line,
    block_for_model,
    byte_count,
    is_block,
    is_media,
    is_resource,
)
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.values import plain_value

_MARKS = ('"base64"', '"blob"', '"mimeType"', '"mime_type"', '"data:')
"""Every text of data with base64 in a block contains at least one of these."""

LONG_BASE64 = 256
"""Characters from which a value that a program printed counts as base64 without a media type beside it. The hex text of
a SHA-512 has 128.
"""
_NEAR = 200
"""Characters before and after a printed value in which its media type is looked for. Other fields stand between."""
_PRINTED = re.compile(r"""(\\{0,8}["'])(data|blob)\1(\s{0,8}:\s{0,8})(\\{0,8}["'])([A-Za-z0-9+/=]++)(?:\4|\Z)""")
"""A printed field that may hold base64. The end of the output may have cut it."""
_TYPED = re.compile("base64|media_type|mimeType|mime_type|uri")
_DATA_URL = re.compile(r"data:[\w.+/;=-]{0,200};base64,[A-Za-z0-9+/=]++")


def model_value(value: Any) -> Any:
    """Returns a string unchanged, and any other value in JSON types.

    Each image, sound and blob in it is described by its kind, media type and size. The data of a `data:` URL are too.

    Raises:
        Unrepresentable: See `plain_value`.
    """
    return value if type(value) is str else _describe_media(plain_value(value))


def show(value: Any) -> str:
    """Returns the value as text for a model: a string unchanged, anything else as JSON, with media described."""
    if type(value) is str:
        return value
    data = plain_value(value)
    text = json.dumps(data, ensure_ascii=False)
    return json.dumps(_describe_media(data), ensure_ascii=False) if any(mark in text for mark in _MARKS) else text


def model_output(text: str) -> str:
    """Returns the output of a program with a description in place of each base64 field that it printed.

    A program may print a block as Python or as JSON. Base64 that it prints without its field stays.
    """
    if "data" not in text and "blob" not in text:
        return text
    return _DATA_URL.sub(_url_line, _PRINTED.sub(_field_line, text))


def media_apart(value: Any) -> tuple[Any, list[ContentBlock]]:
    """Returns a value with names such as `[image]` in place of its media blocks, and these blocks.

    The value is a program's: it has no cycles. The loop has no recursion, because the value may be nested deeply.
    """
    found: list[ContentBlock] = []
    root = [value]
    containers: list[Any] = [root]
    for container in containers:
        pairs = cast("dict[Any, Any]", container).items() if type(container) is dict else enumerate(container)
        for key, item in list(pairs):
            block = _media_block(item)
            if block is not None:
                found.append(block)
                container[key] = f"[{block_for_model(block)['type']}]"
            elif type(item) in (dict, list, tuple):
                copied: Any = dict(cast("dict[Any, Any]", item)) if type(item) is dict else list(item)
                container[key] = copied
                containers.append(copied)
    return (root[0], found) if found else (value, [])


_MCP_MEDIA = frozenset({"type", "data", "mimeType", "annotations", "_meta"})
"""The fields of an image or a sound in MCP's form. Servers repeat their blocks in structured content."""


def _media_block(item: Any) -> ContentBlock | None:
    """Returns the block of a media block in toolwire's form or in MCP's; None for any other value."""
    if type(item) is not dict:
        return None
    media = cast("dict[str, Any]", item)
    if media.get("type") in ("image", "audio") and "data" in media and media.keys() <= _MCP_MEDIA:
        source = {"type": "base64", "media_type": media.get("mimeType") or media["type"], "data": media["data"]}
        media = {"type": media["type"], "source": source}
    return media if is_block(media) and is_media(media) else None


def _describe_media(data: Any) -> Any:
    """Returns data in JSON types with media described. `plain_value` has bounded their depth."""
    if type(data) is list:
        return [_describe_media(item) for item in cast("list[Any]", data)]
    if type(data) is str and data.startswith("data:"):
        return _DATA_URL.sub(_url_line, data)
    if type(data) is not dict:
        return data
    members = cast("dict[str, Any]", data)
    line = _base64_line(members)
    return {name: _describe_media(item) for name, item in members.items()} if line is None else line


_MCP_NAMES = {"mime_type": "mimeType"}


def _base64_line(members: Mapping[str, Any]) -> str | None:
    """Returns the description of a mapping that holds base64 itself, or None.

    These are the blocks, and their inner parts: a block with more fields is not an exact block. An image or a sound of
    MCP has its data and its media type in the block itself. Its SDK writes `mime_type`, and None for what is missing.
    """
    kind, source, resource = (members.get(name) for name in ("type", "source", "resource"))
    if is_block(members):
        if kind == "resource":
            return _base64_line(cast("Mapping[str, Any]", resource))
        inner = _source_line(cast("Mapping[str, Any]", source)) if kind in ("image", "audio") else None
        return None if inner is None else f"[{kind}: {inner}]"
    if kind in ("image", "audio"):
        inner = _bytes_line(members.get("mimeType") or members.get("mime_type"), members.get("data"))
        return None if inner is None else f"[{kind}: {inner}]"
    if "blob" in members:
        given = {_MCP_NAMES.get(name, name): value for name, value in members.items() if value is not None}
        if is_resource(given):
            return blob_line(given)
    inner = _source_line(members)
    return None if inner is None else f"[{inner}]"


def _source_line(source: Mapping[str, Any]) -> str | None:
    if source.get("type") == "url" and isinstance(url := source.get("url"), str) and url.startswith("data:"):
        head, _, data = url.partition(",")
        return _bytes_line(head.removeprefix("data:").removesuffix(";base64"), data)
    return _bytes_line(source.get("media_type"), source.get("data")) if source.get("type") == "base64" else None


def _bytes_line(media_type: object, data: object) -> str | None:
    if not isinstance(media_type, str) or not isinstance(data, str):
        return None
    return f"{media_type or 'of unknown type'}, {count_of(byte_count(data), 'byte')}"


def _field_line(printed: re.Match[str]) -> str:
    mark, name, colon, quote, data = printed.groups()
    text, (begin, end) = printed.string, printed.span()
    is_typed = _TYPED.search(text, max(begin - _NEAR, 0), begin) or _TYPED.search(text, end, end + _NEAR)
    if not is_typed and len(data) < LONG_BASE64:
        return printed[0]
    return f"{mark}{name}{mark}{colon}{quote}[{count_of(byte_count(data), 'byte')}]{quote}"


def _url_line(printed: re.Match[str]) -> str:
    head, _, data = printed[0].partition(",")
    return f"{head},[{count_of(byte_count(data), 'byte')}]"
