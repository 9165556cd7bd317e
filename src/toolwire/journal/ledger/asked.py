"""Questions on record: whether a call waited for an answer when its process left it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question on record."""

    call_id: str
    """The id of the call that asked, `?` and the number of the question."""
    asked_at: float
    """Time of the question in seconds since the epoch."""
    decided_at: float
    """Time of the decision in seconds since the epoch; 0.0 without one."""
    is_used: bool
    """True if the tool received the answer."""


def is_asking(key: str, questions: Iterable[AskedQuestion]) -> bool:
    """True if the step, or a call that it made, came as far as a question whose answer it has not received.

    A tool that asks several questions side by side may have run on with the first answer. Then the result is False.
    """
    own = [one for one in questions if one.call_id.startswith((f"{key}?", f"{key}/"))]
    ran_on_at = max((one.decided_at for one in own if one.is_used), default=0.0)
    return any(one.asked_at > ran_on_at for one in own if not one.is_used)
