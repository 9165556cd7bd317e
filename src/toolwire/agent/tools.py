"""Agents as tools: of an agent above, of a team, and by the names of the seeds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from toolwire.agent.agent_run import AgentRun, TeamMember
from toolwire.catalogue.catalogue import Catalogue
from toolwire.definition.chat_form import chat_form
from toolwire.definition.from_function import NEEDS_SCHEMA
from toolwire.definition.from_schema import from_schema
from toolwire.definition.parameters import ToolParameter
from toolwire.definition.tool import Tool
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that it needs to know."}},
    "required": ["task"],
    "additionalProperties": False,
}


class Delegate(TeamMember, Protocol):
    """An agent that can be a tool."""

    name: str
    toolkit: ToolRegistry | Toolkit

    def _join_team(self, team: Mapping[str, TeamMember]) -> None: ...


def agent_tool(agent: Delegate, description: str, *, input_model: type[BaseModel] | None = None, name: str) -> ToolSpec:
    """Returns the tool that runs the agent below another one.

    Its calls are on record themselves, so after a crash it is called again, and the calls that ended are not.
    """

    async def work(running_call: CallContext, **given: Any) -> ToolResult:
        prompt = given["task"] if input_model is None else input_model.model_validate(given).model_dump_json()
        return await agent.run_below(prompt, running_call)

    def check(given: dict[str, Any]) -> str | None:
        return None if input_model is None else _problem(input_model, given)

    schema = _TASK if input_model is None else input_model.model_json_schema()
    tool = from_schema(name, description, schema, function=work, effects=["read"], check=check)
    tool.is_delegating, tool.inner_tools = True, lambda: _tools(agent.toolkit)
    return ToolSpec(tool)


def _problem(model: type[BaseModel], given: Mapping[str, Any]) -> str | None:
    from pydantic import ValidationError

    try:
        model.model_validate(given)
    except ValidationError as error:
        return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
    return None


def _tools(toolkit: ToolRegistry | Toolkit) -> Mapping[str, Tool]:
    catalogue: Catalogue = toolkit._call_scope.catalogue  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return {entry.name: entry.tool for entry in catalogue}


class AgentTeam:
    """Agents that can call each other by `CallSubagentTool`.

    Attributes:
        agents: The agents by their names.
    """

    def __init__(self, agents: Sequence[Delegate]) -> None:
        """Makes a team.

        Raises:
            ConfigurationError: Two agents have one name, or one is in a team already.
        """
        self.agents: Mapping[str, Delegate] = {agent.name: agent for agent in agents}
        if len(self.agents) < len(agents):
            raise ConfigurationError("AgentTeam(...): two of the agents have the same name")
        for agent in agents:
            agent._join_team(self.agents)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class CallSubagentTool(BaseTool):
    """A tool by which an agent gives a task to another agent of its `AgentTeam`."""

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
        agent = run.parts.team.get(agent_name)
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
    agent: Delegate, *, input_model: type[BaseModel] | None = None, tool_name: str | None = None
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
    setattr(function, NEEDS_SCHEMA, "make_subagent_tool made it: write register_tool_function(function, **kwargs)")
    return SubagentTool((function, {"json_schema": chat_form(tool)}))
