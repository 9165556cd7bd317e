"""`ToolwireToolset`: toolwire's tools inside a pydantic-ai agent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from toolwire.frameworks.keyed_calls import (
    Sessions,
    content_for_model,
    is_success,
    key_of,
    read_decisions,
    refusal_text,
    request_data,
    take_call,
)
from toolwire.journal.store import Store
from toolwire.permission.approval import SOMEBODY, ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.runtime.extras import packages_of, require_version

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
    approval without it counts for the first requests of a call alone: its author has seen no later ones.
    `override_args` edits the call. In the metadata, `"decisions"` answers each request by itself, as `Session.resume`
    takes them: questions, and calls of a program. Each `conversation_id` is one conversation of the store.
    """

    def __init__(self, tools: Any, *, store: Any, id: str | None = None, **options: Any) -> None:
        """Takes what `Session` takes as tools and `store`, and its options as keywords. `id` is the toolset's own.

        Raises:
            ConfigurationError: As `Session`, or `store` is None, or the framework has the option itself.
        """
        self._id, self._sessions = id, Sessions(tools, store, options)

    @property
    def id(self) -> str | None:
        """The id of the toolset among those of an agent."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Returns the tools that the model may call at this step."""
        session = await self._sessions.wait_for(_conversation(ctx))
        return {one["function"]["name"]: self._tool(one["function"], ctx.max_retries) for one in session.request_tools}

    def _tool(self, function: Mapping[str, Any], max_retries: int) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=function["name"],
            description=function.get("description"),
            parameters_json_schema=function["parameters"],
            strict=function.get("strict"),
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=max_retries, args_validator=_ANY_OBJECT)

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
        session = await self._sessions.wait_for(_conversation(ctx))
        call_id = ctx.tool_call_id or ""
        moment, given = _find_call(ctx, call_id, tool_args)
        edited = None if tool_args == given else tool_args
        decide = partial(_decide, self._sessions.store, ctx.tool_call_metadata or {}, edited)
        key = key_of(call_id, moment)
        try:
            turn = await take_call(session, key, call_id, name, given, decide if ctx.tool_call_approved else None)
        except DecisionRefused as refused:
            raise ToolFailed(refusal_text(refused, UserError)) from refused
        if turn.suspended is not None:
            raise ApprovalRequired(metadata={"requests": [request_data(one) for one in turn.suspended.pending]})
        content = content_for_model(turn, _part)
        if not is_success(turn):
            raise ToolFailed(content)
        return content

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


def _decide(
    store: Store, metadata: Any, edited: Mapping[str, Any] | None, pending: Sequence[ApprovalRequest]
) -> list[Decision]:
    """Returns the decisions of an approval of the framework. Requests that its author has not seen wait on.

    Raises:
        DecisionRefused: `decisions` has none.
        UserError: The call is edited in two ways, or the metadata of the call is not what was given out.
    """
    if not isinstance(metadata, Mapping):
        raise UserError(f"metadata={{tool_call_id: {metadata!r:.80}}}: write metadata=asked.metadata")
    metadata = cast("Mapping[str, Any]", metadata)
    if "decisions" not in metadata:
        seen = _find_seen_ids(store, metadata, pending)
        return [_decision(one, edited) for one in pending if one.kind == "approval" and one.id in seen]
    if edited is not None:
        raise UserError("override_args and 'decisions' decide on the same call: write the edit as one of the decisions")
    given = read_decisions(metadata["decisions"], pending, "metadata={{tool_call_id: {{'decisions': {}}}}}")
    return [replace(one, by=_BY) if one.by == SOMEBODY else one for one in given]


def _find_seen_ids(store: Store, metadata: Mapping[str, Any], pending: Sequence[ApprovalRequest]) -> set[str]:
    """Returns the ids of the requests that the author of the approval has seen.

    Raises:
        UserError: `requests` is not what was given out.
    """
    if "requests" in metadata:
        try:
            return {str(one["id"]) for one in metadata["requests"]}
        except (TypeError, KeyError):
            raise UserError("metadata={tool_call_id: {'requests': ...}}: write metadata=asked.metadata") from None
    asked = store.requests(pending[0].run_id)
    return {one.id for one in pending} if all(one.state == "pending" for one in asked) else set()


def _decision(request: ApprovalRequest, edited: Mapping[str, Any] | None) -> Decision:
    if edited is None:
        return Decision(verdict="approve", request_id=request.id, by=_BY)
    if request.parent:
        raise UserError(
            "override_args edits the call of the model, and a call below it waits: write "
            "metadata={tool_call_id: {'decisions': [...]}}"
        )
    return Decision(verdict="edit", arguments=edited, request_id=request.id, by=_BY)


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


def _part(block: Mapping[str, Any]) -> str | BinaryContent | ImageUrl | AudioUrl:
    if block["type"] == "text":
        return block["text"]
    source = block["source"]
    if source["type"] == "base64":
        return BinaryContent(data=base64.b64decode(source["data"]), media_type=source["media_type"])
    return (ImageUrl if block["type"] == "image" else AudioUrl)(url=source["url"])
