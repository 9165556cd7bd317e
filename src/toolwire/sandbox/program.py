"""The input of the sandbox: a program and the tools that it may call. Its answers are in `answers.py`."""

from __future__ import annotations

from collections.abc import Iterable
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
from toolwire.vocabulary.calls import ASYNCIO, PROGRAM_MODULES
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.variables import Variables, source_of

ParameterKind = Literal["positional_only", "either", "keyword_only", "var_positional", "var_keyword"]
_MIN_ISOLATIONS: tuple[str, ...] = get_args(MinIsolation)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramParameter:
    """One parameter of a tool, as a program may write it.

    Attributes:
        name: The tool's own name for it: the key in `ProgramCall.arguments`.
        program_name: The name that a program writes.
        kind: How the parameter may be passed.
        required: True if a call without it is a TypeError. Defaults stay with the tool: an omitted argument is not
            sent.
    """

    name: str
    program_name: str
    kind: ParameterKind
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTool:
    """One tool, as a function of the program.

    Attributes:
        name: The name under which it is registered: `ProgramCall.tool`.
        program_name: The identifier that a program writes.
        parameters: The parameters in the order of the signature.
        raises: Exceptions that its documentation lists, so that a program can name them.
        signature: Its signature for messages, as `search(query: str, limit: int = 10)`; made from the parameters when
            empty.
        docstring: Its `__doc__` in the program; when this is empty, `__doc__` is the signature.
        path: A dotted name that a program may write too, as `country_info.capital`; empty without one.
        is_nameable: False for a tool that no hint and no list names, such as one that is denied. A program may call it.
    """

    name: str
    program_name: str
    parameters: tuple[ProgramParameter, ...] = ()
    raises: tuple[str, ...] = ()
    signature: str = ""
    docstring: str = ""
    path: str = ""
    is_nameable: bool = True


@dataclass(slots=True, kw_only=True)
class ProgramCall:
    """A tool call that a running program made. Not frozen, as `Answer`: a frozen one takes twice as long to make.

    Attributes:
        ordinal: Position among the program's calls, from 1, in order of issue.
        tool: The name under which the tool is registered.
        arguments: Real objects by parameter name; `*rest` is a list under its name, `**more` a dict under its name.
        parallel: True if async code made it: more calls may come before this one is answered.
        arguments_digest: Hash of the arguments; a later attempt's call with this ordinal must have the same. Empty for
            a program that is not resumable.
        line: The line that made the call, from 1, as the program's process says. 0 if that is not known, or if the
            program is not resumable.
    """

    ordinal: int
    tool: str
    arguments: dict[str, Any]
    parallel: bool
    arguments_digest: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Python that a model wrote, and the tools and resources that it may use.

    Attributes:
        source: The source text.
        tools: The tools it can call; the names that a program writes must be distinct.
        limits: Limits on its use of this machine.
        source_checks: Refuse code that cannot work, with a helpful message, before anything runs. The host's safety
            never depends on it.
        min_isolation: The least isolation with which it may run. `process` is for programs that are as trusted as the
            host.
        modules: The modules it may import, from `require_modules`. They help the model and are no wall.
        variables: The variables and functions of earlier programs, which it has from its start; the result then tells
            what it changed. Each source is of one `def`. None: no variables are kept. A runner that ignores them keeps
            none.
        replay: Makes the program resumable and sets its clocks and randomness. None: they are the real ones, and a call
            that waits for a person is an error to the program.
    """

    source: str
    tools: tuple[ProgramTool, ...] = ()
    limits: Limits = field(default_factory=Limits)
    source_checks: bool = True
    min_isolation: MinIsolation = "kernel"
    modules: tuple[str, ...] = PROGRAM_MODULES
    variables: Variables | None = None
    replay: Replay | None = None

    def __post_init__(self) -> None:
        require_isolation(self.min_isolation)

    @property
    def whole_source(self) -> str:
        """The source text, with the functions of earlier programs after it."""
        functions = map(source_of, (self.variables or {}).values())
        return "\n".join([self.source, *(source for source in functions if source is not None)])


def require_isolation(least: MinIsolation) -> MinIsolation:
    """Returns the level unchanged.

    Raises:
        ConfigurationError: it is not a level that can be asked for.
    """
    if least not in _MIN_ISOLATIONS:
        raise ConfigurationError(f"min_isolation={least!r}: give one of {', '.join(map(repr, _MIN_ISOLATIONS))}")
    return least


def require_modules(names: Iterable[str] | None) -> tuple[str, ...]:
    """The modules that programs may use, in their usual order; None means all. `asyncio` always stays.

    Raises:
        ConfigurationError: The names are one text, or one of them is not among `PROGRAM_MODULES`.
    """
    if names is None:
        return PROGRAM_MODULES
    if isinstance(names, str):
        raise ConfigurationError(f"modules={names!r}: give a list of names, such as ['math', 'json']")
    wanted = {ASYNCIO, *names}
    if unknown := sorted(wanted.difference(PROGRAM_MODULES)):
        raise ConfigurationError(
            f"modules: a program cannot use {', '.join(map(repr, unknown))}; choose among {', '.join(PROGRAM_MODULES)}"
        )
    return tuple(name for name in PROGRAM_MODULES if name in wanted)
