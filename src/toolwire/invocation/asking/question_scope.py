"""The place of the questions of a call."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.invocation.asking.pauses import PauseClock
from toolwire.invocation.ports import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScope:
    """The place of the questions of a call, which the calls that its tool makes share."""

    ledger: Ledger | None
    """The record of the questions."""
    can_suspend: bool
    """True if a question may wait beyond this process."""
    deadline: float | None
    """The end of the run, which no wait moves. The time limits of its tools move."""
    clocks: tuple[PauseClock, ...]
    """The clocks of the calls that wait for the person, outermost first."""
