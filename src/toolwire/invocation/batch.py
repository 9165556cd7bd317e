"""The calls of one reply, side by side where their tools allow it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from toolwire.invocation.invoker import invoke
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


async def invoke_all(calls: Sequence[ToolCall], scope: Scope) -> list[ToolResult]:
    """The results in the order of the calls. A tool that runs alone takes its calls in that order too."""
    if len(calls) == 1:
        return [await invoke(calls[0], scope)]
    return await scope.ports.together([partial(invoke, call, scope) for call in calls])
