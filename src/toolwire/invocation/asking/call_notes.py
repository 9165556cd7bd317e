"""The notes of one call: values that its tool keeps for its next pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolwire.invocation.ports.ports import Ledger
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.values import canonical, plain_value

NOTE_LIMIT_BYTES = 65_536
"""Maximum size of one note as JSON. A long reply of a model fits."""
NOTES_LIMIT = 100
"""Maximum number of notes of one call: five times the turns that an agent takes by default."""

_OWN = "#notes"
"""Behind the id of the call. The notes of `InputRequired` and of programs are kept under the id alone."""


class CallNotes:
    """The notes of one call, over all passes. Without a ledger they last as long as the call."""

    def __init__(self, call_id: str, ledger: Ledger | None) -> None:
        self._key, self._ledger = call_id + _OWN, ledger
        self._values: list[Any] = [] if ledger is None else [entry["note"] for entry in ledger.notes(self._key)]

    @property
    def values(self) -> Sequence[Any]:
        """The notes so far, those of earlier passes first."""
        return tuple(self._values)

    def add(self, value: Any) -> None:
        """Adds a note. With a ledger it is durable before the next call of the tool starts.

        Raises:
            ConfigurationError: The value is not JSON or too long, or the call has too many notes.
        """
        try:
            kept = plain_value(value)
            size = len(canonical(kept).encode("utf-8", "replace"))
        except Unrepresentable as error:
            raise ConfigurationError(f"context.note(...): the value is not JSON: {error}") from error
        if size > NOTE_LIMIT_BYTES:
            raise ConfigurationError(
                f"context.note(...): the value has {size:,} bytes as JSON; at most {NOTE_LIMIT_BYTES:,} are kept"
            )
        if len(self._values) >= NOTES_LIMIT:
            raise ConfigurationError(f"context.note(...): a call has at most {NOTES_LIMIT} notes")
        if self._ledger is not None:
            self._ledger.note(self._key, {"note": kept})
        self._values.append(kept)
