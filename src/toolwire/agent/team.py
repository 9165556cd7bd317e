"""Agents that call each other by their names, as the seeds have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolwire.agent.agent import Agent
from toolwire.agent.agent_run import AgentRun
from toolwire.agent.agent_tool import agent_tool
from toolwire.definition.chat_form import chat_form
from toolwire.definition.from_function import NEEDS_SCHEMA
from toolwire.definition.parameters import ToolParameter
from toolwire.definition.tool import Tool
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel


class AgentTeam:
    """Agents that can call each other by `CallSubagentTool`.

    Attributes:
        agents: The agents by their names.
    """

    def __init__(self, agents: Sequence[Agent[Any]]) -> None:
        """Makes a team.

        Raises:
            ConfigurationError: Two agents have one name, or one is in a team already.
        """
        if not isinstance(cast("object", agents), list | tuple):
            raise ConfigurationError(f"AgentTeam({agents!r:.80}): give a list of agents")
        self.agents: Mapping[str, Agent[Any]] = {getattr(agent, "name", ""): agent for agent in agents}
        if len(self.agents) < len(agents):
            raise ConfigurationError("AgentTeam(...): two of the agents have the same name")
        if strange := next((one for one in agents if not isinstance(cast("object", one), Agent)), None):
            raise ConfigurationError(f"AgentTeam([... {strange!r:.80} ...]): give a list of agents")
        for agent in agents:
            if agent._team:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                raise ConfigurationError(
                    f"agent {agent.name!r} is in a team already: make one AgentTeam of all its members"
                )
        for agent in agents:
            agent._team = self.agents  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class CallSubagentTool(BaseTool):
    """A tool by which an agent gives a task to another agent of its `AgentTeam`.

    Rules are checked before there is a team, so a rule about a tool of another agent needs `optional=True`.
    """

    effects = Effects(kinds=frozenset({"read"}))

    def __init__(self) -> None:
        super().__init__("call_subagent", "Gives a task to another agent of the team, and returns its answer.")

    def __tool__(self) -> Tool:
        tool = super().__tool__()
        tool.is_delegating = True
        return tool

    def get_parameters(self) -> list[ToolParameter]:
        """Returns the parameters."""
        return [
            ToolParameter("agent_name", "string", "The name of the agent."),
            ToolParameter("instruction", "string", "What to do, with all that it needs to know."),
        ]

    async def execute(self, running_call: CallContext, agent_name: str, instruction: str) -> ToolResult:
        """Runs the agent, and returns its answer."""
        run: AgentRun | None = running_call.scope.agent_run
        if run is None or not run.parts.team:
            return ToolResult.failed("unavailable", "There is no team here: an agent of an AgentTeam has to call this.")
        agent = None if agent_name == run.parts.name else run.parts.team.get(agent_name)
        if agent is None:
            others = ", ".join(repr(name) for name in run.parts.team if name != run.parts.name)
            message = f"There is no agent {agent_name!r} in the team."
            return ToolResult.failed("invalid_arguments", message, hint=f"Call one of {others}.", path="agent_name")
        return await agent.run_below(instruction, running_call)


SubagentFunction = Callable[..., Awaitable[ToolResult]]


class SubagentTool(tuple[SubagentFunction, dict[str, Any]]):
    """The function of a sub-agent's tool, and the options to register it with. Awaiting it gives the same."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, SubagentTool]:
        return self
        yield


def make_subagent_tool(
    agent: Agent[Any], *, input_model: type[BaseModel] | None = None, tool_name: str | None = None
) -> SubagentTool:
    """Returns `(function, register_kwargs)` for `Toolkit.register_tool_function(function, **register_kwargs)`.

    `register_kwargs["json_schema"]` has the fields of `input_model`, or `task`. The tool's name is `tool_name`, or
    the agent's, and its description is the docstring of `input_model`.

    The function alone has no parameters: registering it without the schema is a `RegistrationError`.
    """
    description = (input_model.__doc__ if input_model is not None else None) or f"Gives a task to {agent.name}."
    tool = agent_tool(agent, description, input_model=input_model, name=tool_name or agent.name).__tool__()
    function = tool.function
    assert function is not None
    setattr(function, NEEDS_SCHEMA, tool)
    return SubagentTool((function, {"json_schema": chat_form(tool)}))
