"""The failures of a tool that asks a person, and of a tool that makes other calls than in an earlier pass."""

from __future__ import annotations

from toolwire.invocation.owners_fault import owners_fault
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.questions import QUESTIONS_LIMIT, QuestionDeclined
from toolwire.vocabulary.results import ToolResult


def failure_of_declined(call: ToolCall, error: QuestionDeclined) -> ToolResult:
    """Returns the failure of a tool that left a declined question to its caller."""
    return ToolResult.failed(
        "denied",
        f"{call.name!r} was stopped at its question: {error}.",
        hint="Do not ask again; find another way or tell the user.",
        data={"question": error.question, "reason": error.reason},
        exception=error,
        call=call,
    )


def without_context(call: ToolCall) -> ToolResult:
    """Returns the failure of a tool that returns `InputRequired` and cannot read the answers."""
    return owners_fault(
        "invalid_result",
        f"{call.name!r} asked questions, and cannot receive the answers.",
        for_owner="give it a parameter annotated with CallContext, and read context.answers.",
        call=call,
    )


def wrong_round(call: ToolCall, error: Exception) -> ToolResult:
    """Returns the failure of a tool whose `InputRequired` cannot be asked."""
    return owners_fault(
        "invalid_result",
        f"{call.name!r} asked questions that cannot be asked: {error}.",
        for_owner="mend its InputRequired.",
        call=call,
    )


def too_many(call: ToolCall) -> ToolResult:
    """Returns the failure of a tool that asks too often."""
    return owners_fault(
        "limit",
        f"{call.name!r} was stopped: it asked more than {QUESTIONS_LIMIT} questions.",
        for_owner="ask for several values in one question, with a schema of type object.",
        call=call,
    )


def other_call(call: ToolCall, divergence: ToolResult) -> ToolResult:
    """Returns the failure of a tool that makes another call than in an earlier pass."""
    return owners_fault(
        "approval_mismatch",
        f"{call.name!r} was stopped: it made another call than the one on record. {divergence.error}",
        for_owner="make the same calls in the same order in each pass; keep what a model or a clock says in the store.",
        hint="It may have done a part of its work. Check that before you repeat the call.",
        data=divergence.data,
        call=call,
    )


def other_question(call: ToolCall, request_id: str) -> ToolResult:
    """Returns the failure of a tool that asks another question than in an earlier pass."""
    return owners_fault(
        "approval_mismatch",
        f"{call.name!r} was stopped: it asked another question than the one on record.",
        for_owner="ask the same questions in the same order in each pass; a text with the time in it differs.",
        hint="It may have done a part of its work. Check that before you repeat the call.",
        data={"request_id": request_id},
        call=call,
    )
