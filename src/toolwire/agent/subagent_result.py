"""The result of a sub-agent's tool, from the end of the sub-agent's run."""

from __future__ import annotations

from typing import Any

from toolwire.agent.result import AgentResult, Stop
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult

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
