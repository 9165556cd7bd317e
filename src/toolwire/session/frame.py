"""The frame of one turn: its deadline, the reader of its events, its caller and its span, or the call it is below."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.invocation.scope import Scope
from toolwire.invocation.shared_run import AfterFailure
from toolwire.session.finish import TurnFinish
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import Caller, Reply, ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.vocabulary.call_events import ToolEvent


@asynccontextmanager
async def turn_scope(
    scope: Scope,
    *,
    deadline_s: float | None,
    events: Callable[[ToolEvent], Any] | None,
    caller: Caller | None,
) -> AsyncGenerator[Scope]:
    """Yields the session's scope as it is for this turn alone. At its end all events have been taken.

    Raises:
        ConfigurationError: An option does not fit.
    """
    _refuse_wrong_deadline(deadline_s)
    if events is not None and not callable(events):
        raise ConfigurationError(f"events={events!r:.80}: write a function that takes one event")
    mine = scope.narrow(caller=caller)
    if deadline_s is not None:
        mine = replace(mine, deadline=time.monotonic() + deadline_s)
    if events is None:
        yield mine
        return
    from toolwire.session.turn_events import TurnEvents

    async with TurnEvents(events) as reader:
        yield replace(mine, events=reader)


def _refuse_wrong_deadline(deadline_s: object) -> None:
    if deadline_s is None:
        return
    is_number = isinstance(deadline_s, int | float) and not isinstance(deadline_s, bool)
    if not is_number or not 0 <= cast("float", deadline_s) < math.inf:
        raise ConfigurationError(
            f"deadline_s={deadline_s!r:.80}: write the seconds that the turn may take, such as deadline_s=30, "
            "or None for no deadline"
        )


async def trace_turn(
    turn: Coroutine[Any, Any, Turn], scope: Scope, *, run_id: str, protocol: str, given_ids: Mapping[str, str]
) -> Turn:
    """Returns the turn, and traces it if the scope has a tracer."""
    tracer = scope.tracer
    if tracer is None:
        return await turn
    span = tracer.turn(run_id, caller=scope.caller, protocol=protocol, given_ids=given_ids)
    try:
        ended = await turn
    except BaseException as error:
        span.fail(error)
        raise
    refused = "refused" if ended.reply.is_refused else "answered"
    span.end(refused if ended.suspended is None else "suspended", len(ended.reply.calls))
    return ended


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


@dataclass(frozen=True, slots=True)
class _OwnTools:
    """A session's tools and rules, as `CallContext.using` takes them."""

    _call_scope: Scope


async def run_below(
    reply: Reply, context: CallContext, scope: Scope, entry: Entry | None
) -> tuple[list[ToolResult], TurnFinish | None]:
    """Runs the calls of one reply as calls of a running tool. Returns their results, and the end by one of them alone.

    `context` is that of the running call, `scope` is the session's, and `entry` the tool by which its model ends. As in
    any turn, that call waits for the calls before it, and those after it do not run. If a call waits for a person, the
    running tool ends here, and comes here again after the decision.
    """
    end = None if entry is None else TurnFinish(entry)
    agent, results = scope.caller.agent or None, list[ToolResult]()
    inner = context.using(_OwnTools(replace(scope, end=end)), agent=agent)

    def is_alone(call: ToolCall) -> bool:
        return reply.is_sequence or (end is not None and call.name == end.name)

    for _, group in groupby(enumerate(reply.calls), lambda one: one[0] if is_alone(one[1]) else -1):
        if reply.is_sequence and results and not results[-1].success:
            inner = context.using(_OwnTools(replace(scope, end=AfterFailure())), agent=agent)
        results += await asyncio.gather(*(inner.call(call.name, **dict(call.arguments)) for _, call in group))
    return results, end if end is not None and end.call_id else None
