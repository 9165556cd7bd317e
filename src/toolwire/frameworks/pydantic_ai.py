"""`ToolwireToolset`: toolwire's tools inside a pydantic-ai agent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from toolwire.frameworks.keyed_calls import (
    FOR_THE_MODEL,
    Sessions,
    key_of,
    refusal_text,
    request_data,
    take_call,
    text_for_model,
)
from toolwire.permission.approval import SOMEBODY, ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.runtime.extras import packages_of, require_version
from toolwire.session.runs.wire import decisions_of
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.blocks import ContentBlock, block_for_model

require_version("pydantic-ai", "ToolwireToolset", "pydantic-ai-slim", "2.68")
with packages_of("pydantic-ai", "ToolwireToolset"):
    from pydantic_ai.exceptions import ApprovalRequired, ToolFailed, UserError
    from pydantic_ai.messages import AudioUrl, BinaryContent, ImageUrl, ModelResponse, ToolCallPart
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

_BY = Decider(channel="pydantic-ai")
"""The author of decisions that come as the framework's approvals, which names nobody."""
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""The tools' own schemas are checked by toolwire, which tells the model all mistakes at once."""


class ToolwireToolset(AbstractToolset[Any]):
    """The tools of a registry, a toolkit or a list, for `Agent(toolsets=[...])`. Each call runs once, in any process.

    A call that waits for people raises `ApprovalRequired`, whose metadata has its `requests` (`id`, `kind`, `tool`,
    `arguments` and the `text` to show). To go on, approve it in `DeferredToolResults`, and give that metadata back. An
    approval without it counts for the first requests of a call alone: a later one was not seen by whoever gave it.
    `override_args` edits the call. In the metadata, `"decisions"` answers each request by itself, as `Session.resume`
    takes them: questions, and calls of a program. Each `conversation_id` is one conversation of the store.
    """

    def __init__(self, tools: Any, *, store: Any, id: str | None = None, **options: Any) -> None:
        """Takes what `Session` takes as tools and `store`, and its options as keywords. `id` is the toolset's own.

        Raises:
            ConfigurationError: As `Session`, there is no store, or the framework has the option itself.
        """
        self._id, self._sessions = id, Sessions(tools, store, options)
        self._session: Session | None = None

    @property
    def id(self) -> str | None:
        """The id of the toolset among those of an agent."""
        return self._id

    async def for_run(self, ctx: RunContext[Any]) -> ToolwireToolset:
        """Returns the toolset of one run, with the session of its conversation."""
        mine = copy(self)
        mine._session = await asyncio.to_thread(self._sessions.of, _conversation(ctx))  # noqa: SLF001 - as self
        return mine

    async def _session_of(self, ctx: RunContext[Any]) -> Session:
        return self._session or await asyncio.to_thread(self._sessions.of, _conversation(ctx))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Returns the tools that the model may call at this step."""
        session = await self._session_of(ctx)
        return {one["function"]["name"]: self._tool(one["function"]) for one in session.request_tools}

    def _tool(self, function: Mapping[str, Any]) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=function["name"],
            description=function.get("description"),
            parameters_json_schema=function["parameters"],
            strict=function.get("strict"),
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=_ANY_OBJECT)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - as pydantic-ai calls it
    ) -> Any:
        """Runs a call once, and returns its result for the model.

        Raises:
            ApprovalRequired: It waits for people.
            ToolFailed: It failed, with the text for the model.
            UserError: A decision was refused.
        """
        session = await self._session_of(ctx)
        call_id = ctx.tool_call_id or ""
        moment, given = _find_call(ctx, call_id, tool_args)
        approval = _Approval(ctx.tool_call_metadata, None if tool_args == given else tool_args, self._sessions.store)
        decide = approval.decide if ctx.tool_call_approved else None
        try:
            turn = await take_call(session, key_of(call_id, moment), call_id, name, given, decide)
        except DecisionRefused as refused:
            if refused.code in FOR_THE_MODEL:
                raise ToolFailed(refusal_text(refused)) from refused
            raise UserError(str(refused)) from refused
        if turn.suspended is not None:
            raise ApprovalRequired(metadata={"requests": [request_data(one) for one in turn.suspended.pending]})
        return _answer(turn)

    def withdraw(self, tool_call_id: str, conversation_id: str, *, reason: str = "it was withdrawn") -> int:
        """Stops the waiting runs of a call that was denied, which else expire by themselves. Returns their number.

        pydantic-ai does not tell a toolset of a denial. It waits for the store.
        """
        store, stopped = self._sessions.store, 0
        for run in store.runs(conversation=conversation_id, status="suspended"):
            if store.reply(run.run_id).calls[0].id == tool_call_id:
                store.stop(run.run_id, by=_BY, reason=reason)
                stopped += 1
        return stopped


class _Approval:
    """The framework's approval of a call, for the requests that whoever gave it has seen."""

    def __init__(self, metadata: Any, edited: Mapping[str, Any] | None, store: Any) -> None:
        self._metadata: Mapping[str, Any] = metadata or {}
        self._edited, self._store = edited, store

    def decide(self, pending: Sequence[ApprovalRequest]) -> Iterator[Decision]:
        """Returns the decisions on what waits. Requests that nobody has seen wait on."""
        given: Iterable[Any] = self._metadata.get("decisions") or ()
        decided = {one.request_id: one for one in decisions_of(pending[0].run_id, list(given))}
        yield from (replace(one, by=_BY) if one.by == SOMEBODY else one for one in decided.values())
        seen = self._seen(pending)
        for request in pending:
            if request.kind == "approval" and request.id in seen and request.id not in decided:
                yield self._decision(request)

    def _seen(self, pending: Sequence[ApprovalRequest]) -> set[str]:
        if "requests" in self._metadata:
            return {str(one["id"]) for one in self._metadata["requests"]}
        if self._metadata.get("decisions"):
            return set()
        asked = self._store.requests(pending[0].run_id)
        return {one.id for one in pending} if all(one.state == "pending" for one in asked) else set()

    def _decision(self, request: ApprovalRequest) -> Decision:
        if self._edited is None:
            return Decision(verdict="approve", request_id=request.id, by=_BY)
        if request.parent:
            raise UserError(
                "override_args edits the call of the model, and a call below it waits: write "
                "metadata={tool_call_id: {'decisions': [...]}}"
            )
        return Decision(verdict="edit", arguments=self._edited, request_id=request.id, by=_BY)


def _conversation(ctx: RunContext[Any]) -> str:
    return ctx.conversation_id or ctx.run_id or "pydantic-ai"


def _find_call(ctx: RunContext[Any], call_id: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the moment of the reply that made the call, and the model's own arguments.

    Some servers give one id to several calls of a conversation; no two replies have the same moment.
    """
    for message in reversed(ctx.messages):
        if isinstance(message, ModelResponse):
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_call_id == call_id:
                    return message.timestamp.isoformat(), part.args_as_dict()
    return ctx.run_id or "", given


def _answer(turn: Turn) -> Any:
    if not turn.results or not turn.results[0].success:
        raise ToolFailed(text_for_model(turn))
    parts = [_part(block) for block in turn.results[0].content]
    return text_for_model(turn) if all(isinstance(part, str) for part in parts) else parts


def _part(block: ContentBlock) -> str | BinaryContent | ImageUrl | AudioUrl:
    shown: Any = block_for_model(block)
    if shown["type"] == "text":
        return shown["text"]
    source = shown["source"]
    if source["type"] == "base64":
        return BinaryContent(data=base64.b64decode(source["data"]), media_type=source["media_type"])
    return (ImageUrl if shown["type"] == "image" else AudioUrl)(url=source["url"])
