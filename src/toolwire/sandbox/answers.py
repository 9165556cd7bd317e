"""What a program gets for its calls, and what is kept of them, so that it can be run again to where it was."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from toolwire.sandbox.wire import SCALARS, dump_sorted, kind_of
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.values import TAG, tag

REPLAY_VERSION = 1
"""Raised when the same program, record and start may behave otherwise than before."""
AnswerFamily = Literal["tool", "denied", "timeout", "limit", "arguments", "unavailable", "internal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerError:
    """Why a call has no value; the program sees it as an exception."""

    type_name: str
    """Name of the tool's exception; it counts for the family `tool` only."""
    message: str
    """What the program reads: never a traceback of the host."""
    family: AnswerFamily = "tool"
    """Which exception it becomes: `tool` the tool's own, by name; the others a documented class under ToolError."""


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a program gets for a call: a value, or an error."""

    value: Any = None
    """The value; it counts when `error` is None."""
    error: AnswerError | None = None
    """Why there is none."""


class Unanswered(Enum):
    """What stands in the place of an answer."""

    PARKED = "parked"
    DROPPED = "dropped"


PARKED = Unanswered.PARKED
"""The answer to a call that waits for a person. The program runs on until nothing else is left to do."""
DROPPED = Unanswered.DROPPED
"""In a record: the program gave the call up before its answer came."""
Parked = Literal[Unanswered.PARKED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One call that an earlier attempt of the same program made."""

    ordinal: int
    """Position among the program's calls, from 1, in order of issue."""
    tool: str
    """The name the tool is registered under."""
    arguments_digest: str
    """`ProgramCall.arguments_digest` of that call."""
    answer: Answer | Unanswered
    """What the program got. PARKED: the call is made again, down the normal road. DROPPED: it is not."""
    completed: int = 0
    """Place in the order of completion, from 1; 0 without an answer."""
    at: float = 0.0
    """Seconds since the epoch that the program's clocks showed from then on."""
    elapsed_s: float = 0.0
    """Seconds that the program had waited by then: the time its timers go by."""
    after: int | None = None
    """Answers that the program had taken when it made the call; None when it is not to be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What makes a program resumable: everything it depends on that is not in its source.

    Raises:
        ConfigurationError: the recorded calls are not all that were made, or their order of completion has holes.
    """

    seed: int
    """Of everything random: `random`, unseeded generators, `os.urandom`."""
    started_at: float
    """Seconds since the epoch at which its clocks stand until the first answer."""
    recorded: tuple[Recorded, ...] = ()
    """Every call that earlier attempts made, those without an answer too: as `ProgramResult.recorded`."""
    on_recorded: Callable[[Recorded], None] | None = field(default=None, compare=False, repr=False)
    """Told of each call of this attempt once it is answered, parked or dropped, before the program sees anything of
    it, in order of completion; a later record of a call takes the place of an earlier one. Called under a lock, from
    any thread, and with `run_async` on the loop. What it raises ends the program and is raised."""

    def __post_init__(self) -> None:
        ordinals = sorted(one.ordinal for one in self.recorded)
        if ordinals != list(range(1, len(ordinals) + 1)):
            raise ConfigurationError(
                f"Replay.recorded has the calls {ordinals}: give every call from 1 on, with PARKED for one that waits"
            )
        answered = sorted(one.completed for one in self.recorded if isinstance(one.answer, Answer))
        if answered != list(range(1, len(answered) + 1)):
            raise ConfigurationError(f"Replay.recorded was completed in the order {answered}: count from 1 on")


def arguments_digest(arguments: Mapping[str, Any]) -> str:
    """`sha256:` and a hash of the arguments, types that JSON lacks included: 1, 1.0 and Decimal("1") differ.

    As `digest_of_tagged(tag(arguments))`, for values of any depth that a program can send.
    """
    value: Any = dict(arguments)
    # Most arguments are the same with tags.
    if TAG in value or not all(kind_of(item) in SCALARS for item in value.values()):
        value = tag(value)
    try:
        text = dump_sorted(value)
    except ValueError:  # NaN and the like
        text = dump_sorted(tag(value))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _engine() -> str:
    python = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
    zone = f"/{','.join(time.tzname)}" if time.timezone or time.daylight else ""
    return f"{python}/{REPLAY_VERSION}{zone}"


replay_engine = _engine()
"""What a record can be replayed by: another Python, another of our versions or another time zone gives other values."""
