"""Between MCP's tool values and tools, in both directions."""

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
    """A tool from an MCP tool value: of either SDK generation, or as the JSON object that was received.

    Needs no MCP package. Without a `function` the tool can be described but not called. A `CallToolResult` that the
    function returns is read: `isError` is the failure `tool_error`, structured content is the data, blocks are blocks.

    The annotations are the server's own words, and nothing here trusts them. A person is asked before each call, and
    its results are untrusted, unless `options` (those of `from_jsonschema`) say otherwise.

    Raises:
        DefinitionError: it lacks a name or an input schema, or the schema cannot be used.
    """
    name = field_of(value, "name")
    if not isinstance(name, str):
        raise DefinitionError(f"{value!r} is no MCP tool: it has no name")
    input_schema = field_of(value, "input_schema", "inputSchema")
    if not isinstance(input_schema, Mapping):
        raise DefinitionError(f"MCP tool {name!r} has no input schema: give it as inputSchema")
    tool = from_schema(
        name,
        field_of(value, "description") or "",
        cast("Mapping[str, Any]", input_schema),
        field_of(value, "output_schema", "outputSchema"),
        function,
        title=field_of(value, "title"),
        annotations=_plain(field_of(value, "annotations")),
        is_outside=True,
        **(_UNASKED | options),
    )
    if tool.function is not None:
        tool.function = reading_results(tool.function, is_async=tool.is_async)
    return tool


_UNASKED: dict[str, Any] = {"permission": "confirm", "labels": ("untrusted",)}
"""What counts of a tool from outside while nobody here speaks for it."""


def to_mcp(tool: Tool) -> McpTool:
    """The tool as an MCP tool value; bound parameters do not show.

    Raises:
        ConfigurationError: the extra `toolwire[mcp]` is not installed.
    """
    try:
        import mcp_types
    except ImportError as error:
        raise ConfigurationError("MCP values need a package that is not here: pip install 'toolwire[mcp]'") from error
    annotations = mcp_types.ToolAnnotations.model_validate(tool.annotations) if tool.annotations else None
    return mcp_types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description or None,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=annotations,
    )


def _plain(annotations: Any) -> dict[str, Any] | None:
    if annotations is None or isinstance(annotations, Mapping):
        return None if annotations is None else dict(cast("Mapping[str, Any]", annotations))
    return annotations.model_dump(by_alias=True, exclude_none=True)
