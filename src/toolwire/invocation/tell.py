"""Notifies observers of the end of a call. They are notified last, and their errors have no effect."""

from __future__ import annotations

import logging

from toolwire.invocation.scope import CallRecord, Scope
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.observers")


def tell(call: ToolCall, scope: Scope, result: ToolResult, started_at: float, duration_s: float) -> None:
    """Passes one record to each observer, in their order."""
    record = CallRecord(call, scope.catalogue.find(call.name), result, scope.run_id or call.id, started_at, duration_s)
    for observer in scope.observers:
        try:
            observer.ended(record)
        except Exception:  # noqa: BLE001 - a broken log must not break the call that it logs
            _LOG.exception("an observer failed on the record of call %s", call.id)


def tell_asked(request: ApprovalRequest, scope: Scope) -> None:
    """Passes the request to each observer with an `asked` method, before the approver is called."""
    for observer in scope.observers:
        asked = getattr(observer, "asked", None)
        try:
            if asked is not None:
                asked(request)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("an observer failed on the request for call %s", request.call_id)
