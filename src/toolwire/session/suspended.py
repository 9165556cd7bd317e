"""A turn that waits for a person, as a session returns it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from toolwire.journal.run import SuspendedRun
from toolwire.session.wire import suspended_to_json


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suspended(SuspendedRun):
    """A run that waits for decisions.

    `run_id` identifies it, `pending` lists its requests, and `to_json()` makes its portable form.
    """

    @classmethod
    def of(cls, run: SuspendedRun) -> Suspended:
        """Converts a run to this class."""
        return cls(**{field.name: getattr(run, field.name) for field in fields(run)})

    def to_json(self) -> str:
        """Returns the signed portable form, which `Session.resume` accepts. The store remains the authority."""
        return suspended_to_json(self)
