"""Gives a tool to FastMCP: its calls go down the path of a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.definition.tool import Tool
from toolwire.facade.driving import async_scope, new_scope
from toolwire.facade.given_calls import decode_call
from toolwire.facade.named_tools import NamedTools
from toolwire.facade.tools.intake import entries_of
from toolwire.invocation.invoker import invoke
from toolwire.invocation.scope import Scope, require_result
from toolwire.runtime.extras import packages_of
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from fastmcp.tools import Tool as FastmcpTool


def fastmcp_tools() -> Any:
    """Returns the module that converts tools of FastMCP.

    Raises:
        ConfigurationError: FastMCP is not installed.
    """
    with packages_of("fastmcp", "a tool of FastMCP"):
        return import_module("toolwire.mcp.values.fastmcp_tools")


def export_tool(tool: Tool, registry: NamedTools | None) -> FastmcpTool:
    """Returns the tool for FastMCP. Its calls go down the path of the registry, or of one with this tool alone.

    Raises:
        ConfigurationError: FastMCP is not installed, or the registry does not have the tool.
    """
    to_fastmcp, scope = fastmcp_tools().to_fastmcp, _scope(tool, registry)
    entry = next((entry for entry in scope().catalogue if entry.tool is tool), None)
    if entry is None:
        raise ConfigurationError(
            f"to_fastmcp(registry=...): the registry does not have this tool {tool.name!r}: register it first"
        )

    async def call(arguments: Mapping[str, Any]) -> ToolResult:
        now = scope()
        given = decode_call(ToolCall(entry.name, arguments, id=new_id("r")), now.tools)
        return require_result(await invoke(given, async_scope(now)))

    return to_fastmcp(entry.tool_view, entry.name, call)


def _scope(tool: Tool, registry: NamedTools | None) -> Callable[[], Scope]:
    """Returns a function that gives the present scope: the rules of a registry may change between two calls."""
    if registry is not None:
        return lambda: registry._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    catalogue = Catalogue()
    catalogue.add_all(entries_of(tool))
    alone = new_scope(catalogue)
    return lambda: alone
