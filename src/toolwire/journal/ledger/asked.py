"""Calls that began and have no end on record: whether each is in doubt, or waited for a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolwire.vocabulary.run_step import InDoubtStep, Start, idempotency_key


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRequest:
    """A request on record: a question, or a request for approval."""

    id: str
    """The id of the request."""
    call_id: str
    """The id of the call. For a question, the id of the call that asked, `?` and the number of the question."""
    asked_at: float
    """Time of the request in seconds since the epoch."""
    decided_at: float
    """Time of the decision in seconds since the epoch; 0.0 without one."""
    is_used: bool
    """True if the tool received the answer, or if the call for which approval was asked has begun or ended."""
    is_waiting: bool
    """True if a person can still decide it."""
    is_question: bool


def in_doubt(run_id: str, start: Start, started_at: float, requests: Iterable[AskedRequest]) -> InDoubtStep:
    """Returns the state of a step that was begun at that time, and has no end on record.

    It is asking if it, or a call that it made, came as far as a request whose decision it has not received. A tool that
    asks several times side by side may have run on with the first decision. Then it is not.
    """
    key = start.step.key
    # The questions of the step, and the requests of the calls that it made, without its own approval.
    below = [one for one in requests if one.call_id.startswith((f"{key}?", f"{key}/"))]
    ran_on_at = max((one.decided_at for one in below if one.is_used), default=0.0)
    return InDoubtStep(
        idempotent=start.idempotent,
        is_composite=start.is_composite,
        started_at=started_at,
        attempt=start.attempt,
        idempotency_key=idempotency_key(run_id, key, start.arguments_digest),
        has_key=start.has_key,
        is_asking=any(one.asked_at > ran_on_at for one in below if not one.is_used),
        waiting=tuple(one.id for one in below if one.is_waiting),
    )
