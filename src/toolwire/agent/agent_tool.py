"""An agent as a tool of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that it needs to know."}},
    "required": ["task"],
    "additionalProperties": False,
}


class Delegate(Protocol):
    """An agent that can be a tool."""

    def own_tools(self) -> Mapping[str, Tool]: ...

    async def run_below(self, prompt: str, context: CallContext) -> ToolResult: ...


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
    tool.is_delegating, tool.inner_tools = True, agent.own_tools
    return ToolSpec(tool)


def _problem(model: type[BaseModel], given: Mapping[str, Any]) -> str | None:
    from pydantic import ValidationError

    try:
        model.model_validate(given)
    except ValidationError as error:
        return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
    return None
