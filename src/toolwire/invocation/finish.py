"""Additions to the result of a finish function's call: the final text, and the model made from its arguments."""

from __future__ import annotations

from typing import Any, cast

from toolwire.definition.shape import StructuredValues
from toolwire.invocation.execute import attempt
from toolwire.invocation.scope import Path, Prepared, Scope
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import Outcome, ToolResult


async def attempt_finish(prepared: Prepared, scope: Scope, invoke: Path) -> Outcome:
    """Runs an extended tool. A success gets `response_msg` and `structured` in its metadata.

    A text that the function itself put into `response_msg` is kept.
    """
    result = await attempt(prepared, scope, invoke)
    if result.failure is not None:
        return result
    text = _text(result)
    # The next step turns a result without text into a failure.
    structured = cast("StructuredValues", prepared.validated.values).structured
    return result if text is None else result.with_metadata(response_msg=text, structured=structured)


def _text(result: ToolResult) -> str | None:
    own: Any = result.metadata.get("response_msg")
    if isinstance(own, str):
        return own
    try:
        return result.text
    except Unrepresentable:
        return None
