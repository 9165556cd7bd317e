"""Converts results of calls to results of MCP."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least

from toolwire.definition.derived import once_per_schema
from toolwire.definition.tool import Tool
from toolwire.mcp.convert import FAILED_DATA
from toolwire.vocabulary.blocks import ContentBlock, is_block
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.media_bytes import read_media
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import encodable
from toolwire.vocabulary.values import plain_value

_LOG = logging.getLogger("toolwire.gateway")

OWN_META = "toolwire/"
"""How keys of `_meta` begin that only toolwire writes: a client must not take a server's word for ours."""

FAILURE_META = f"{OWN_META}failure"
"""The key in `_meta` under which a failed result has its kind, hint and data."""

_DATA = frozenset({"structuredContent", "inputSchema", "outputSchema"})
"""Members of a result that are not MCP's own, so that a `_meta` in them is left alone."""


def sendable_result(
    name: str, result: ToolResult, output_schema: Mapping[str, Any] | None, *, version: str
) -> types.CallToolResult:
    """Works as `call_result`. If the author of the tool built a block wrongly, it returns a result that says so."""
    try:
        return call_result(result, output_schema, version=version)
    except (Unrepresentable, KeyError, TypeError, ValueError) as error:
        _LOG.exception("the result of %r cannot be sent", name)
        text = f"The tool ran, but its result cannot be sent: {error}. It may have taken effect."
        meta = {FAILURE_META: {"kind": "invalid_result", "hint": ""}}
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, _meta=meta)


def call_result(result: ToolResult, output_schema: Mapping[str, Any] | None, *, version: str) -> types.CallToolResult:
    """Returns the result for a client with that version of the protocol.

    `output_schema` is that of the tool, and of the structured content.

    UTF-8 can encode each text of it: U+FFFD replaces lone surrogates.
    """
    meta = without_own_meta({"_meta": without_server_name(result.metadata.get("mcp"))})["_meta"]
    if result.failure is not None:
        meta[FAILURE_META] = failure_of(result)
    data = _data_for_schema(result, output_schema, version) if has_structured_content(version) else None
    return types.CallToolResult(
        content=[mcp_block(block) for block in without_own_meta(encodable(plain_value(result.content)))],
        structured_content=encodable(data),
        is_error=not result.success,
        _meta=encodable(plain_value(meta)) or None,
    )


def without_server_name(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the `_meta` of a result without the name of a server behind. The SDK writes that of this server."""
    return {key: value for key, value in (meta or {}).items() if key != types.SERVER_INFO_META_KEY}


def without_own_meta(value: Any) -> Any:
    """Returns a value of MCP as JSON, without toolwire's keys in each `_meta` of it."""
    if isinstance(value, list):
        return [without_own_meta(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[Any, Any]", value)
    found = {key: item if key in _DATA else without_own_meta(item) for key, item in members.items()}
    meta = found.get("_meta")
    if isinstance(meta, dict):
        entries = cast("dict[Any, Any]", meta).items()
        found["_meta"] = {key: item for key, item in entries if not str(key).startswith(OWN_META)}
    return found


def has_structured_content(version: str) -> bool:
    """True if a version of the protocol has structured content and output schemas."""
    return is_version_at_least(version, "2025-06-18")


_TEXT = {"type": "string"}


@once_per_schema
def output_schema_for_clients(tool: Tool) -> dict[str, Any] | None:
    """Returns the output schema that clients see, for protocols that have one. A function that returns a text has none.

    Its text would be sent twice: once for clients that read structured content, and once for all others.
    """
    schema = tool.output_schema
    if schema is not None and tool.is_wrapped_output and schema["properties"] == {"result": _TEXT}:
        return None
    return schema


def is_object(schema: Mapping[str, Any] | None) -> bool:
    """True if values of the schema are objects, as the handshake protocols demand of structured content."""
    return schema is not None and schema.get("type") == "object"


def _data_for_schema(result: ToolResult, output_schema: Mapping[str, Any] | None, version: str) -> Any:
    if not result.success:
        return plain_value(result.metadata.get(FAILED_DATA))
    if output_schema is None:
        return _own_structure(result.data)
    if is_object(output_schema):
        return result.structured_content
    # Such a schema is an outside tool's own, and describes the data without a wrapper.
    value: object = plain_value(result.data)
    is_sendable = version in MODERN_PROTOCOL_VERSIONS or isinstance(value, dict)
    return value if is_sendable else None  # pyright: ignore[reportUnknownVariableType]


def _own_structure(data: Any) -> dict[str, Any] | None:
    """Returns the data of a tool without an output schema if they are an object; None for a text, a list or blocks."""
    value = plain_value(data)
    return cast("dict[str, Any]", value) if not is_block(value) and type(value) is dict else None


def failure_of(result: ToolResult) -> dict[str, Any]:
    """Returns a failure's text for a client."""
    failure = result.failure
    assert failure is not None
    told: dict[str, Any] = {"kind": failure.kind, "hint": failure.hint}
    request_id = failure.data.get("request_id")
    return told | ({"requestId": request_id} if request_id else {})


def mcp_block(block: ContentBlock) -> types.ContentBlock:
    """Returns a block in MCP's form. Media that lie at a URL become a link to it.

    An image may be of any type. One whose bytes are not of its type, or not base64, becomes a text that says so.
    """
    more: Any = {"annotations": block.get("annotations"), "_meta": block.get("_meta")}
    match block["type"]:
        case "text":
            return types.TextContent(text=block["text"], **more)
        case "image" | "audio" as kind:
            source = block["source"]
            if source["type"] == "url":
                return types.ResourceLink(uri=source["url"], name=kind, **more)
            found = read_media(kind, source, is_for_model=False)
            if isinstance(found, str):
                return types.TextContent(text=found, **more)
            made = types.ImageContent if kind == "image" else types.AudioContent
            return made(data=found.data, mime_type=found.media_type, **more)
        case "resource":
            resource = cast("dict[str, Any]", block["resource"])
            contents = types.TextResourceContents if "text" in resource else types.BlobResourceContents
            return types.EmbeddedResource(resource=contents.model_validate(resource), **more)
        case "resource_link":
            fields = {name: value for name, value in block.items() if name != "type"}
            return types.ResourceLink.model_validate(fields)
