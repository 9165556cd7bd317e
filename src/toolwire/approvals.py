"""Approvers, edits and portable decisions: for hosts that let people decide. See `docs/approvals.md`."""

from toolwire.permission.approval import Decider
from toolwire.permission.approvers import ConsoleApprover, console_approver, later
from toolwire.permission.deciding import rule_for
from toolwire.permission.edits import check_answer, check_edit, read_answer, read_edit
from toolwire.permission.rendering import RequestLine
from toolwire.permission.rendering import lines_of as shown_request
from toolwire.permission.rendering import render as render_request
from toolwire.permission.visible import looks_like_another, visible, visible_text
from toolwire.session.runs.wire import decisions_to_json, read_decisions, read_suspended, suspended_to_json

__all__ = [
    "ConsoleApprover",
    "Decider",
    "RequestLine",
    "check_answer",
    "check_edit",
    "console_approver",
    "decisions_to_json",
    "later",
    "looks_like_another",
    "read_answer",
    "read_decisions",
    "read_edit",
    "read_suspended",
    "render_request",
    "rule_for",
    "shown_request",
    "suspended_to_json",
    "visible",
    "visible_text",
]
