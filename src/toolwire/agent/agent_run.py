"""One run of an agent: the state of its loop, and the parts that it shares with the agents below it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolwire.agent.agent_history import ConversationEnd, History
from toolwire.agent.result import AgentEvent, AgentResult, Stop
from toolwire.agent.shortening import Shorten
from toolwire.agent.spending import Spending
from toolwire.definition.tool import Tool
from toolwire.models.model import Model, ModelFailed
from toolwire.permission.approval import ApprovalRequest
from toolwire.runtime.tracer import Tracer
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.vocabulary.call_events import ToolEvent

Emit = Callable[[AgentEvent], Awaitable[None]]
"""Takes an event, and returns when its reader has it."""

UNREADABLE_LIMIT = 4
"""Number of unreadable replies in a row after which a run ends: a model that could not be helped by three answers."""


class TeamMember(Protocol):
    """An agent that another one can call, as a tool or in a team."""

    def own_tools(self) -> Mapping[str, Tool]: ...

    async def run_below(self, prompt: str, context: CallContext) -> ToolResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """The parts of an agent that its loop needs."""

    name: str
    model: Model
    instructions: str = ""
    limit_tokens: int | None = None
    shorten: Shorten | None = None
    team: Mapping[str, TeamMember] = field(default_factory=dict[str, TeamMember])
    """The agents that `call_subagent` reaches, by name."""


@dataclass(slots=True, kw_only=True, eq=False)
class AgentRun:
    """One run of an agent, from a prompt or a decision to its stop."""

    parts: AgentParts
    session: Session
    history: History
    spending: Spending
    state: Mapping[str, Any] | None = None
    """The values for bound parameters, of this agent and those below it."""
    emit: Emit | None = None
    """Takes the events; None if the run has no reader."""
    path: tuple[str, ...] = ()
    """The names of this agent and of those above it, the outermost first."""
    below: CallContext | None = None
    """The running tool that a sub-agent works for; None for the outermost."""
    noted: deque[Reply] = field(default_factory=deque[Reply])
    """The replies of an earlier pass over that tool, which are not asked for again."""
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The paths of the agents that calls belong to, by the ids of the calls. A sub-agent's is that of its own call."""
    has_acted: bool = False
    """True once a reply has made calls."""
    tracer: Tracer | None = None
    unreadable: int = 0
    """Number of the last replies in a row that could not be read."""

    async def tell(self, type: Any, **facts: Any) -> None:
        """Gives an event to the reader, and waits until it is taken."""
        if self.emit is not None:
            await self.emit(AgentEvent(type=type, agent=self.path, **facts))

    @property
    def tool_events(self) -> Callable[[ToolEvent], Awaitable[None]] | None:
        """The reader of the events of calls, those of sub-agents included; None if the run has no reader."""
        emit, paths, own = self.emit, self.paths, self.path
        if emit is None:
            return None

        async def tell(event: ToolEvent) -> None:
            path = paths.get(event.parent, own)
            # Calls of a program have its id as their parent only, and their own ids say nothing of it.
            paths.setdefault(event.call_id, path)
            await emit(AgentEvent(type="tool", agent=path, tool=event))

        return tell

    def take(self, turn: Turn) -> AgentResult[Any] | None:
        """Adds a turn to the history. Returns the result of the run if the turn ends it."""
        if turn.suspended is not None:
            return self.result("suspended", pending=turn.suspended.pending)
        self.history.take(turn)
        if turn.stopped:
            return self.end("stopped", turn, turn.reply.text or None)
        if turn.reply.ended == "failed":
            problems = "; ".join(problem.message for problem in turn.reply.problems)
            return self.result("model", error=ModelFailed("overloaded", problems or "the provider failed"))
        if turn.is_final:
            is_declined = turn.reply.failure is not None or turn.reply.ended == "filter"
            return self.end("declined" if is_declined else "answered", turn, turn.answer)
        self.unreadable = self.unreadable + 1 if turn.reply.is_refused else 0
        return self.result("unreadable") if self.unreadable >= UNREADABLE_LIMIT else None

    def end(self, stop: Stop, turn: Turn, text: str | None) -> AgentResult[Any]:
        """Returns the result of a run in which the model has finished, and keeps it for those who ask again."""
        self.history.ended = ConversationEnd(stop=stop, text=text, run_id=turn.run_id if turn.has_final else "")
        return self.result(stop, text=text, output=turn.final)

    def result(
        self,
        stop: Stop,
        *,
        text: str | None = None,
        output: Any = None,
        pending: tuple[ApprovalRequest, ...] = (),
        error: ModelFailed | None = None,
    ) -> AgentResult[Any]:
        """Returns the result of this run."""
        return AgentResult(
            stop=stop,
            text=text,
            output=output,
            pending=pending,
            usage=self.spending.usage,
            conversation="" if self.below is not None else self.session.conversation,
            messages=list(self.history.messages),
            error=error,
        )
