"""The forms in which a `ToolSpec` leaves toolwire: texts, schemas, and tools of MCP and FastMCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolwire.definition.tool import Tool
from toolwire.facade.named_tools import NamedTools
from toolwire.vocabulary.errors import DefinitionError

if TYPE_CHECKING:
    from fastmcp.tools import Tool as FastmcpTool
    from mcp_types import Tool as McpTool


class SpecExports:
    """Describes a tool in other forms. Each method returns a new object, so changing it leaves the tool as it was."""

    _tool: Tool

    @property
    def docstring(self) -> str:
        """A docstring in Google style, made from the tool's definition."""
        from toolwire.definition.renderings.describe import docstring_text

        return docstring_text(self._tool)

    @property
    def code(self) -> str:
        """The tool as a Python function definition with its docstring."""
        from toolwire.definition.renderings.describe import code_text

        return code_text(self._tool)

    def signature(self, **arguments: Any) -> str:
        """Returns a call of it as text: `search_database(query='example', limit=10)`.

        Raises:
            DefinitionError: A required argument is missing, or an argument has no parameter.
        """
        from toolwire.definition.renderings.python_text import call_text

        missing = [item.name for item in self._tool.visible_parameters if item.required and item.name not in arguments]
        if missing:
            given = ", ".join(f"{name}=..." for name in [*arguments, *missing])
            raise DefinitionError(f"tool {self._tool.name!r} needs {', '.join(missing)}: write signature({given})")
        return call_text(self._tool, arguments)

    def to_prompt(self) -> str:
        """Returns a description of it for a prompt."""
        from toolwire.definition.renderings.describe import prompt_text

        return prompt_text(self._tool)

    def to_jsonschema(self, **fields: Any) -> dict[str, Any]:
        """Returns the flat form: type, name, description, parameters, strict. `fields` add or replace entries."""
        from toolwire.definition.renderings.describe import jsonschema_form

        return jsonschema_form(self._tool, **fields)

    def to_mcp(self) -> McpTool:
        """Returns the tool as an MCP tool value, with its title, icons and `_meta`. Needs the extra `toolwire[mcp]`.

        MCP has no field for a version: it is in `_meta`, under `fastmcp`, where FastMCP writes and reads it.
        """
        from toolwire.mcp.convert import to_mcp

        return to_mcp(self._tool)

    def to_fastmcp(self, registry: NamedTools | None = None) -> FastmcpTool:
        """Returns a tool of FastMCP for `server.add_tool`. Needs the extra `toolwire[fastmcp]`.

        Its calls go down the path of `registry`, a `ToolRegistry` or a `Toolkit` that has this tool: its rules,
        approver, middleware and log count, and FastMCP's tool has its name there. Without a registry the tool's own
        permission decides, and `confirm` does not run because no one can be asked. Name, texts and schemas are those of
        now. Bound parameters are left out, and their values are read at each call.

        Raises:
            ConfigurationError: The extra is not installed, or the registry does not have this tool.
        """
        from toolwire.facade.tools.fastmcp_export import export_tool

        return export_tool(self._tool, registry)
