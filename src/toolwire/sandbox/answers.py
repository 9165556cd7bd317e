"""Answers to a program's calls, and the records of them with which a later attempt replays the program."""

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
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import TAG, tag

REPLAY_VERSION = 1
"""Raised when the same program, record and start may behave differently than in the version before."""
AnswerFamily = Literal["tool", "denied", "timeout", "limit", "arguments", "unavailable", "internal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerError:
    """The reason why a call has no value; the program sees it as an exception.

    Attributes:
        type_name: Name of the tool's exception; used for the family `tool` only.
        message: The text for the program; it never holds a traceback of the host.
        family: Which exception the program sees: `tool` is the tool's own, by name; the others are documented
            subclasses of ToolError.
    """

    type_name: str
    message: str
    family: AnswerFamily = "tool"


@dataclass(slots=True, kw_only=True)
class Answer:
    """The answer to a program's call: a value, or an error.

    Attributes:
        value: The value; used when `error` is None.
        error: The error; None when the call has a value.
        ends: Ends the program at this call, with this text as its notice. It never reads the answer, and its status is
            `finished`. Empty: it goes on.
    """

    value: Any = None
    error: AnswerError | None = None
    ends: str = ""


class Unanswered(Enum):
    """Stands in place of an answer."""

    PARKED = "parked"
    DROPPED = "dropped"


PARKED = Unanswered.PARKED
"""The answer to a call that waits for a person. The program runs on until only such calls can bring it further."""
DROPPED = Unanswered.DROPPED
"""Used in a record: the program gave the call up before its answer came."""
Parked = Literal[Unanswered.PARKED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One call that an earlier attempt of the same program made.

    Attributes:
        ordinal: Position among the program's calls, from 1, in order of issue.
        tool: The name under which the tool is registered.
        arguments_digest: `ProgramCall.arguments_digest` of that call.
        answer: The answer that the program got. PARKED: the call is made again by the normal path. DROPPED: it is not
            made again.
        completed: Position in the order of completion, from 1; 0 without an answer.
        at: Time of the answer, in seconds since the epoch; the program's clocks show it from then on.
        elapsed_s: Seconds that the program had waited by then; its timers use this time.
        after: Number of answers that the program had taken when it made the call; None: not compared.
    """

    ordinal: int
    tool: str
    arguments_digest: str
    answer: Answer | Unanswered
    completed: int = 0
    at: float = 0.0
    elapsed_s: float = 0.0
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Makes a program resumable: holds everything outside of the source on which the program depends.

    Attributes:
        seed: Seed for everything random: `random`, unseeded generators, `os.urandom`.
        started_at: Time that the program's clocks show until the first answer, in seconds since the epoch.
        recorded: Every call of earlier attempts, those without an answer included; pass `ProgramResult.recorded`.
        on_recorded: Called with the record of each call once it is answered, parked or dropped, before the program sees
            the outcome. Calls come in order of completion; a later record of a call replaces an earlier one. Called
            under a lock, from any thread, and for a call that is awaited on the loop. An exception that it raises ends
            the program and is raised by the run.

    Raises:
        ConfigurationError: a call is missing from the recorded calls, or their order of completion has gaps.
    """

    seed: int
    started_at: float
    recorded: tuple[Recorded, ...] = ()
    on_recorded: Callable[[Recorded], None] | None = field(default=None, compare=False, repr=False)

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
    """Returns `sha256:` and a hash of the arguments.

    Equal to `digest_of_tagged(tag(arguments))`, for values of any depth that a program can send. Types that JSON lacks
    count: 1, 1.0 and Decimal("1") differ.
    """
    value: Any = dict(arguments)
    # Most arguments are the same with and without tags.
    if TAG in value or not all(kind_of(item) in SCALARS for item in value.values()):
        value = tag(value)
    try:
        text = dump_sorted(value)
    except ValueError:  # NaN or an infinity
        text = dump_sorted(tag(value))
    return "sha256:" + hashlib.sha256(utf8_bytes(text)).hexdigest()


def _engine() -> str:
    python = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
    zone = f"/{','.join(time.tzname)}" if time.timezone or time.daylight else ""
    return f"{python}/{REPLAY_VERSION}{zone}"


replay_engine = _engine()
"""The environment that a record belongs to: another Python, replay version or time zone gives other values."""
