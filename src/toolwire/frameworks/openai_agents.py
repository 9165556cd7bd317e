"""`function_tools`: toolwire's tools inside agents of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolwire.definition.tool import Tool
from toolwire.frameworks.keyed_calls import (
    FOR_THE_MODEL,
    Sessions,
    is_on_record,
    key_of,
    message_of,
    refusal_text,
    take_call,
    text_for_model,
)
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.runtime.extras import packages_of, require_version
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.blocks import ContentBlock, block_for_model
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
        _OneTool(session, sessions.store, tool).function_tool(function)
        for tool, function in zip(session.tools, described, strict=True)
    ]


class _OneTool:
    def __init__(self, session: Session, store: Store, tool: Tool) -> None:
        self._session = session
        self._store = store
        self._own_name = tool.name
        self._name = ""

    def function_tool(self, function: Mapping[str, Any]) -> FunctionTool:
        """Returns the tool as the SDK has it."""
        self._name = function["name"]
        return FunctionTool(
            name=self._name,
            description=function.get("description", ""),
            params_json_schema=function["parameters"],
            strict_json_schema=function.get("strict", False),
            on_invoke_tool=self._invoke,
            needs_approval=self._ask,
            is_enabled=lambda _context, _agent: any(tool.name == self._own_name for tool in self._session.tools),
        )

    async def _ask(self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
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

    async def _invoke(self, context: ToolContext[Any], text: str) -> Any:
        try:
            return _output(await self._take(context, json.loads(text or "{}")))
        except ValueError as error:
            return f"The arguments are not JSON: {error}"
        except DecisionRefused as refused:
            if refused.code in FOR_THE_MODEL:
                return refusal_text(refused)
            raise UserError(str(refused)) from refused

    async def _take(self, context: ToolContext[Any], arguments: Mapping[str, Any]) -> Turn:
        key, call_id = _key(context, context.tool_call_id), context.tool_call_id
        # A call that the SDK has approved for ever was not shown to anybody, and is not on record yet.
        is_approved = context.is_tool_approved(context.qualified_tool_name, call_id) is True
        was_asked = is_approved and await asyncio.to_thread(is_on_record, self._session, self._store, key)
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


def _output(turn: Turn) -> Any:
    if not turn.results or not turn.results[0].success:
        return text_for_model(turn)
    parts = [_part(block) for block in turn.results[0].content]
    return text_for_model(turn) if all(isinstance(part, ToolOutputText) for part in parts) else parts


def _part(block: ContentBlock) -> ToolOutputText | ToolOutputImage | ToolOutputFileContent:
    shown: Any = block_for_model(block)
    if shown["type"] == "text":
        return ToolOutputText(text=shown["text"])
    source = shown["source"]
    is_data = source["type"] == "base64"
    url = f"data:{source['media_type']};base64,{source['data']}" if is_data else source["url"]
    if shown["type"] == "image":
        return ToolOutputImage(image_url=url)
    return ToolOutputFileContent(file_data=url) if is_data else ToolOutputFileContent(file_url=url)
