"""`start_call`, `poll_call`, `cancel_call`: a model starts a long call, and asks for its result later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import CANCEL_CALL, POLL_CALL, START_CALL
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import ToolResult

WAIT_LIMIT_S = 30
"""Longest wait of one `poll_call`, in seconds: a model's turn must go on, and it may ask again."""

_ID: dict[str, Any] = {"type": "string", "description": f"The id that {START_CALL} gave"}


class Calls(Protocol):
    """The background calls that these tools start, poll and cancel."""

    def start_for(self, context: CallContext, tool: str, arguments: Mapping[str, Any]) -> ToolResult: ...
    def poll_for(self, context: CallContext, id: str, wait_s: float) -> ToolResult: ...
    def cancel_for(self, context: CallContext, id: str) -> ToolResult: ...


def background_tools(calls: Calls) -> list[Tool]:
    """Returns the tools as models see them."""

    def start_call(tool: str, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        return calls.start_for(context, tool, arguments)

    def poll_call(id: str, wait_s: float, context: CallContext) -> ToolResult:
        return calls.poll_for(context, id, wait_s)

    def cancel_call(id: str, context: CallContext) -> ToolResult:
        return calls.cancel_for(context, id)

    return [
        from_schema(
            name=START_CALL,
            description=(
                "Start another tool without waiting for it, and do other things meanwhile. Returns an id, by which "
                f"{POLL_CALL} gets the result. Only for tools that take long: call any other tool directly."
            ),
            input_schema=_object(
                {
                    "tool": {"type": "string", "description": "The tool's name"},
                    "arguments": {"type": "object", "description": "The tool's arguments", "default": {}},
                },
                "tool",
            ),
            function=start_call,
        ),
        from_schema(
            name=POLL_CALL,
            description=f"Get the result of a call that {START_CALL} started, or learn that it is still running.",
            input_schema=_object(
                {
                    "id": _ID,
                    "wait_s": {
                        "type": "number",
                        "description": "Seconds to wait for the result if it is still running",
                        "minimum": 0,
                        "maximum": WAIT_LIMIT_S,
                        "default": 0,
                    },
                },
                "id",
            ),
            function=poll_call,
            idempotent="natural",
        ),
        from_schema(
            name=CANCEL_CALL,
            description=f"Stop a call that {START_CALL} started and whose result is not needed any more.",
            input_schema=_object({"id": _ID}, "id"),
            function=cancel_call,
            idempotent="natural",
        ),
    ]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
