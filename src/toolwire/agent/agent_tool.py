"""An agent as a tool of another one, and the result of that tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from toolwire.agent.agent_run import TeamMember
from toolwire.agent.result import AgentResult, Stop
from toolwire.definition.from_schema import from_schema
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that it needs to know."}},
    "required": ["task"],
    "additionalProperties": False,
}
_WITHOUT_ANSWER: dict[Stop, tuple[FailureKind, str]] = {
    "declined": ("tool_error", "could not do it"),
    "stopped": ("interrupted", "was stopped by a person"),
    "unreadable": ("tool_error", "wrote four replies in a row that could not be read"),
    "turns": ("limit", "stopped without an answer: its turns are used up"),
    "tokens": ("limit", "stopped without an answer: the tokens of the budget are used up"),
    "cost": ("limit", "stopped without an answer: the cost of the budget is reached"),
    "seconds": ("limit", "stopped without an answer: the time of the budget is over"),
}
_HAS_ACTED = "It made calls before, which may have taken effect: check that before you repeat the task."


def agent_tool(agent: TeamMember, description: str, *, input_model: type[BaseModel] | None, name: str) -> ToolSpec:
    """Returns the tool that runs the agent below another one.

    Its calls are on record themselves, so after a crash it is called again, and the calls that ended are not.
    """

    async def work(running_call: CallContext, **given: Any) -> ToolResult:
        prompt = given["task"] if input_model is None else input_model.model_validate(given).model_dump_json()
        return await agent.run_below(prompt, running_call)

    check = None if input_model is None else partial(_problem, input_model)
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


def tool_result(name: str, result: AgentResult[Any], *, has_acted: bool) -> ToolResult:
    """Returns the result of the tool that ran the agent `name`. With `has_acted`, the agent has made calls."""
    hint = _HAS_ACTED if has_acted else ""
    if result.stop == "answered":
        return ToolResult(True, result.text if result.output is None else _plain(result.output))
    if result.stop == "model":
        message = f"The agent {name!r} could not be reached: {result.error}"
        failed = ToolResult.failed("unavailable", message, hint=hint)
        return failed.with_metadata(unavailable=True)
    kind, reason = _WITHOUT_ANSWER[result.stop]
    said = f": {result.text}" if result.text else ""
    return ToolResult.failed(kind, f"The agent {name!r} {reason}{said}.".replace("..", "."), hint=hint)


def _plain(output: Any) -> Any:
    dump = getattr(output, "model_dump", None)
    return output if dump is None else dump(mode="json")
