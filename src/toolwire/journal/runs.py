"""One run in a list of runs."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.journal.run import RunStatus
from toolwire.vocabulary.calls import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a store says of a run without opening it."""

    run_id: str
    """The run."""
    status: RunStatus
    """How it stands."""
    rev: int
    """Counts up with every change."""
    created_at: float
    """Seconds since the epoch."""
    updated_at: float
    """Seconds since the epoch of the last change."""
    expires_at: float
    """Seconds since the epoch after which it is not gone on with; 0: never."""
    protocol: str
    """The calling format."""
    tools: tuple[str, ...]
    """The names of the tools that the model asked for."""
    caller: Caller
    """On whose behalf."""
    steps: int
    """Calls that ended so far, those of programs included."""
    pending: int
    """Requests that wait for a person."""
    is_held: bool
    """Whether a process that may be alive has it now."""
