"""`function_tools`: toolwire's tools inside agents of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolwire.frameworks.keyed_calls import (
    Sessions,
    content_for_model,
    key_of,
    message_of,
    refusal_text,
    take_call,
)
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.strict_json import load_json
from toolwire.runtime.extras import packages_of, require_version
from toolwire.session.runs.turn_keys import keyed_run_id
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError

require_version("openai-agents", "function_tools", "openai-agents", "0.24")
with packages_of("openai-agents", "function_tools"):
    from agents import (
        FunctionTool,
        RunContextWrapper,
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        UserError,
    )
    from agents.tool_context import ToolContext

_BY = Decider(channel="openai-agents")
_NOT_ASKED = "approval_required: nobody was asked about this call, and the OpenAI Agents SDK cannot wait inside of it"


def function_tools(tools: Any, *, store: Any, conversation: str, **options: Any) -> list[FunctionTool]:
    """Returns the tools for `Agent(tools=...)` of the OpenAI Agents SDK. Each call runs once, in any process.

    A call that waits for a person is an interruption of the SDK's run, and its approval there counts as the decision
    of the channel `openai-agents` on this call alone: `always_approve` decides nothing. A call of a program or of a
    tool that needs a person does not run, unless there is an `approver`. `conversation` is that of the store.

    `tools` and `store` are what `Session` takes, and `options` are its options.

    Raises:
        ConfigurationError: As `Session`, there is no store, or the SDK has the option itself.
    """
    sessions = Sessions(tools, store, options)
    session = sessions.of(conversation)
    described = [one["function"] for one in session.request_tools]
    return [
        _function_tool(function, _OneTool(session, sessions.store, tool.name, function["name"]))
        for tool, function in zip(session.tools, described, strict=True)
    ]


def _function_tool(function: Mapping[str, Any], tool: _OneTool) -> FunctionTool:
    return FunctionTool(
        name=function["name"],
        description=function.get("description", ""),
        params_json_schema=function["parameters"],
        strict_json_schema=function.get("strict", False),
        on_invoke_tool=tool.invoke,
        needs_approval=tool.ask,
        is_enabled=tool.is_enabled,
    )


@dataclass(frozen=True)
class _OneTool:
    """A tool of a session, as the SDK asks about it and calls it."""

    _session: Session
    _store: Store
    _own_name: str
    _name: str
    """Its name in the provider's form."""

    def is_enabled(self, _context: RunContextWrapper[Any], _agent: Any) -> bool:
        """Returns whether the model may call it now."""
        return any(tool.name == self._own_name for tool in self._session.tools)

    async def ask(self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Returns whether a person has to decide on a call. If so, its request is on record with what the rules saw."""
        if await asyncio.to_thread(self._effect, call_id, arguments) != "confirm":
            return False
        try:
            turn = await take_call(self._session, _key(context, call_id), call_id, self._name, arguments)
        except DecisionRefused:
            # The call itself tells it.
            return False
        return turn.suspended is not None

    def _effect(self, call_id: str, arguments: Mapping[str, Any]) -> str:
        read = self._session.protocol.parse(message_of(call_id, self._name, arguments), self._session.tools)
        try:
            return self._session.explain_call(self._own_name, read.calls[0].arguments).verdict.effect
        except (ConfigurationError, RegistrationError, IndexError):
            # The call itself tells the model what is wrong.
            return "auto"

    async def invoke(self, context: ToolContext[Any], text: str) -> Any:
        """Runs a call, and returns what the model is told."""
        try:
            return content_for_model(await self._take(context, _read_arguments(text)), _part)
        except DecisionRefused as refused:
            return refusal_text(refused, UserError)

    async def _take(self, context: ToolContext[Any], arguments: Mapping[str, Any] | str) -> Turn:
        key, call_id = _key(context, context.tool_call_id), context.tool_call_id
        # A call that the SDK has approved for ever was not shown to anybody, and is not on record yet.
        is_approved = context.is_tool_approved(context.qualified_tool_name, call_id) is True
        run_id = keyed_run_id(self._session.conversation, key)
        was_asked = is_approved and await asyncio.wrap_future(self._store.has_run(run_id))
        turn = await take_call(self._session, key, call_id, self._name, arguments, _approve if was_asked else None)
        if turn.suspended is None:
            return turn
        if doubts := [request.id for request in turn.suspended.pending if request.attempt > 1]:
            raise UserError(
                f"a process died in a call of {self._name!r}, which may have run: decide it by `toolwire approvals` "
                f"({', '.join(doubts)}), and go on with the saved state"
            )
        await asyncio.to_thread(self._store.stop, turn.run_id, by=_BY, reason=_NOT_ASKED)
        return await take_call(self._session, key, call_id, self._name, arguments)


def _read_arguments(text: str) -> Mapping[str, Any] | str:
    """Returns the arguments of a JSON object. Any other text is returned unchanged, and toolwire refuses it."""
    try:
        found = load_json(text or "{}")
    except (ValueError, Refusal):
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) else text


def _approve(pending: Sequence[ApprovalRequest]) -> list[Decision]:
    """Returns the approval of the model's own call, which is what the person of the SDK has seen."""
    return [
        Decision(verdict="approve", request_id=request.id, by=_BY)
        for request in pending
        if request.kind == "approval" and not request.parent and request.attempt == 1
    ]


def _key(context: RunContextWrapper[Any], call_id: str) -> str:
    """Returns the key of a call: its id, which is unique in a run of the SDK, and what that run began with.

    Some servers give one id to calls of several runs. A run begins with its whole input, and a saved state keeps it.
    """
    return key_of(call_id, context.turn_input)


def _part(block: Mapping[str, Any]) -> ToolOutputText | ToolOutputImage | ToolOutputFileContent:
    if block["type"] == "text":
        return ToolOutputText(text=block["text"])
    source = block["source"]
    is_data = source["type"] == "base64"
    url = f"data:{source['media_type']};base64,{source['data']}" if is_data else source["url"]
    if block["type"] == "image":
        return ToolOutputImage(image_url=url)
    return ToolOutputFileContent(file_data=url) if is_data else ToolOutputFileContent(file_url=url)
