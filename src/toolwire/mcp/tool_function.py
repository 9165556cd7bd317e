"""`MCPToolFunction`: a tool of a server as a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, Self, TypeVar

from toolwire.definition.tool import Tool
from toolwire.mcp.convert import field_of, from_mcp, result_of_mcp
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.questions import InputRequired
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

T = TypeVar("T")


class CallFuture(Future[T], Generic[T]):
    """The result of a call of a server. Wait for it with `await`, or in a thread with `result()`."""

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()


Send = Callable[[str, dict[str, Any], Callable[[Any], Any], Future[Any], CallContext | None], None]
"""Sends a call: the tool's name, the arguments, the reading of its `CallToolResult`, the future to set, and the context
that asks a person; None for a call without one.
"""


class MCPToolFunction:
    """A tool of an MCP server. A registry or toolkit takes it like any function.

    Calling it is the owner's own call: no rule is asked, and nothing is recorded.
    """

    def __init__(self, server: str, value: Any, send: Send, *, wrap_tool_result: bool = True) -> None:
        """`value` is the server's definition of the tool. `server` comes before its name in registries."""
        self.server = server
        """The name of the server."""
        self.value = value
        """The server's definition of the tool, as the SDK has it."""
        self.wrap_tool_result = wrap_tool_result
        """True if calls give a `ToolResponse`, False for the SDK's `CallToolResult`."""
        self.called: str | None = None
        """Another name for it in registries, after the server's; None is the server's own."""
        self.description: str | None = None
        """Another description for models; None is the server's own."""
        self.is_sanitised = False
        """True if clients behind a gateway get the texts of toolwire's own prompts, and not the server's."""
        self._send = send
        self._tool: Tool | None = None

    def __repr__(self) -> str:
        return f"<MCPToolFunction {self.server}/{self.name}>"

    def __await__(self) -> Generator[None, None, Self]:
        """Returns the function, for code that awaited `get_callable_function`."""
        return self
        yield

    @property
    def name(self) -> str:
        """The name that the server knows."""
        return str(field_of(self.value, "name"))

    def __call__(self, **arguments: Any) -> CallFuture[Any]:
        """Calls the tool. The future gives a `ToolResponse`, or the raw `CallToolResult`."""
        future: CallFuture[Any] = CallFuture()
        self._send(self.name, arguments, _response if self.wrap_tool_result else _same, future, None)
        return future

    def __tool__(self) -> Tool:
        if self._tool is None:
            self._tool = self._make_tool()
        return self._tool

    def _make_tool(self) -> Tool:
        read = _same if self.wrap_tool_result else _raw

        def call(context: Any = None, /, **arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            self._send(self.name, arguments, read, future, context)
            return future

        value = self.value.model_dump(by_alias=True, mode="json", exclude_none=True)
        if not self.wrap_tool_result:
            # The server promises its structured content, and the data are the whole `CallToolResult`.
            value.pop("outputSchema", None)
        if self.description is not None:
            value["description"] = self.description
        tool = from_mcp({**value, "name": f"{self.server}/{self.called or self.name}"}, call)
        tool.asker = self.server
        if self.is_sanitised:
            # All readers get the texts that are safe in a prompt.
            tool.original = None
        return tool


def _same(result: Any) -> Any:
    return result


def _raw(result: Any) -> ToolResult | InputRequired:
    """Returns a result whose data are the SDK's own object, with the blocks that a model reads."""
    if isinstance(result, ToolResult | InputRequired):
        return result
    read = result_of_mcp(result)
    return ToolResult(True, result, None, read.metadata, content=read.content)


def _response(result: Any) -> ToolResponse:
    read = result_of_mcp(result)
    return ToolResponse(read.content, {**read.metadata, "is_error": read.failure is not None})
