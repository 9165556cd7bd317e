"""The events of the log: ended calls, requests, decisions and changes of runs.

They are redacted when they are written.
"""

from __future__ import annotations

import time
from typing import Any

from toolwire.journal.log.rows import RowKind
from toolwire.journal.run import RunStart
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import plain_value

CALL_FIELDS = ("parent", "duration_s", "arguments", "result", "error", "isolation", "approval")


def call_event(row: tuple[Any, ...], conversation: str, caller: Caller) -> dict[str, Any]:
    """Returns the event of a call that ended, made from a row of `memory_log.row_of`."""
    call_id, run_id, parent, tool, at, status, *rest = row
    entry = dict(zip(CALL_FIELDS, (parent, *rest), strict=True))
    return _event("call", at, run_id, call_id, tool, status, entry, conversation, caller)


def call_row(subject: str, run_id: str, tool: str, at: float, status: str, entry: Any) -> tuple[Any, ...]:
    """Converts a row of the log into the row that `memory_log.entry_of` reads."""
    parent, *rest = (entry.get(name) for name in CALL_FIELDS)
    return (subject, run_id, parent, tool, at, status, *rest)


def request_event(request: ApprovalRequest, conversation: str = "") -> dict[str, Any]:
    """Returns the event of a person being asked."""
    entry = {
        "call_id": request.call_id,
        "attempt": request.attempt,
        "arguments": request.arguments,
        "reasons": request.reasons,
        "effects": request.effects,
        "taints": request.taints,
        "caller": request.caller,
        "tool_digest": request.tool_digest,
        "expires_at": request.expires_at,
    }
    if request.kind == "question":
        entry = {"kind": request.kind, "question": request.question, "answer_schema": request.answer_schema, **entry}
    at = request.created_at or time.time()
    whose = (conversation, request.caller)
    return _event("request", at, request.run_id, request.id, request.tool, "asked", _plain_entry(entry), *whose)


def decision_event(request: ApprovalRequest, decision: Decision, conversation: str) -> dict[str, Any]:
    """Returns the event of a decision. The answer to a question is not in the log, since it may be a secret."""
    entry = {
        "call_id": request.call_id,
        "by": decision.by,
        "reason": decision.reason,
        "arguments": decision.arguments,
        "remember": decision.remember,
    }
    whose = (conversation, request.caller)
    ids = (request.run_id, request.id, request.tool)
    return _event("decision", decision.at, *ids, decision.verdict, _plain_entry(entry), *whose)


def rule_event(run_id: str, rule_id: str, by: Decider, at: float) -> dict[str, Any]:
    """Returns the event of a remembered rule that was removed."""
    entry = _plain_entry({"by": by})
    return _event("decision", at, run_id, rule_id, "", "rule_forgotten", entry, "", NOBODY)


def run_event(run: RunStart, status: str, *, lease: int = 0, **entry: Any) -> dict[str, Any]:
    """Returns the event of a run that started, resumed, was suspended or ended.

    `lease` is the number of the run's lease. `verify` orders the rows of a run by it, since they may be in several
    chains. It is 0 for a run that is gone.
    """
    whose = (run.conversation, run.caller)
    entry = {"lease": lease, **entry} if lease else entry
    return _event("run", time.time(), run.run_id, run.run_id, "", status, _plain_entry(entry), *whose)


def _event(
    kind: RowKind,
    at: float,
    run_id: str,
    subject: str,
    tool: str,
    status: str,
    entry: Any,
    conversation: str,
    caller: Caller,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "at": at,
        "run_id": run_id,
        "subject": subject,
        "tool": tool,
        "status": status,
        "entry": entry,
        "conversation": conversation,
        "principal": caller.principal,
        "agent": caller.agent,
        "tenant": caller.tenant,
    }


def _plain_entry(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in entry.items():
        try:
            found[name] = plain_value(value)
        except Unrepresentable as error:
            found[name] = f"<{error}>"
    return found
