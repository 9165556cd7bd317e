"""A run as it is kept: what was asked for when it started, and how it stands when it waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Label

RunStatus = Literal["running", "suspended", "finished", "stopped", "diverged"]
"""running: somebody goes through it, or did when the process died; suspended: it waits for a person; finished: its
results are on record; stopped: a person ended it; diverged: it went another way than its record, and stays as it is."""

RUN_LIFE_S = 30 * 86_400.0
"""Seconds after which a suspended run is not resumed any more: a month, several times what a request waits."""

RUN_LIMIT_BYTES = 256 * 1024 * 1024
"""Bytes that a run may have on record. Going on with it reads all of them: a host can spare that much for one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run is made of: a pure function of the reply, so that going through it again makes the same calls."""

    run_id: str
    reply: Mapping[str, Any]
    """The reply as it was read, in JSON types (`session/kept_reply.py` writes and reads it)."""
    protocol: str
    """The name of the model's calling format; empty for one of the user's own."""
    caller: Caller = NOBODY
    """On whose behalf."""
    policy_digest: str = ""
    """`sha256:` of the rules in force when it started."""
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """`sha256:` of each tool that it calls by name, by the tool's name."""
    taints: tuple[Label, ...] = ()
    """What had been read before it."""
    engine: str = ""
    """What its programs run on; a record is replayed on the same only."""
    created_at: float = 0.0
    """Seconds since the epoch."""
    expires_at: float = 0.0
    """Seconds since the epoch after which it is not resumed; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendedRun:
    """A run that waits for a person. The store is the authority: this is what it looked like when it was suspended."""

    start: RunStart
    """What was asked for."""
    rev: int
    """Counts the run's changes: of two views of one run, the higher is the later."""
    head: int
    """Steps on record."""
    root: str
    """`sha256:` over them."""
    pending: tuple[ApprovalRequest, ...]
    """Every request that waits for a decision, in the order in which they were made."""
    key: bytes = field(default=b"", repr=False, compare=False)
    """What its portable form is signed with."""

    @property
    def run_id(self) -> str:
        """The run."""
        return self.start.run_id
