"""Judges a decision when it is handed in, by the tools and the policy of the session, before it is recorded."""

from __future__ import annotations

from dataclasses import replace

from toolwire.catalogue.entry import Entry
from toolwire.invocation.authorize import with_edits
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.validate import validate
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import check_authority, check_fits
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


def check_decision(request: ApprovalRequest, decision: Decision, scope: Scope, secret_key: bytes) -> None:
    """Checks a decision on a call that would run with `scope`.

    Raises:
        DecisionRefused: `tool_changed`, `not_permitted` or `invalid_edit`.
    """
    if request.depth:
        # The tool and its policy are not here. The request has what they said of a decision.
        check_authority(request, decision)
    entry = None if request.depth else scope.catalogue.find(request.tool)
    if entry is not None and entry.tool.digest != request.tool_digest:
        raise DecisionRefused(
            "tool_changed", f"{request.tool!r} is not the tool that was shown: ask again", request_id=request.id
        )
    reason = scope.policy.refuses(decision, request)
    if reason is not None:
        raise DecisionRefused("not_permitted", reason, request_id=request.id)
    check_fits(request, decision)
    # The call of a removed tool ends as `unknown_tool`, whatever the decision is.
    if decision.verdict != "edit" or entry is None:
        return
    problem = _problem_of(request, entry, decision, scope, secret_key)
    if problem is not None:
        raise DecisionRefused("invalid_edit", problem, request_id=request.id)


def _problem_of(
    request: ApprovalRequest, entry: Entry, decision: Decision, scope: Scope, secret_key: bytes
) -> str | None:
    """Returns the reason why an edited call would not run. The path itself answers, with the facts of the run.

    None without a reason.
    """
    scope = replace(scope, run_id=request.run_id, run=Run(request.taints), secret_key=secret_key)
    arguments = request.given or request.arguments
    call = ToolCall(request.tool, arguments, id=request.call_id, parent=request.parent)
    shown = validate(call, entry, scope.states)
    edited = shown if isinstance(shown, ToolResult) else with_edits(shown, decision, scope)
    return edited.error if isinstance(edited, ToolResult) else None
