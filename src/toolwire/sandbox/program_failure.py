"""The failure of a program that did not finish: its kind, and the advice for the model's next reply."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire.sandbox.report import ProgramResult, ProgramStatus
from toolwire.vocabulary.failures import FailureKind

STOPPED: Mapping[ProgramStatus, FailureKind] = {
    "failed": "tool_error",
    "timeout_cpu": "timeout",
    "timeout_program": "timeout",
    "deadline": "timeout",
    "memory": "limit",
    "output": "limit",
    "calls": "limit",
    "cancelled": "interrupted",
    "divergence": "divergence",
}
"""The kind of failure for each way to stop; any other status is the program's own fault, a tool_error."""

_FAILED = "Do not send the same program again: it would fail the same way. Correct it and send the whole program."
_SLOW = "Do not send the same program again: it would take as long. Write one that does less."
_TOOL_AWAY = "A tool of the program cannot be used now. Write a program that does without it, or tell the user."
_ENDED = "The program was stopped from outside: its text was not the cause."
_HINTS: Mapping[ProgramStatus, str] = {
    **dict.fromkeys(("timeout_cpu", "timeout_program", "deadline"), _SLOW),
    **dict.fromkeys(("cancelled", "divergence"), _ENDED),
}


def hint_of(result: ProgramResult) -> str:
    """Returns the advice for the next reply. A tool that is away now may work later."""
    if (
        result.status == "failed"
        and result.error is not None
        and result.error.type in ("ToolTimeout", "ToolUnavailable")
    ):
        return _TOOL_AWAY
    return _HINTS.get(result.status, _FAILED)
