"""What a store says of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import NOBODY, Caller

RunStatus = Literal["running", "suspended", "finished", "diverged"]
"""running: begun and not ended, by whoever has it or had it last; suspended: waits for people; finished: its results
are on record; diverged: what was asked for again was not what is on record, and nothing of it runs any more."""

_NO_TOOLS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCall:
    """One of the calls that a run was started for."""

    name: str
    """The tool's name."""
    given: Any
    """The arguments as the model gave them, tagged (`values.tag`)."""
    id: str
    """The call's id in the run."""
    provider_id: str = ""
    """The provider's own id of it; empty when it has none."""
    raw_text: str = ""
    """The text that it was read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """A run as it was started: everything that going through it again depends on."""

    run_id: str
    """Its id."""
    protocol: str = ""
    """The calling format that the model's reply was in."""
    calls: tuple[RunCall, ...] = ()
    """What the model asked for, in order."""
    caller: Caller = NOBODY
    """On whose behalf."""
    policy_digest: str = ""
    """`sha256:` of the rules in force."""
    tools: Mapping[str, str] = field(default_factory=lambda: _NO_TOOLS)
    """The tools it may call, with the `sha256:` of each."""
    taints: tuple[str, ...] = ()
    """What had been read before."""
    engine: str = ""
    """The version of toolwire that started it."""
    created_at: float = 0.0
    """Seconds since the epoch; filled in when it is 0."""
    expires_at: float = 0.0
    """Seconds since the epoch after which it is not gone on with; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One run in a list."""

    run_id: str
    status: RunStatus
    rev: int
    """Counts up with every change."""
    created_at: float
    """Seconds since the epoch."""
    updated_at: float
    """Seconds since the epoch of the last change."""
    expires_at: float
    """Seconds since the epoch; 0: never."""
    protocol: str
    """The calling format."""
    calls: tuple[str, ...]
    """The names of the tools that the model asked for."""
    caller: Caller
    """On whose behalf."""
    steps: int
    """Calls that ended so far, those of programs included."""
    pending: int
    """Requests that wait for a person."""
    is_held: bool
    """Whether a process that may be alive has it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """A run that waits for people."""

    run_id: str
    rev: int
    """Its revision as it was suspended."""
    pending: tuple[ApprovalRequest, ...]
    """Every request that waits, oldest first."""
