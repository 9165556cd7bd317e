"""`langchain_tools`: toolwire's tools inside agents of LangChain and graphs of LangGraph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.frameworks.keyed_calls import (
    FOR_THE_MODEL,
    Sessions,
    key_of,
    message_of,
    refusal_text,
    request_data,
    text_for_model,
    unless_cancelled,
)
from toolwire.permission.approval import Decision, DecisionRefused
from toolwire.runtime.extras import packages_of, require_version
from toolwire.runtime.identity import new_id
from toolwire.session.runs.wire import decisions_of
from toolwire.session.session import Session
from toolwire.session.turn import Suspended, Turn
from toolwire.vocabulary.blocks import ContentBlock, block_for_model
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
    return request.override(tools=[one for one in request.tools if not isinstance(one, _Tool) or one.is_offered()])


class _Tool(StructuredTool):
    """A tool whose arguments may have any name: LangChain's own takes `config` and `run_manager` for itself."""

    is_offered: Callable[[], bool] = Field(exclude=True)
    """Returns whether the model may call it now."""

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        assert self.func is not None
        return self.func(**kwargs)

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        assert self.coroutine is not None
        return await self.coroutine(**kwargs)


def _tool(sessions: Sessions, function: Mapping[str, Any], first: Session, tool: Tool) -> StructuredTool:
    name = function["name"]

    def is_offered() -> bool:
        return any(one.name == tool.name for one in first.tools)

    def run(toolwire_runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        session = sessions.of(_conversation(toolwire_runtime))

        async def block(method: str, *given: Any, **options: Any) -> Turn:
            return getattr(session, f"run_{method}")(*given, **options)

        try:
            # It never waits: `block` has blocked.
            _Call(name, arguments, toolwire_runtime).take(block).send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError

    async def arun(toolwire_runtime: ToolRuntime[Any, Any], **arguments: Any) -> ToolMessage:
        session = await asyncio.to_thread(sessions.of, _conversation(toolwire_runtime))

        async def wait(method: str, *given: Any, **options: Any) -> Turn:
            return await unless_cancelled(session, getattr(session, method)(*given, **options))

        return await _Call(name, arguments, toolwire_runtime).take(wait)

    description, schema = function.get("description", ""), function["parameters"]
    return _Tool(
        name=name, description=description, args_schema=schema, func=run, coroutine=arun, is_offered=is_offered
    )


def _conversation(runtime: ToolRuntime[Any, Any]) -> str:
    thread = runtime.config.get("configurable", {}).get("thread_id")
    first = next((message.id for message in _messages(runtime)), None)
    return str(thread or first or new_id("c"))


def _messages(runtime: ToolRuntime[Any, Any]) -> list[Any]:
    """Returns the messages of a state: a graph's own may be a mapping, an object or the messages alone."""
    state: Any = runtime.state
    found = cast("Any", state).get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _decisions(turn: Turn, refused: DecisionRefused | None) -> Any:
    """Returns the next decisions that the graph was resumed with. Without more of them the graph stops here.

    It keeps refused decisions too, and gives them again: those that came after them count.
    """
    assert turn.suspended is not None
    try:
        given: Any = interrupt({"requests": [request_data(one) for one in turn.suspended.pending]})
    except GraphInterrupt:
        if refused is None:
            raise
        raise ToolException(str(refused)) from refused
    return given


def _read_decisions(given: Any, suspended: Suspended) -> list[Decision]:
    """Returns the decisions with which the graph was resumed.

    Raises:
        DecisionRefused: They are none. The text says what to write.
    """
    why = "it must be a list of decisions"
    try:
        is_readable = bool(given) and isinstance(given, str | list | Mapping)
        if is_readable and (found := decisions_of(suspended.run_id, cast("Any", given))):
            return found
    except DecisionRefused as refused:
        why = str(refused)
    first = suspended.pending[0]
    verdict = "'answer', 'answer': ..." if first.kind == "question" else "'approve'"
    raise DecisionRefused(
        "malformed",
        f"Command(resume={given!r:.80}): {why}. Write Command(resume=[{{'request_id': {first.id!r}, "
        f"'verdict': {verdict}}}])",
    )


class _Call:
    """One call of the model in its conversation."""

    def __init__(self, name: str, arguments: Mapping[str, Any], runtime: ToolRuntime[Any, Any]) -> None:
        self._name, self._arguments, self._runtime = name, arguments, runtime
        self._id, self._context = runtime.tool_call_id or "", copy_context()

    async def take(self, do: Callable[..., Awaitable[Turn]]) -> ToolMessage:
        """Runs the call by `do`, which runs a method of the session, and returns what the model is told."""
        try:
            called = message_of(self._id, self._name, self._arguments)
            return self._answer(await self._decided(do, await do("turn", called, key=self._key, events=self._tell)))
        except DecisionRefused as refused:
            if refused.code not in FOR_THE_MODEL:
                raise ToolException(str(refused)) from refused
            return self._message(refusal_text(refused), "error")

    async def _decided(self, do: Callable[..., Awaitable[Turn]], turn: Turn) -> Turn:
        refused: DecisionRefused | None = None
        while turn.suspended is not None:
            given = _decisions(turn, refused)
            try:
                decisions = _read_decisions(given, turn.suspended)
                turn, refused = await do("resume", turn.run_id, decisions, events=self._tell), None
            except DecisionRefused as error:
                if error.code in FOR_THE_MODEL:
                    raise
                refused = error
        return turn

    @property
    def _key(self) -> str:
        """The key of its turn. Some servers give one id to several calls; no two messages of a thread have one id."""
        made = (
            message.id
            for message in reversed(_messages(self._runtime))
            if isinstance(message, AIMessage) and any(call["id"] == self._id for call in message.tool_calls)
        )
        return key_of(self._id, next(made, None))

    def _tell(self, event: ToolEvent) -> None:
        """Streams the chunks of the running tool."""
        if event.type == "TOOL_CHUNK":
            chunk = {"tool_call_id": self._id, **event.to_dict()}
            self._context.copy().run(self._runtime.stream_writer, chunk)

    def _answer(self, turn: Turn) -> ToolMessage:
        """Returns what the model is told."""
        if not turn.results or not turn.results[0].success:
            return self._message(text_for_model(turn), "error")
        blocks = [_block(block) for block in turn.results[0].content]
        return self._message(
            text_for_model(turn) if all(block["type"] == "text" for block in blocks) else blocks, "success"
        )

    def _message(self, content: Any, status: Any) -> ToolMessage:
        return ToolMessage(content=content, name=self._name, tool_call_id=self._id, status=status)


def _block(block: ContentBlock) -> dict[str, Any]:
    """Returns a block as LangChain's. Its messages of tools take a sound as a file alone."""
    shown: Any = block_for_model(block)
    if shown["type"] == "text":
        return shown
    source, kind = shown["source"], "image" if shown["type"] == "image" else "file"
    if source["type"] == "url":
        return {"type": kind, "url": source["url"]}
    return {"type": kind, "base64": source["data"], "mime_type": source["media_type"]}
