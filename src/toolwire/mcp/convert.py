"""Converts MCP's tool values to tools and back, and the results of its calls to a `ToolResult`."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.runtime.extras import packages_of
from toolwire.vocabulary.blocks import ContentBlock, data_of, is_block
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.media_bytes import image_type_of_base64
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from mcp_types import Tool as McpTool


def from_mcp(value: object, function: Callable[..., Any] | None = None, **options: Any) -> Tool:
    """Returns a tool made from an MCP tool value: of either SDK generation, or the JSON object that was received.

    Needs no MCP package. Without a `function` the tool can be described but not called. A `CallToolResult` that the
    function returns is converted: `isError` becomes the failure `tool_error`, structured content the data, blocks
    blocks.

    The annotations come from the server and are never trusted. A person is asked before each call, and its results are
    untrusted, unless `options` (those of `from_jsonschema`) say otherwise.

    Raises:
        DefinitionError: it lacks a name or an input schema, or the schema cannot be used.
    """
    name = field_of(value, "name")
    if not isinstance(name, str):
        raise DefinitionError(f"{value!r} is not an MCP tool: it has no name")
    input_schema = field_of(value, "input_schema", "inputSchema")
    if any(kind.__module__.partition(".")[0] == "fastmcp" for kind in cast("type[Any]", type(value)).__mro__):
        raise DefinitionError(f"{name!r} is a tool of FastMCP: use ToolSpec.from_fastmcp(tool)")
    if not isinstance(input_schema, Mapping):
        raise DefinitionError(f"MCP tool {name!r} has no input schema: give it as inputSchema")
    meta, version = _version_apart(field_of(value, "meta", "_meta"))
    found: dict[str, Any] = {"meta": meta, "version": version, "icons": field_of(value, "icons")}
    tool = from_schema(
        name,
        field_of(value, "description") or "",
        cast("Mapping[str, Any]", input_schema),
        field_of(value, "output_schema", "outputSchema"),
        function,
        title=field_of(value, "title"),
        annotations=_annotation_fields(field_of(value, "annotations")),
        is_outside=True,
        **(_UNASKED | found | options),
    )
    if tool.function is not None:
        tool.function = reading_results(tool.function, is_async=tool.is_async)
    return tool


_UNASKED: dict[str, Any] = {"permission": "confirm", "labels": ("untrusted",)}
"""Defaults for a tool from outside, unless the caller's options replace them."""


def to_mcp(tool: Tool) -> McpTool:
    """Returns the tool as an MCP tool value; bound parameters are left out.

    Raises:
        ConfigurationError: the extra `toolwire[mcp]` is not installed.
    """
    with packages_of("mcp", "to_mcp"):
        import mcp_types
    published = tool.published
    meta = _with_version(published.own_meta(), published.version)
    annotations = mcp_types.ToolAnnotations.model_validate(tool.annotations) if tool.annotations else None
    return mcp_types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description or None,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=annotations,
        icons=[mcp_types.Icon.model_validate(icon) for icon in published.own_icons()] or None,
        # Use the alias: the model accepts the field's own name only if it is populated by name.
        _meta=meta or None,
    )


_NAMESPACE, _LEGACY_NAMESPACE = "fastmcp", "_fastmcp"
"""FastMCP's namespaces in `_meta` for fields that MCP lacks, as `_meta["fastmcp"]["version"]`; old versions use the
second.
"""


def _version_apart(meta: Any) -> tuple[Any, str | None]:
    """Returns the received `_meta` without its version, and the version."""
    if not isinstance(meta, Mapping):
        return meta, None
    fields = dict(cast("Mapping[str, Any]", meta))
    for namespace in (_NAMESPACE, _LEGACY_NAMESPACE):
        own = fields.get(namespace)
        rest: dict[str, Any] = dict(cast("Mapping[str, Any]", own)) if isinstance(own, Mapping) else {}
        version = rest.pop("version", None)
        if isinstance(version, str) and version.strip():
            del fields[namespace]
            return fields | ({namespace: rest} if rest else {}), version
    return fields, None


def _with_version(meta: dict[str, Any], version: str | None) -> dict[str, Any]:
    if version is None:
        return meta
    own = meta.get(_NAMESPACE, {})
    if not isinstance(own, dict) or cast("dict[str, Any]", own).get("version", version) != version:
        raise DefinitionError(
            f"version={version!r} and meta[{_NAMESPACE!r}]={own!r:.80} say different things: leave one of them out"
        )
    return {**meta, _NAMESPACE: {**cast("dict[str, Any]", own), "version": version}}


def _annotation_fields(annotations: Any) -> dict[str, Any] | None:
    if annotations is None or isinstance(annotations, Mapping):
        return None if annotations is None else dict(cast("Mapping[str, Any]", annotations))
    return annotations.model_dump(by_alias=True, exclude_none=True)


_KEYS = frozenset(
    {
        *("content", "structuredContent", "structured_content", "isError", "is_error"),
        *("_meta", "meta", "resultType", "result_type"),
    }
)
"""The keys of a call's result as JSON. A mapping with any other key is a tool's own data."""
_RESULT_KEYS = frozenset({"structuredContent", "structured_content", "isError", "is_error"})
"""Keys of which one must be there if the content is not."""


def reading_results(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Returns the function with its MCP results converted to `ToolResult`; every other value passes unchanged."""

    async def await_result(value: Awaitable[Any]) -> Any:
        return result_of_mcp(await value)

    def call(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if isinstance(value, Future):
            return _ReadFuture(cast("Future[Any]", value))
        return await_result(value) if _is_awaitable(value) else result_of_mcp(value)

    async def call_later(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if not _is_awaitable(value):
            return value
        value = await value
        return _ReadFuture(cast("Future[Any]", value)) if isinstance(value, Future) else result_of_mcp(value)

    return wraps(function)(call_later if is_async else call)


class _ReadFuture(Future[Any]):
    """The converted result of another future, which decides whether it can be cancelled."""

    def __init__(self, source: Future[Any]) -> None:
        super().__init__()
        self._source: Future[Any] | None = source
        source.add_done_callback(self._settle)

    def cancel(self) -> bool:
        """Cancels the other future, and so this one."""
        source = self._source
        return self.cancelled() if source is None else source.cancel()

    def _settle(self, source: Future[Any]) -> None:
        # A future keeps its callbacks: both would live on as a cycle until the next garbage collection.
        self._source = None
        if source.cancelled():
            super().cancel()
            return
        error = source.exception()
        if error is not None:
            self.set_exception(error)
            return
        try:
            self.set_result(result_of_mcp(source.result()))
        except Exception as unread:  # noqa: BLE001 - it is the result of the call
            self.set_exception(unread)


def _is_awaitable(value: Any) -> bool:
    return hasattr(cast("object", type(value)), "__await__")


FAILED_DATA = "mcp_structured"
"""The key of the metadata under which a failed result has the structured content of its server."""


def result_of_mcp(value: Any) -> Any:
    """Converts a `CallToolResult`, of either SDK generation or as JSON, to a `ToolResult`. Any other value is returned
    as it is.

    A result with `isError` becomes the failure `tool_error`. Structured content becomes the data; blocks stay blocks.
    """
    if not _is_result(value):
        return value
    blocks = [block_of(item) for item in items_of(field_of(value, "content"))]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    meta = field_of(value, "meta", "_meta")
    metadata = {"mcp": meta} if meta else {}
    structured = field_of(value, "structured_content", "structuredContent")
    if field_of(value, "is_error", "isError"):
        rest = [block for block in blocks if block["type"] != "text"]
        # A failure has no data for a model.
        metadata |= {FAILED_DATA: structured} if isinstance(structured, Mapping) else {}
        return ToolResult(False, error="\n".join(texts) or None, metadata=metadata, content=rest)
    data = data_of(blocks) if structured is None else structured
    return ToolResult(True, data, None, metadata, content=blocks)


def _is_result(value: Any) -> bool:
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        if not fields.keys() <= _KEYS:
            return False
        content = fields.get("content")
        if content is None:
            return not fields.keys().isdisjoint(_RESULT_KEYS)
        return isinstance(content, list | Mapping) and all(
            isinstance(field_of(item, "type"), str) for item in items_of(content)
        )
    return hasattr(value, "content") and (hasattr(value, "is_error") or hasattr(value, "isError"))


def items_of(content: Any) -> list[Any]:
    """Returns the blocks of a result's content, which careless servers also write as one block or as null."""
    if content is None:
        return []
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def block_of(item: Any) -> ContentBlock:
    """Returns a block of MCP as a block of toolwire. A block of an unknown or wrong form becomes its type as text.

    A text in the place of a block is a text block.
    """
    if isinstance(item, str):
        return {"type": "text", "text": item}
    kind = field_of(item, "type")
    fields: dict[str, Any] = {}
    if kind == "text":
        text = field_of(item, "text")
        fields["text"] = "" if text is None else str(text)
    elif kind in ("image", "audio"):
        data = str(field_of(item, "data") or "")
        media_type = field_of(item, "mime_type", "mimeType") or image_type_of_base64(data)
        fields["source"] = {"type": "base64", "media_type": str(media_type or kind), "data": data}
    elif kind == "resource":
        resource = field_of(item, "resource")
        fields["resource"] = _fields(resource, ("uri", "text", "blob")) | _meta_of(resource)
    elif kind == "resource_link":
        fields = _fields(item, ("uri", "name", "title", "description"))
        if type(size := field_of(item, "size")) is int:
            fields["size"] = size
        if icons := [icon for icon in map(_icon_of, items_of(field_of(item, "icons"))) if icon]:
            fields["icons"] = icons
    block = {"type": kind, **fields, **_meta_of(item)}
    annotations = _annotations(field_of(item, "annotations"))
    if annotations and is_block(annotated := {**block, "annotations": annotations}):
        return annotated
    return block if is_block(block) else {"type": "text", "text": f"[{kind or 'unknown'}]"}


def _fields(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the texts under these names, and the media type."""
    found = {name: field_of(value, name) for name in names} | {"mimeType": field_of(value, "mime_type", "mimeType")}
    return {name: str(given) for name, given in found.items() if given is not None}


def _meta_of(value: object) -> dict[str, Any]:
    """Returns the `_meta` of a block or resource under its key; nothing without one."""
    is_json = isinstance(value, Mapping)
    meta: Any = cast("Mapping[str, Any]", value).get("_meta") if is_json else getattr(value, "meta", None)
    return {"_meta": copy.deepcopy(cast("dict[str, Any]", meta))} if type(meta) is dict and meta else {}


def _icon_of(value: Any) -> dict[str, Any]:
    """Returns an icon as JSON; nothing for another value."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return copy.deepcopy(dict(cast("Mapping[str, Any]", value))) if isinstance(value, Mapping) else {}


def _annotations(value: Any) -> dict[str, Any]:
    """Returns what MCP defines of a block's annotations."""
    found = {
        "audience": field_of(value, "audience"),
        "priority": field_of(value, "priority"),
        "lastModified": field_of(value, "last_modified", "lastModified"),
    }
    return {name: copy.deepcopy(given) for name, given in found.items() if given is not None}


def field_of(value: object, *names: str) -> Any:
    """Returns the first of these fields that the value has, as a key or as an attribute; None when it has none."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return next((fields[name] for name in names if name in fields), None)
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)
