"""Notifies observers of calls, from start to end. Their errors have no effect on a call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from toolwire.invocation.ports.ports import CallRecord, Part, Sink
from toolwire.invocation.scope import Events, Scope
from toolwire.invocation.validate import Prepared
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.observers")


def tell_started(call: ToolCall, scope: Scope) -> None:
    """Passes a call that arrived to each observer with a `started` method."""
    _tell_each("started", "the start of call", call, scope, call)


def record_of(
    call: ToolCall,
    scope: Scope,
    result: ToolResult,
    started_at: float,
    duration_s: float,
    *,
    is_from_record: bool = False,
) -> CallRecord:
    """Returns the record of a call that ended, for observers."""
    return CallRecord(
        call,
        scope.tools.find(call.name),
        result,
        _invocation(call, scope),
        started_at,
        duration_s,
        is_from_record=is_from_record,
        caller=scope.caller,
        conversation=scope.conversation,
    )


def tell(record: CallRecord, scope: Scope) -> None:
    """Passes a record to each observer, in their order."""
    for observer in scope.listeners:
        _tell(observer.ended, "the record of call", record.call.id, record)


def tell_asked(request: ApprovalRequest, call: ToolCall, scope: Scope) -> None:
    """Passes the request to each observer with an `asked` method, before the approver is called."""
    _tell_each("asked", "the request for call", call, scope, request)


def tell_decided(request: ApprovalRequest, decision: Decision, call: ToolCall, scope: Scope) -> None:
    """Passes a decision that counts to each observer with a `decided` method."""
    _tell_each("decided", "the decision on call", call, scope, request, decision)


async def flush_events(scope: Scope) -> None:
    """Waits until the reader of the turn's events has taken all events so far."""
    waiting = None if scope.events is None else scope.events.flush()
    if waiting is not None:
        await scope.ports.wait_for(waiting)


def sink_for_call(prepared: Prepared, scope: Scope) -> Sink | None:
    """Returns the sink of a call. Each part goes to the observers with a `parts` method first.

    The owner's postprocessing may hide what its tool gives, so the parts of such a tool go to its reader alone.
    """
    if prepared.entry.finalise is not None:
        return scope.sink
    call = prepared.call
    # An empty list of a subscripted type would build that type at each call: 3 µs of a call's 9.
    listening: list[Callable[[Part], None]] = []
    for observer in scope.listeners:
        parts = getattr(observer, "parts", None)
        if parts is not None:
            listening.append(parts(call, _invocation(call, scope)))
    return _ObservedSink(call.id, listening, scope.sink, scope.events) if listening else scope.sink


class _ObservedSink:
    """Passes each part to observers, then to the reader if there is one."""

    __slots__ = ("_call_id", "_events", "_listening", "_reader")

    def __init__(
        self, call_id: str, listening: list[Callable[[Part], None]], reader: Sink | None, events: Events | None
    ) -> None:
        self._events = events
        self._call_id = call_id
        self._listening = listening
        self._reader = reader

    def offer(self, part: Part, /) -> Future[bool] | None:
        for listen in self._listening:
            _tell(listen, "a part of call", self._call_id, part)
        if self._reader is not None:
            return self._reader.offer(part)
        return None if self._events is None else self._events.flush()

    def end_with(self, response: ToolResponse, /) -> None:
        if self._reader is not None:
            self._reader.end_with(response)


def _tell_each(method: str, what: str, call: ToolCall, scope: Scope, *given: Any) -> None:
    """Calls the method of each observer that has it, with these values and the run of the call."""
    for observer in scope.listeners:
        function = getattr(observer, method, None)
        if function is not None:
            _tell(function, what, call.id, *given, _invocation(call, scope))


def _invocation(call: ToolCall, scope: Scope) -> str:
    return scope.run_id or call.id


def _tell(function: Callable[..., Any], what: str, call_id: str, *given: Any) -> None:
    try:
        function(*given)
    except Exception:  # noqa: BLE001 - a broken observer must not break the call that it observes
        _LOG.exception("an observer failed on %s %s", what, call_id)
