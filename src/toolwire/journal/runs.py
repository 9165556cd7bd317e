"""One run in a list of runs."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.journal.run import RunStatus
from toolwire.vocabulary.calls import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as `Store.runs` and `Store.run` describe it. Reading it does not open the run.

    Attributes:
        run_id: The id of the run.
        status: The state of the run.
        rev: The revision; it goes up with every change.
        created_at: Start of the run, in seconds since the epoch.
        updated_at: Last change of the run, in seconds since the epoch.
        expires_at: Time after which the run cannot be resumed, in seconds since the epoch; 0 means never.
        protocol: Name of the calling format.
        tools: Names of the tools that the model called.
        caller: The caller for which the run was made.
        steps: Number of calls that have ended, calls of programs included.
        pending: Number of requests that wait for a person.
        is_held: True if a process that may still be alive holds the lease.
    """

    run_id: str
    status: RunStatus
    rev: int
    created_at: float
    updated_at: float
    expires_at: float
    protocol: str
    tools: tuple[str, ...]
    caller: Caller
    steps: int
    pending: int
    is_held: bool
