"""The frames that a program's process sends, after they have been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class CallFrame:
    """A tool call; `tool` is an index into the program's tools."""

    ordinal: int
    tool: int
    parallel: bool
    arguments: dict[str, Any]
    size: int = field(default=0, compare=False)
    """Bytes of the arguments in the frame."""
    weight: int = field(default=0, compare=False)
    """Estimated bytes of the arguments in the host's memory."""
    taken: int = 0
    """Number of answers that the program had taken by then; 0 if it is not resumable."""
    arguments_digest: str = field(default="", compare=False)
    """Identifies the arguments in another attempt; empty if the program is not resumable."""
    is_withdrawn: bool = False
    """True if the program gave the call up before it sent it, so that the call must not be made."""
    line: int = 0
    """The line that made the call, as the program's process says; 0 if it is not known or not resumable."""


@dataclass(slots=True)
class DropFrame:
    """The program no longer waits for the answer to a call."""

    ordinal: int
    is_left: bool = False
    """True if the program came to its end meanwhile; False if it gave the call up itself."""


@dataclass(slots=True)
class PrintFrame:
    """Printed text."""

    text: str


@dataclass(slots=True)
class WakeFrame:
    """The program has nothing to do for `seconds`; a later frame replaces this one."""

    number: int
    seconds: float


@dataclass(slots=True)
class ResultFrame:
    """The program ran to its end."""

    has_value: bool
    notice: str
    value: Any


@dataclass(slots=True)
class FailedFrame:
    """The program ended by an exception, as its process describes it."""

    type: str
    message: str
    traceback: str
    hint: str
    line: int | None


@dataclass(slots=True)
class StoppedFrame:
    """The program's place when a signal told it to stop; `reason` is `cpu` or `asked`."""

    reason: str
    traceback: str
    line: int | None


@dataclass(slots=True)
class WaitFrame:
    """A resumable program cannot go on without an answer, or until one of its timers goes off."""

    taken: int
    """Number of answers that it has taken."""
    now_s: float
    """The program's own time."""
    until_s: float | None
    """The program's time at which its next timer goes off; None without a timer."""


@dataclass(slots=True)
class UnfitFrame:
    """A resumable program cannot be run, because a value it would depend on cannot be served from the record."""

    what: str


@dataclass(slots=True)
class VariablesFrame:
    """The variables of a program at its end, as its process describes them."""

    values: dict[str, str]
    """Maps each name to the text of its value, as the host writes it."""
    functions: dict[str, int]
    """Maps each name of a function to the line of its `def`."""
    left_out: dict[str, str]
    """Maps each name that is not kept to the reason."""


Frame = (
    CallFrame
    | DropFrame
    | PrintFrame
    | WakeFrame
    | ResultFrame
    | FailedFrame
    | StoppedFrame
    | WaitFrame
    | UnfitFrame
    | VariablesFrame
)
