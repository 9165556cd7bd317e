"""Content blocks as the authors of tools build them: other spellings are read, and the rest becomes words."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolwire.vocabulary.blocks import ContentBlock, ResourceLinkBlock, TextBlock, is_block, own
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import show

_MCP_PACKAGES = frozenset({"mcp", "mcp_types"})
_MCP_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
_RESOURCE_FIELDS = ("uri", "mimeType", "text", "blob")


def read_blocks(content: Any) -> tuple[ContentBlock, ...]:
    """Returns copies of the blocks that an author gave: a list of them, one alone, or None.

    A block without its data, or of an unknown type, is a text block that shows what was given. A text is a text block.
    """
    if content is None:
        return ()
    is_one = isinstance(content, str | bytes | Mapping) or hasattr(cast("type[Any]", type(content)), "model_dump")
    if is_one or not isinstance(content, Iterable):
        return (read_block(content),)
    return tuple(read_block(one) for one in cast("Iterable[Any]", content))


def read_block(given: Any) -> ContentBlock:
    """Returns one block, as `read_blocks` does."""
    if is_block(given):
        return own(given)
    fields = _fields_of(given)
    found = _read_fields(fields)
    for key in ("annotations", "_meta"):
        if given_there := fields.get(key):
            more = {**found, key: given_there}
            found = more if is_block(more) else found
    if is_block(found):
        return own(found)
    return TextBlock(type="text", text=_words_for(given, fields))


def is_mcp_content(value: object) -> bool:
    """True for a content object of MCP's SDK, and for a list of them with texts between."""
    if type(value) is list:
        items = cast("list[object]", value)
        return any(map(_is_mcp_block, items)) and all(type(item) is str or _is_mcp_block(item) for item in items)
    return _is_mcp_block(value)


def is_mcp_result(value: object) -> bool:
    """True for the result of a call as MCP's SDK has it."""
    return type(value).__name__ == "CallToolResult" and _is_of_mcp(value)


def _is_mcp_block(value: object) -> bool:
    return _is_of_mcp(value) and getattr(value, "type", "") in _MCP_TYPES


def _is_of_mcp(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in _MCP_PACKAGES


def _fields_of(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given)
    if not hasattr(cast("type[Any]", type(given)), "model_dump"):
        return {}
    try:
        return given.model_dump(by_alias=True, exclude_none=True, mode="json")
    except Exception:  # noqa: BLE001 - the serializer of a model is the tool's code
        return {}


def _read_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a block of the fields; it is not a block if one that is needed is missing."""
    match fields.get("type"):
        case "text":
            return {"type": "text", "text": fields.get("text")}
        case "image" | "audio" as kind:
            return {"type": kind, "source": _read_source(fields)}
        case "image_url" | "input_image":
            given = fields.get("image_url")
            url = cast("Mapping[str, Any]", given).get("url") if isinstance(given, Mapping) else given
            return {"type": "image", "source": {"type": "url", "url": url}}
        case "resource" if isinstance(fields.get("resource"), Mapping):
            return {"type": "resource", "resource": _read_resource(fields["resource"])}
        case "resource_link":
            known = {name: fields[name] for name in ResourceLinkBlock.__annotations__ if fields.get(name) is not None}
            return {"name": known.get("uri"), **known}
        case _:
            return {}


def _read_source(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the source of media: its own, or the fields beside it, as MCP has them. Bytes become base64."""
    given = fields.get("source")
    source = {**fields, **cast("Mapping[str, Any]", given)} if isinstance(given, Mapping) else fields
    if isinstance(url := source.get("url"), str):
        return {"type": "url", "url": url}
    data = source.get("data")
    if isinstance(data, bytes | bytearray):
        data = base64.b64encode(data).decode("ascii")
    names = ("media_type", "mimeType", "mime_type")
    return {
        "type": "base64",
        "media_type": next((source[name] for name in names if source.get(name)), ""),
        "data": data,
    }


def _read_resource(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: given[name] for name in _RESOURCE_FIELDS if isinstance(given.get(name), str)}
    return {name: value for name, value in known.items() if name != "blob" or "text" not in known}


def _words_for(given: Any, fields: Mapping[str, Any]) -> str:
    kind = fields.get("type")
    if kind in ("image", "audio"):
        return f"[{kind}: without data]"
    text = fields.get("text") if kind == "text" else given
    if isinstance(given, str):
        return given
    try:
        return show(given if text is None else text)
    except Unrepresentable:
        return f"[{kind if isinstance(kind, str) else type(given).__name__}]"
