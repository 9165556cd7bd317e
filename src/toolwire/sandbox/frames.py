"""What a program's process says, frame by frame, once it has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class CallFrame:
    """A tool call; `tool` is a position in the program's tools."""

    ordinal: int
    tool: int
    parallel: bool
    arguments: dict[str, Any]
    size: int = field(default=0, compare=False)
    """Bytes that the arguments took on the way."""
    weight: int = field(default=0, compare=False)
    """Bytes that they take here, about."""
    taken: int = 0
    """Answers that the program had taken by then; 0 if it is not resumable."""
    arguments_digest: str = field(default="", compare=False)
    """Identifies the arguments in another attempt; empty if the program is not resumable."""


@dataclass(slots=True)
class DropFrame:
    """The program no longer waits for the answer to a call."""

    ordinal: int


@dataclass(slots=True)
class PrintFrame:
    """Text that was printed."""

    text: str


@dataclass(slots=True)
class WakeFrame:
    """The program has nothing to do for so many seconds; a later one replaces it."""

    number: int
    seconds: float


@dataclass(slots=True)
class ResultFrame:
    """The program came to its end."""

    has_value: bool
    notice: str
    value: Any


@dataclass(slots=True)
class FailedFrame:
    """The program ended by an exception, in its own words."""

    type: str
    message: str
    traceback: str
    hint: str
    line: int | None


@dataclass(slots=True)
class StoppedFrame:
    """Where the program was when a signal told it to stop; `reason` is `cpu` or `asked`."""

    reason: str
    traceback: str
    line: int | None


@dataclass(slots=True)
class WaitFrame:
    """A resumable program cannot go on without an answer, or until a timer of its own goes off."""

    taken: int
    """Answers that it has taken."""
    now_s: float
    """Its own time."""
    until_s: float | None
    """The time its next timer goes off."""


@dataclass(slots=True)
class UnfitFrame:
    """A resumable program cannot be run: something of what it would depend on cannot be served."""

    what: str


Frame = (
    CallFrame | DropFrame | PrintFrame | WakeFrame | ResultFrame | FailedFrame | StoppedFrame | WaitFrame | UnfitFrame
)
