"""`langchain_tools`: toolwire's tools inside agents of LangChain and graphs of LangGraph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.frameworks.keyed_calls import (
    FOR_THE_MODEL,
    Sessions,
    content_for_model,
    is_success,
    key_of,
    read_decisions,
    refusal_text,
    request_data,
    take_call,
    unless_cancelled,
)
from toolwire.permission.approval import DecisionRefused
from toolwire.runtime.extras import packages_of, require_version
from toolwire.runtime.identity import new_id
from toolwire.runtime.runtime import default_runtime
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.call_events import ToolEvent

require_version("langchain", "langchain_tools", "langchain", "1.5")
require_version("langchain", "langchain_tools", "langgraph", "1.2")
with packages_of("langchain", "langchain_tools"):
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool, ToolException
    from langgraph.errors import GraphInterrupt
    from langgraph.prebuilt import ToolRuntime
    from langgraph.types import interrupt
    from pydantic import Field

_SENT = "__pregel_push"
"""How the path of a node begins that LangGraph runs for a `Send`."""
_SAME_CALLS = (
    "same_calls: nothing was run, because this message makes the same call several times with one id, and they cannot "
    "be told apart. Make it once in a message."
)


def langchain_tools(tools: Any, *, store: Any, **options: Any) -> list[StructuredTool]:
    """Returns the tools for `create_agent`, or for a `ToolNode` of a graph. Each call runs once, in any process.

    A call that waits for people is an `interrupt` of the graph, whose value has its `requests` (`id`, `kind`, `tool`,
    `arguments` and the `text` to show). `Command(resume=decisions)` takes the decisions as `Session.resume` does.
    Each `thread_id` is one conversation of the store. Without one, the first message of the state names it. Chunks of a
    running tool go to `stream_mode="custom"`, as `ToolEvent.to_dict` and with the `tool_call_id`.

    `tools` and `store` are what `Session` takes, and `options` are its options.

    Raises:
        ConfigurationError: As `Session`, there is no store, or LangGraph has the option itself.
    """
    sessions = Sessions(tools, store, options)
    first = sessions.of(new_id("c"))
    described = [one["function"] for one in first.request_tools]
    return [_tool(sessions, function, first, tool) for tool, function in zip(first.tools, described, strict=True)]


class OfferedTools(AgentMiddleware[Any, Any, Any]):
    """Leaves out the tools of `langchain_tools` that are disabled, at each step of the model.

    Write `create_agent(model, langchain_tools(...), middleware=[OfferedTools()])`. Without it they are offered as long
    as the graph exists. Called, they do not run. Tools of others are left alone.
    """

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Gives the model the tools that it may call."""
        return handler(_offer(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Gives the model the tools that it may call."""
        return await handler(_offer(request))


def _offer(request: Any) -> Any:
    sessions = {tool.session for tool in request.tools if isinstance(tool, _Tool)}
    offered = {(session, tool.name) for session in sessions for tool in session.tools}
    return request.override(
        tools=[
            tool for tool in request.tools if not isinstance(tool, _Tool) or (tool.session, tool.own_name) in offered
        ]
    )


class _Tool(StructuredTool):
    """A tool whose arguments may have any name: LangChain's own takes `config` and `run_manager` for itself."""

    own_name: str
    session: Any = Field(exclude=True)
    """A session that says which tools the model may call now."""

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        assert self.func is not None
        return self.func(**kwargs)

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        assert self.coroutine is not None
        return await self.coroutine(**kwargs)


def _tool(sessions: Sessions, function: Mapping[str, Any], first: Session, tool: Tool) -> StructuredTool:
    name = function["name"]

    async def arun(toolwire_runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        return await _run_call(sessions, name, arguments, toolwire_runtime)

    def run(toolwire_runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        return default_runtime().portal.run(partial(arun, toolwire_runtime, **arguments))

    return _Tool(
        name=name,
        description=function.get("description", ""),
        args_schema=function["parameters"],
        func=run,
        coroutine=arun,
        own_name=tool.name,
        session=first,
    )


async def _run_call(
    sessions: Sessions, name: str, arguments: Mapping[str, Any], runtime: ToolRuntime[Any, Any]
) -> ToolMessage:
    """Runs a call of the model once, and returns what the model is told."""
    call_id = runtime.tool_call_id or ""
    message = partial(ToolMessage, name=name, tool_call_id=call_id)
    key = _key(name, arguments, runtime)
    if key is None:
        return message(content=_SAME_CALLS, status="error")

    async def tell(event: ToolEvent) -> None:
        # Only the chunks of a running tool are streamed.
        if event.type == "TOOL_CHUNK":
            runtime.stream_writer({"tool_call_id": call_id, **event.to_dict()})

    session = await sessions.wait_for(_conversation(runtime))
    try:
        turn = await take_call(session, key, call_id, name, arguments, events=tell)
        turn = await _decide_all(session, turn, tell)
    except DecisionRefused as refused:
        return message(content=refusal_text(refused, ToolException), status="error")
    return message(content=content_for_model(turn, _block), status="success" if is_success(turn) else "error")


def _conversation(runtime: ToolRuntime[Any, Any]) -> str:
    thread = runtime.config.get("configurable", {}).get("thread_id")
    first = next((message.id for message in _messages(runtime)), None)
    return str(thread or first or new_id("c"))


def _messages(runtime: ToolRuntime[Any, Any]) -> list[Any]:
    """Returns the messages of a state: a graph's own may be a mapping, an object or the messages alone."""
    state: Any = runtime.state
    found = cast("Any", state).get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _key(name: str, arguments: Mapping[str, Any], runtime: ToolRuntime[Any, Any]) -> str | None:
    """Returns the key of a call. None: its message makes it several times, and nothing tells one from another.

    Some servers give one id to several calls, of one message too. No two messages of a thread have one id.
    """
    call_id = runtime.tool_call_id
    made = (
        message
        for message in reversed(_messages(runtime))
        if isinstance(message, AIMessage) and any(call["id"] == call_id for call in message.tool_calls)
    )
    if (message := next(made, None)) is None:
        return key_of(call_id or "", None)
    calls = [call for call in message.tool_calls if call["id"] == call_id]
    if len(calls) == 1:
        return key_of(call_id or "", message.id)
    began = [message.id, name, arguments]
    if sum(call["name"] == name and call["args"] == arguments for call in calls) > 1:
        # `create_agent` sends each call by itself. They keep their places when the graph goes on.
        path = runtime.config.get("metadata", {}).get("langgraph_path", ())
        if path[:1] != (_SENT,):
            return None
        began.append(path)
    return key_of(call_id or "", began)


async def _decide_all(session: Session, turn: Turn, tell: Callable[[ToolEvent], Any]) -> Turn:
    """Returns the turn after the decisions with which the graph was resumed. Without more of them the graph stops here.

    It keeps refused decisions too, and gives them again: those that came after them count.
    """
    refused: DecisionRefused | None = None
    while turn.suspended is not None:
        try:
            given = interrupt({"requests": [request_data(one) for one in turn.suspended.pending]})
        except GraphInterrupt:
            if refused is None:
                raise
            raise ToolException(str(refused)) from refused
        try:
            decisions = read_decisions(given, turn.suspended.pending, "Command(resume={})")
            turn = await unless_cancelled(session, session.resume(turn.run_id, decisions, events=tell))
            refused = None
        except DecisionRefused as error:
            if error.code in FOR_THE_MODEL:
                raise
            refused = error
    return turn


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """Returns a block as LangChain's. Its messages of tools take a sound as a file alone."""
    if block["type"] == "text":
        return block
    source, kind = block["source"], "image" if block["type"] == "image" else "file"
    if source["type"] == "url":
        return {"type": kind, "url": source["url"]}
    return {"type": kind, "base64": source["data"], "mime_type": source["media_type"]}
