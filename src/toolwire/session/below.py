"""A session's turn below a running call: the calls of the reply are calls of the running tool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby

from toolwire.catalogue.entry import Entry
from toolwire.invocation.scope import Scope
from toolwire.invocation.validate import validate
from toolwire.session.finish import TurnFinish
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


def refuse_options_below(**options: object) -> None:
    """Refuses the options of a turn that the turn of the running call decides.

    Raises:
        ConfigurationError: One is given.
    """
    given = ", ".join(f"{name}=" for name, value in options.items() if value is not None)
    if given:
        raise ConfigurationError(
            f"turn(..., below=context): leave {given} out, because the turn of the running call decides that"
        )


async def run_below(
    calls: Sequence[ToolCall], context: CallContext, scope: Scope, entry: Entry | None
) -> tuple[list[ToolResult], TurnFinish | None]:
    """Runs the calls of one reply as calls of a running tool. Returns their results, and the end of this reply alone.

    `context` is that of the running call over the session's tools, `scope` is the session's, and `entry` the tool by
    which its model ends. As in any turn, that call waits for the calls before it, and those after it do not run. If a
    call waits for a person, the running tool ends here, and comes here again after the decision.
    """
    end = None if entry is None else TurnFinish(entry)

    async def run(call: ToolCall) -> ToolResult:
        if end is not None and end.call_id:
            return end.refusal(call)
        if end is None or entry is None or call.name != end.name:
            return await context.call(call.name, **dict(call.arguments))
        prepared = validate(call, entry, scope.states)
        return prepared if isinstance(prepared, ToolResult) else end.take(prepared)

    results: list[ToolResult] = []
    for _, group in groupby(enumerate(calls), lambda one: one[0] if end and one[1].name == end.name else -1):
        results += await asyncio.gather(*(run(call) for _, call in group))
    return results, end
