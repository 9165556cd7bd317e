"""Runs the calls of one reply, in parallel where their tools allow it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, cast

from toolwire.catalogue.entry import is_colourless
from toolwire.invocation.fold import with_repeatable_stop
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports.under_way import CutOff, UnderWay
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.shared_run import AfterFailure
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import Outcome, Pending, ToolResult


def invoke_turn(
    calls: Sequence[ToolCall], scope: Scope, run: Run, *, is_sequence: bool = False
) -> Coroutine[Any, Any, list[Outcome]]:
    """Runs the calls of a turn; with `is_sequence` one by one. If it is cancelled, it waits for their clean-up."""
    work = partial(invoke_one_by_one if is_sequence else invoke_all, calls, scope)
    return scope.ports.whole(work, lambda: run.under_way.names)


def invoke_all(calls: Sequence[ToolCall], scope: Scope) -> Coroutine[Any, Any, list[Outcome]]:
    """Returns the outcomes in the order of the calls. A tool that runs alone takes its calls in that order too.

    A call that ends the turn waits for the calls before it, and the calls after it wait for it.
    """
    # Like `_run_together`, no coroutine itself: each would be one more frame around every tool.
    _check_bound_values(calls, scope)
    return _run_together(calls, scope) if scope.end is None else _run_around(scope.end.name, calls, scope)


async def _run_around(end: str, calls: Sequence[ToolCall], scope: Scope) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for _, group in groupby(enumerate(calls), lambda one: one[0] if one[1].name == end else -1):
        outcomes += await _run_together([call for _, call in group], scope)
    return outcomes


def _run_together(calls: Sequence[ToolCall], scope: Scope) -> Coroutine[Any, Any, list[Outcome]]:
    lanes = _lanes(calls, scope)
    return _run_in_order(calls, scope) if len(lanes) <= 1 else _run_lanes(lanes, calls, scope)


async def _run_lanes(lanes: Sequence[Sequence[int]], calls: Sequence[ToolCall], scope: Scope) -> list[Outcome]:
    found = await scope.ports.together(
        [partial(_run_in_order, [calls[place] for place in places], scope) for places in lanes]
    )
    outcomes = {
        place: outcome
        for places, lane in zip(lanes, found, strict=True)
        for place, outcome in zip(places, lane, strict=True)
    }
    return [outcomes[place] for place in range(len(calls))]


async def invoke_one_by_one(calls: Sequence[ToolCall], scope: Scope) -> list[Outcome]:
    """Returns the outcomes in the order of the calls.

    Each call runs only once the one before it has succeeded, and waits for a person as long as that one waits.
    """
    _check_bound_values(calls, scope)
    outcomes: list[Outcome] = []
    for call in calls:
        before = outcomes[-1] if outcomes else None
        if isinstance(before, Pending):
            outcomes.append(Pending(call=call, request_ids=()))
            continue
        if before is not None and not before.success:
            scope = replace(scope, end=AfterFailure())
        outcomes += await _run_in_order([call], scope)
    return outcomes


async def _run_in_order(calls: Sequence[ToolCall], scope: Scope) -> list[Outcome]:
    """Returns the outcomes of the calls. If the host stops the turn, a call that had not ended gets a result of that.

    One coroutine with a loop in it, because each coroutine would be one more frame around every tool.
    """
    run, outcomes = scope.run, list[Outcome]()
    for call in calls:
        if run is None:
            outcomes.append(await invoke(call, scope))
        elif run.under_way.reason is not None:
            outcomes.append(_stop_result(call, run.under_way, None))
        else:
            work = run.under_way.run(call, invoke(call, scope), scope.ports.is_still_running)
            outcome = await scope.ports.unless_stopped(work, run.under_way)
            is_cut = isinstance(outcome, CutOff)
            outcomes.append(_stop_result(call, run.under_way, outcome) if is_cut else cast("Outcome", outcome))
    return outcomes


def _stop_result(call: ToolCall, under_way: UnderWay, cut: CutOff | None) -> ToolResult:
    """Returns the result of a call that the host stopped, or that did not begin: the facts about it, and the reason.

    A call that had ended, and only waited for the reader of its events, keeps its result.
    """
    if call.id in under_way.ended:
        return under_way.ended[call.id]
    tool = under_way.begun.get(call.id)
    if tool is None:
        message, data = f"{call.name!r} was not run: {under_way.reason}.", stop_facts(is_started=False, may_repeat=True)
        return ToolResult.failed("interrupted", message, hint="It did not run.", data=data, call=call)
    data = stop_facts(is_started=True, may_repeat=False)
    if cut is not None and cut.is_still_running:
        message = f"{call.name!r} could not be stopped and goes on: {under_way.reason}. Its result will be ignored."
        return with_repeatable_stop(ToolResult.failed("unknown_outcome", message, data=data, call=call), tool)
    message = f"{call.name!r} was stopped: {under_way.reason}."
    return with_repeatable_stop(ToolResult.failed("interrupted", message, data=data, call=call), tool)


def _check_bound_values(calls: Sequence[ToolCall], scope: Scope) -> None:
    """Raises for a wrong value before any of the calls runs: the others would be broken off in their middle."""
    for call in calls if len(calls) > 1 else ():
        entry = scope.tools.find(call.name)
        bindings = None if entry is None else entry.tool.bindings
        if bindings is not None and bindings.current:
            bindings.resolve(bindings.current, scope.states)


def _lanes(calls: Sequence[ToolCall], scope: Scope) -> list[list[int]]:
    """Groups calls that must run in order, because they share a gate. Every other call gets its own lane."""
    lanes: dict[object, list[int]] = {}
    for place, call in enumerate(calls):
        entry = scope.tools.find(call.name)
        # A gate alone admits calls in the order in which threads reach it, not in the order of the calls.
        gate = entry.gate if entry is not None else None
        lanes.setdefault(place if gate is None else gate, []).append(place)
    return list(lanes.values())


def needs_loop(calls: Sequence[ToolCall], scope: Scope) -> bool:
    """True if one of the calls runs a coroutine function of a tool or middleware, directly or from a program.

    Such calls belong on the portal. So do several calls of which one gives a future: each would occupy a thread.
    """
    if scope.middleware and not all(map(is_colourless, scope.middleware)):
        return True
    if not scope.tools.has_deferred_tools:
        return False
    for call in calls:
        entry = scope.tools.find(call.name)
        if entry is None:
            continue
        if entry.is_async or entry.composite is not None or (len(calls) > 1 and entry.is_deferred):
            return True
    return False
