"""Storage for results that are too long for a model."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptText:
    """The text of a result."""

    text: str
    """The whole text."""
    page_bytes: int
    """Bytes per page, equal to the size of a result that a model is shown."""
    labels: frozenset[Label] = frozenset()
    """The labels of the result. Every reader of a page takes them on."""


class Spill(Protocol):
    """Keeps texts under ids that cannot be guessed, each for the caller that it was made for."""

    def keep(self, kept: KeptText, caller: Caller, /) -> Future[str | None]:
        """Keeps a text and returns a future of its id; the id is None if the text cannot be kept.

        Any thread may wait for it.
        """
        ...

    def find(self, id: str, caller: Caller, /) -> KeptText | None:
        """Returns the text; None if this caller has no such text, or if it was dropped. Called from a worker thread."""
        ...
