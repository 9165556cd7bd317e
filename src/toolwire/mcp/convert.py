"""Converts MCP's tool values to tools and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.mcp.fields import field_of
from toolwire.mcp.results import reading_results
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError

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
        raise DefinitionError(f"{value!r} is no MCP tool: it has no name")
    input_schema = field_of(value, "input_schema", "inputSchema")
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
        annotations=_plain(field_of(value, "annotations")),
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
    try:
        import mcp_types
    except ImportError as error:
        raise ConfigurationError("MCP values need a package that is not here: pip install 'toolwire[mcp]'") from error
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


def _plain(annotations: Any) -> dict[str, Any] | None:
    if annotations is None or isinstance(annotations, Mapping):
        return None if annotations is None else dict(cast("Mapping[str, Any]", annotations))
    return annotations.model_dump(by_alias=True, exclude_none=True)
