"""A call that waits for a person."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call that has not run yet because a person must decide. It is neither success nor failure."""

    call: ToolCall
    """The call; for a program, the call that runs the program."""
    request_ids: tuple[str, ...]
    """The ids of the requests that wait. A program has one for each of its waiting calls, any other call has one."""


Outcome = ToolResult | Pending
"""The outcome of a call."""
