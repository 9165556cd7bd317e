"""Where results are kept whole that are too long for a model."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptText:
    """A result's text."""

    text: str
    """All of it."""
    page_bytes: int
    """Bytes of one page: as much as a model is shown of one result."""
    labels: frozenset[Label] = frozenset()
    """What the result is: who reads on reads that."""


class Spill(Protocol):
    """Keeps texts under ids that nobody can guess, each for the caller it was made for."""

    def keep(self, kept: KeptText, caller: Caller, /) -> Future[str | None]:
        """Takes a text and gives its id; None when it cannot be kept. Any thread may wait for the future."""
        ...

    def find(self, id: str, caller: Caller, /) -> KeptText | None:
        """The text; None when there is none of that id for that caller, or no more. Called from a worker thread."""
        ...
