"""A call that waits for a person."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call that did not run yet because a person has to decide: neither success nor failure."""

    call: ToolCall
    """The call; of a program, the program's own."""
    request_ids: tuple[str, ...]
    """The requests that wait: one, or for a program one for each of its calls that wait."""


Outcome = ToolResult | Pending
"""What a call comes to."""
