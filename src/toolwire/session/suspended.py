"""A turn that waits for a person, as its session gives it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from toolwire.journal.run import SuspendedRun
from toolwire.session.wire import suspended_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended(SuspendedRun):
    """A run that waits: `run_id` names it, `pending` says for what, `to_json()` carries it elsewhere."""

    @classmethod
    def of(cls, run: SuspendedRun) -> Suspended:
        """The run as a session gives it."""
        return cls(**{field.name: getattr(run, field.name) for field in fields(run)})

    def to_json(self) -> str:
        """The portable signed form, which `Session.resume` takes as well. The store stays the authority."""
        return suspended_to_json(self)
