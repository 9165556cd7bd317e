"""What goes into the sandbox: a program, the tools it may call, and (from `answers.py`) the answers it gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from toolwire.sandbox.answers import DROPPED as DROPPED
from toolwire.sandbox.answers import PARKED as PARKED
from toolwire.sandbox.answers import Answer as Answer
from toolwire.sandbox.answers import AnswerError as AnswerError
from toolwire.sandbox.answers import AnswerFamily as AnswerFamily
from toolwire.sandbox.answers import Parked as Parked
from toolwire.sandbox.answers import Recorded as Recorded
from toolwire.sandbox.answers import Replay as Replay
from toolwire.sandbox.answers import Unanswered as Unanswered
from toolwire.sandbox.answers import arguments_digest as arguments_digest
from toolwire.sandbox.answers import replay_engine as replay_engine
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import MinIsolation
from toolwire.vocabulary.errors import ConfigurationError

ParameterKind = Literal["positional_only", "either", "keyword_only", "var_positional", "var_keyword"]
_MIN_ISOLATIONS: tuple[str, ...] = get_args(MinIsolation)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramParameter:
    """One parameter of a tool, as a program may write it."""

    name: str
    """The tool's own name for it: the key in `ProgramCall.arguments`."""
    program_name: str
    """The name a program writes."""
    kind: ParameterKind
    """How it may be given."""
    required: bool
    """Whether a call without it is a TypeError. A default stays with the tool: what is not given is not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTool:
    """One tool, as a function of the program."""

    name: str
    """The name it is registered under: `ProgramCall.tool`."""
    program_name: str
    """The identifier a program writes."""
    parameters: tuple[ProgramParameter, ...] = ()
    """In the order of the signature."""
    raises: tuple[str, ...] = ()
    """Exceptions that its documentation lists, so that a program can name them."""
    signature: str = ""
    """Its signature for messages, as `search(query: str, limit: int = 10)`; made from the parameters when empty."""
    docstring: str = ""
    """Its `__doc__` in the program, which is the signature when this is empty."""


@dataclass(slots=True, kw_only=True)
class ProgramCall:
    """A tool call that a running program made. Not frozen, as `Answer`: making one would take twice as long."""

    ordinal: int
    """1 for the first call of the program, then one more each time, in order of issue."""
    tool: str
    """The name the tool is registered under."""
    arguments: dict[str, Any]
    """Real objects by parameter name; `*rest` is a list under its name, `**more` a dict under its name."""
    parallel: bool
    """Made in async code: more calls may come before this one is answered."""
    arguments_digest: str = ""
    """What a later attempt's call of this ordinal must have too; empty for a program that is not resumable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Python that a model wrote, and what it may use."""

    source: str
    """The source text."""
    tools: tuple[ProgramTool, ...] = ()
    """The tools it can call; the names a program writes are distinct."""
    limits: Limits = field(default_factory=Limits)
    """What it may use of this machine."""
    source_checks: bool = True
    """Refuse what cannot work before anything runs, with a message that helps. Never what keeps the host safe."""
    min_isolation: MinIsolation = "kernel"
    """Without walls as strong as these, nothing runs. `process` is for programs that are as trusted as the host."""
    replay: Replay | None = None
    """Makes it resumable: clocks and randomness come from here. None: they are the real ones, and a call that waits
    for a person is an error to the program."""

    def __post_init__(self) -> None:
        checked_isolation(self.min_isolation)


def checked_isolation(least: MinIsolation) -> MinIsolation:
    """The same level.

    Raises:
        ConfigurationError: it is none that can be asked for.
    """
    if least not in _MIN_ISOLATIONS:
        raise ConfigurationError(f"min_isolation={least!r}: give one of {', '.join(map(repr, _MIN_ISOLATIONS))}")
    return least
