"""Tools of FastMCP to tools and back. Import this module late: FastMCP takes two seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from fastmcp.exceptions import ValidationError
from fastmcp.tools import InputRequiredToolResult
from fastmcp.tools import Tool as FastmcpTool
from fastmcp.tools import ToolResult as FastmcpResult
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import PrivateAttr
from pydantic import ValidationError as WrongArguments

from toolwire.definition.tool import Tool
from toolwire.mcp.convert import from_mcp, to_mcp
from toolwire.mcp.values.call_results import is_object, sendable_result
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.results import ToolResult

_NAMESPACE = "fastmcp"
"""The key of `_meta` under which FastMCP keeps its own fields."""

Call = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]


def from_fastmcp(value: object, **options: Any) -> Tool:
    """Returns a tool whose function is the `run` of FastMCP's tool. Permission and labels are those of `from_mcp`.

    Raises:
        DefinitionError: It is not a tool of FastMCP, or its schema cannot be used.
    """
    if not isinstance(value, FastmcpTool):
        raise DefinitionError(
            f"{value!r:.80} is not a tool of FastMCP: give a fastmcp.tools.Tool, such as Tool.from_function(f) or "
            "await server.get_tool('name')"
        )
    described: dict[str, Any] = {
        "name": value.name,
        "title": value.title,
        "description": value.description,
        "inputSchema": value.parameters,
        "outputSchema": value.output_schema,
        "annotations": value.annotations,
        "icons": value.icons,
        "_meta": {key: entry for key, entry in (value.meta or {}).items() if key != _NAMESPACE},
    }
    found: dict[str, Any] = {"tags": value.tags, "version": value.version}
    return from_mcp(described, _running(value), **(found | options))


def _running(value: FastmcpTool) -> Callable[..., Awaitable[Any]]:
    async def run(**arguments: Any) -> Any:
        try:
            result = await value.run(arguments)
        except ValidationError as error:
            return ToolResult.failed("invalid_arguments", _complaint(value.name, error), exception=error)
        return _failure_without_client(value.name) if isinstance(result, InputRequiredToolResult) else result

    return run


def _complaint(name: str, error: ValidationError) -> str:
    """Returns what FastMCP found wrong in arguments that fit the schema, such as a text that is not a date."""
    found = error.__cause__
    if not isinstance(found, WrongArguments):
        return f"The arguments of {name!r} are wrong: {error}"
    problems = found.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"- {'.'.join(map(str, problem['loc']))!r}: {problem['msg']}." for problem in problems]
    return "\n".join([f"The arguments of {name!r} are wrong:", *lines])


def _failure_without_client(name: str) -> ToolResult:
    return ToolResult.failed(
        "unavailable",
        f"{name!r} did not finish: it asks the client of its server for input, and was called without one. "
        "Its owner connects to that server by MCPClient.",
    )


def to_fastmcp(tool: Tool, name: str, call: Call) -> FastmcpTool:
    """Returns a tool of FastMCP with that name, whose `run` is `call`. FastMCP itself does not check its arguments.

    Structured content is an object in FastMCP. An output schema of another type is left out.
    """
    value, published = to_mcp(tool), tool.published
    return _ToolwireTool(
        name=name,
        version=published.version,
        title=value.title,
        description=value.description,
        icons=value.icons,
        tags=set(tool.tags),
        annotations=value.annotations,
        meta=published.own_meta() or None,
        parameters=value.input_schema,
        output_schema=_output_schema(tool),
    ).set_call(call)


def _output_schema(tool: Tool) -> dict[str, Any] | None:
    """Returns the output schema for FastMCP, whose client takes a marked value out of its wrapper again."""
    schema = tool.output_schema
    if schema is None or not is_object(schema):
        return None
    return {**schema, "x-fastmcp-wrap-result": True} if tool.is_wrapped_output else dict(schema)


class _ToolwireTool(FastmcpTool):
    """FastMCP's side of a tool. Copies of it, as FastMCP makes them, call the same function."""

    _call: Call = PrivateAttr()

    def set_call(self, call: Call) -> Self:
        """Sets the function that makes the call, and returns this tool."""
        self._call = call
        return self

    async def run(self, arguments: dict[str, Any]) -> FastmcpResult:
        """Makes the call and returns its result. A call that fails has a result with `is_error`, and does not raise."""
        result = sendable_result(
            self.name, await self._call(arguments), self.output_schema, version=LATEST_HANDSHAKE_VERSION
        )
        return FastmcpResult(
            content=result.content,
            structured_content=result.structured_content,
            meta=result.meta,
            is_error=bool(result.is_error),
        )
