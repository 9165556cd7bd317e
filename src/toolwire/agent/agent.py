"""`Agent`: a model, tools and instructions, which work on a task until it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, cast

from toolwire.agent.agent_history import ConversationEnd, History
from toolwire.agent.agent_loop import drive, read_notes
from toolwire.agent.agent_options import AgentOptions, check_options, check_parts, check_run
from toolwire.agent.agent_run import AgentParts, AgentRun, Emit, TeamMember
from toolwire.agent.agent_tool import agent_tool, tool_result
from toolwire.agent.event_stream import stream_events
from toolwire.agent.memory import Memory, ProcessMemory, StoreMemory
from toolwire.agent.recall import recall, save_whole
from toolwire.agent.result import AgentEvent, AgentResult, Budget, Output
from toolwire.agent.shortening import Shorten
from toolwire.agent.spending import Spending
from toolwire.catalogue.catalogue import Catalogue
from toolwire.definition.tool import Tool
from toolwire.facade.built_in.finish_tool import finish_entry
from toolwire.facade.observing.traced import Traceable
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.store_opening import resolve_store
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.invocation.inner import own_tools
from toolwire.models.model import Model
from toolwire.protocols.user_prompt import PromptContent
from toolwire.runtime.runtime import default_runtime
from toolwire.runtime.tracer import Tracer
from toolwire.session.session import Session
from toolwire.vocabulary.calls import CLEANUP_S, Caller
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolwire.facade.tools.tool_spec import ToolSpec
    from toolwire.journal.store import Store
    from toolwire.session.runs.wire import GivenDecisions

_NO_BUDGET = Budget()
_LAST_SAVE_S = 1.0
"""Seconds that a blocking caller waits for an interrupted run beyond the clean-up of its tools: to save it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The name of an agent and the tools that it needs, for code that makes its toolkit."""

    name: str
    required_tools: list[str] = field(default_factory=list[str])


class Agent(Generic[Output], Traceable):
    """A model with tools and instructions.

    >>> from toolwire.testing import ScriptedModel
    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> agent = Agent("clerk", ScriptedModel([[("add", {"a": 1, "b": 2})], "It is 3."]), [add])
    >>> agent.run_sync("What is 1 + 2?").text
    'It is 3.'

    An agent holds no conversation: one object serves many at once, and a new one in another process goes on with those
    in its store. Without a store it keeps the latest 1,000 conversations in memory.

    Attributes:
        name: The name of the agent, for rules, events and approvals.
        model: Its model. None: that of the agent above it.
        toolkit: Its tools. It may be replaced between runs.
        config: Its name and `required_tools`.
    """

    def __init__(
        self,
        name: str,
        model: Model | None,
        tools: ToolRegistry | Toolkit | Iterable[object] = (),
        *,
        instructions: str = "",
        output: str | type[Output] | None = None,
        budget: Budget = _NO_BUDGET,
        limit_tokens: int | None = None,
        shorten: Shorten | None = None,
        store: str | Store | None = None,
        required_tools: Sequence[str] = (),
        **session: Unpack[AgentOptions],
    ) -> None:
        """Makes an agent, and checks its options.

        `output` is the tool by which the model ends: a pydantic model for `AgentResult.output`, or a name. `budget`
        bounds each run. Above 90 % of `limit_tokens` the history is made shorter, by `shorten(messages)` if it is
        given, which returns the new messages and may be a coroutine function. With a `store` (a `Store` or its URL)
        conversations outlive this process, and calls can wait for a person. `session` are further options of `Session`.

        Raises:
            ConfigurationError: An option does not fit.
        """
        self.name, self.model, self.budget = name, model, budget
        self.config = AgentConfig(name=name, required_tools=list(required_tools))
        self.toolkit = _toolkit(tools)
        self._instructions, self._output = instructions, output
        self._limit_tokens, self._shorten, self._options = limit_tokens, shorten, session
        self._team: Mapping[str, TeamMember] = {}
        """The members of its `AgentTeam`, which it can call; empty without one."""
        check_options(name, model, budget, limit_tokens, shorten, session)
        check_parts(instructions, store)
        if model is not None:
            self._session(model, caller=Caller(), state=None)
        self._store: Store | None = None if store is None else resolve_store(store)
        self._has_opened = isinstance(store, str)
        self._memory: Memory = ProcessMemory() if self._store is None else StoreMemory(self._store)

    def __repr__(self) -> str:
        return f"<Agent {self.name!r}>"

    async def run(
        self,
        prompt: PromptContent | None = None,
        *,
        conversation: str | None = None,
        decisions: GivenDecisions | None = None,
        budget: Budget | None = None,
        caller: Caller | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> AgentResult[Output]:
        """Works until the model has finished, or until a limit or a person ends the run.

        `prompt` is a text, or a list of texts and content blocks. Without one, the conversation goes on where it ended,
        and one that has its answer gives that again. `conversation` names it; None begins a new one. `decisions`
        answer the requests of `AgentResult.pending`, as in `Session.resume`. `budget` replaces the agent's. `caller`
        and `state` are as in `Session`, for this run and its sub-agents.

        A limit and a failed model are results, and so is a run that waits for a person: look at `stop`. If the task is
        cancelled, it ends when its tools have ended, at most `Limits(cleanup_s=)`, and the conversation can go on.

        Raises:
            DecisionRefused: `conversation_busy` (another run works on it), `not_permitted`, or a decision is not valid.
            ConfigurationError: There is a prompt while decisions are wanted, decisions for nothing, or neither a prompt
                nor a conversation, or the conversation is not an agent's.
        """
        return await self._run(prompt, conversation, decisions, budget, caller, state, None)

    def run_sync(
        self,
        prompt: PromptContent | None = None,
        *,
        conversation: str | None = None,
        decisions: GivenDecisions | None = None,
        budget: Budget | None = None,
        caller: Caller | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> AgentResult[Output]:
        """Works as `run`, for blocking code and notebooks. In a coroutine, await `run`: this blocks the event loop."""
        has_ended = threading.Event()

        async def whole() -> AgentResult[Output]:
            try:
                return await self._run(prompt, conversation, decisions, budget, caller, state, None)
            finally:
                has_ended.set()

        try:
            return default_runtime().portal.run(whole)
        except KeyboardInterrupt:
            limits = self._options.get("limits")
            has_ended.wait((CLEANUP_S if limits is None else limits.cleanup_s) + _LAST_SAVE_S)
            raise

    async def stream(
        self,
        prompt: PromptContent | None = None,
        *,
        conversation: str | None = None,
        decisions: GivenDecisions | None = None,
        budget: Budget | None = None,
        caller: Caller | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Works as `run`, and yields its events; the last one has the result. A slow reader slows the run.

        Leaving the iterator stops the run as a cancellation does: close it (`aclosing`) to wait for that.
        """
        events = stream_events(
            lambda emit: self._run(prompt, conversation, decisions, budget, caller, state, emit), (self.name,)
        )
        async with aclosing(events) as reading:
            async for event in reading:
                yield event

    def as_tool(
        self, description: str, *, input_model: type[BaseModel] | None = None, name: str | None = None
    ) -> ToolSpec:
        """Returns a tool that runs this agent below another one, with tools and rules of its own.

        The model gives a `task` in words, or the fields of `input_model`. Principal, labels, deadline, budget and
        `state` are those of the run above. Its approvals and questions are among that run's `pending`. An agent that
        stops without an answer is a failed result that says why. One call has at most 100 replies of its model.
        """
        return agent_tool(self, description, input_model=input_model, name=name or self.name)

    def own_tools(self) -> Mapping[str, Tool]:
        """Returns the agent's tools by name, with the one by which it ends. Rules of agents above may name them."""
        catalogue: Catalogue = self.toolkit._call_scope.catalogue  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        ends = [] if self._output is None else [finish_entry(self._output)]
        return {entry.name: entry.tool for entry in (*catalogue, *ends)}

    async def run_below(self, prompt: str, context: CallContext) -> ToolResult:
        """Runs the agent as the work of a running tool, and returns the tool's result. `as_tool` does so."""
        above: AgentRun | None = context.scope.agent_run
        model = self.model or (None if above is None else above.parts.model)
        if model is None:
            return ToolResult.failed("unavailable", f"The agent {self.name!r} has no model, and no agent is above it.")
        if context.scope.depth >= (most := own_tools.USING_DEPTH_LIMIT):
            message = f"The agent {self.name!r} was not started: {most} agents are below each other already."
            return ToolResult.failed("limit", message, hint="Do the work without it.")
        state = None if above is None else above.state
        caller = replace(context.caller, agent=self.name)
        conversation = None if above is None else above.session.conversation
        session = self._session(model, caller=caller, state=state, conversation=conversation)
        spending = Spending(self.budget, None if above is None else above.spending)
        spending.check_price(self.name, model)
        path = (*(() if above is None else above.path), self.name)
        run = AgentRun(
            parts=self._parts(model),
            session=session,
            history=History(),
            spending=spending,
            state=self._state(state),
            # A call in the background has no reader of events.
            emit=None if above is None or context.scope.events is None else above.emit,
            path=path,
            below=context,
            noted=read_notes(context.notes),
            paths={} if above is None else above.paths,
        )
        run.paths[context.call_id] = path
        run.history.add_prompt(session.protocol.prompt(prompt))
        _join(session, run, None)
        run.tracer = run.tracer if above is None else above.tracer
        result = await drive(run)
        await run.tell("stopped", result=result)
        return tool_result(self.name, result, has_acted=run.has_acted)

    async def close(self) -> None:
        """Closes the store if the agent has opened it."""
        if self._has_opened and self._store is not None:
            await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(
        self,
        prompt: PromptContent | None,
        conversation: str | None,
        decisions: GivenDecisions | None,
        budget: Budget | None,
        caller: Caller | None,
        state: Mapping[str, Any] | None,
        emit: Emit | None,
    ) -> AgentResult[Output]:
        model = self.model
        if model is None:
            raise ConfigurationError(f"agent {self.name!r} has no model: only an agent below another one needs none")
        if prompt is None and conversation is None:
            raise ConfigurationError("Agent.run(): give a prompt, or the conversation that goes on")
        check_run(budget, caller)
        spending = Spending(budget or self.budget)
        spending.check_price(self.name, model)
        session = self._session(model, caller=caller, state=state, conversation=conversation, store=self._store)
        prompts = None if prompt is None else session.protocol.prompt(prompt)
        async with self._memory.hold(session):
            run = AgentRun(
                parts=self._parts(model),
                session=session,
                history=await self._memory.load(session),
                spending=spending,
                state=self._state(state),
                emit=emit,
                path=(self.name,),
            )
            _join(session, run, self._memory.last_session(session))
            await self._memory.restore_rules(session, run.history)
            return await self._go_on(run, prompts, decisions)

    async def _go_on(
        self, run: AgentRun, prompts: list[dict[str, Any]] | None, decisions: GivenDecisions | None
    ) -> AgentResult[Output]:
        memory, history = self._memory, run.history
        try:
            result = await recall(run, memory, decisions, has_prompt=prompts is not None)
            if result is None or (prompts is not None and result.stop != "suspended"):
                if prompts is None and (ended := history.ended) is not None:
                    # No model is asked for an answer that is there.
                    output = await memory.output(run.session, history)
                    return run.result(ended.stop, text=ended.text, output=output)
                if prompts is not None:
                    history.add_prompt(prompts)
                    await save_whole(run, memory, None)
                result = await self._drive(run)
        except asyncio.CancelledError:
            history.ended = ConversationEnd(stop="interrupted", text=None, run_id="")
            await save_whole(run, memory, None)
            raise
        await save_whole(run, memory, result.output)
        return cast("AgentResult[Output]", result)

    async def _drive(self, run: AgentRun) -> AgentResult[Any]:
        if not run.history.messages:
            raise ConfigurationError(
                f"conversation {run.session.conversation!r} has no messages: give Agent.run a prompt"
            )
        try:
            return await drive(run)
        except Exception:
            # An error of a model's own code, or of the owner's `shorten`.
            await save_whole(run, self._memory, None)
            raise

    def _session(
        self,
        model: Model,
        *,
        caller: Caller | None,
        state: Mapping[str, Any] | None,
        conversation: str | None = None,
        store: Store | None = None,
    ) -> Session:
        """Returns a session for one run."""
        options = {name: value for name, value in self._options.items() if name not in ("caller", "state")}
        mine = caller or self._options.get("caller") or Caller()
        agent = mine.agent or getattr(self.toolkit, "agent_name", None) or self.name
        return Session(
            self.toolkit,
            protocol=model.protocol,
            store=store,
            conversation=conversation,
            caller=replace(mine, agent=agent),
            state=self._state(state),
            finish=cast("Any", self._output),
            **cast("dict[str, Any]", options),
        )

    def _state(self, state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        own = self._options.get("state")
        return state if own is None else {**own, **(state or {})}

    def _parts(self, model: Model) -> AgentParts:
        return AgentParts(
            name=self.name,
            model=model,
            instructions=self._instructions,
            limit_tokens=self._limit_tokens,
            shorten=self._shorten,
            team=self._team,
        )

    def _trace_with(self, tracer: Tracer) -> None:
        self.toolkit._trace_with(tracer)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _toolkit(tools: ToolRegistry | Toolkit | Iterable[object]) -> ToolRegistry | Toolkit:
    if isinstance(tools, ToolRegistry | Toolkit):
        return tools
    if isinstance(tools, str | Mapping) or not isinstance(cast("object", tools), Iterable):
        raise ConfigurationError(f"Agent(tools={tools!r:.80}): give a list of tools, a ToolRegistry or a Toolkit")
    registry = ToolRegistry()
    for thing in tools:
        registry.register(cast("Any", thing))
    return registry


def _join(session: Session, run: AgentRun, before: Session | None) -> None:
    run.tracer = session._belong_to(run, before)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
