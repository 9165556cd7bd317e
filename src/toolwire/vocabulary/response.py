"""One chunk of a running call's output."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass, field
from typing import Any

from toolwire.vocabulary.content import ContentBlock

_SUFFIX_BYTES = 4


class _Ids:
    """Time first, so that ids sort by it; then a counter, for a clock may give one time twice; then the process."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.process = os.urandom(_SUFFIX_BYTES).hex()
        self.counter = itertools.count(1)

    def new(self) -> str:
        return f"{time.time_ns():016x}-{next(self.counter):08x}-{self.process}"


_IDS = _Ids()
# A forked child that went on with its parent's counter would give two responses one id.
os.register_at_fork(after_in_child=_IDS.renew)


@dataclass(slots=True)
class ToolResponse:
    """One chunk of what a call gives: a tool may return or yield them, and who reads a call gets them.

    A tool's responses are cumulative: each holds all that there is so far, and the last one counts. One with
    `is_cumulative=False` adds to what came before it.
    """

    content: list[ContentBlock]
    """Blocks for the model."""
    metadata: dict[str, Any] | None = None
    """Whatever the tool wants to add; not shown to a model."""
    stream: bool = False
    """Whether more chunks may come before or after this one: the tool says so."""
    is_last: bool = True
    """Whether nothing comes after it. Exactly one chunk that a reader gets, the last one, has it."""
    is_interrupted: bool = False
    """Whether the call was interrupted: what it had given by then is here."""
    id: str = field(default_factory=_IDS.new)
    """Unlike any other response's; ids sort by the time they were made."""
    is_cumulative: bool = True
    """Whether `content` is all that there is so far; else it is what is new."""
