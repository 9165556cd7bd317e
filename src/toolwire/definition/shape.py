"""The data between a tool and its validator: parameters, validated arguments, and problems of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

ParameterKind = Literal["positional_only", "either", "keyword_only", "var_positional", "var_keyword"]
ProblemKind = Literal["missing", "unexpected", "hidden", "invalid", "no_state", "refused"]


class Missing:
    """The type of `MISSING`: no default, in places where None would be a default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __copy__(self) -> Missing:
        return self

    def __deepcopy__(self, _memo: object) -> Missing:
        return self


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    """The name in the arguments that a model gives."""
    program_name: str
    """The name that a program writes. It differs if `name` is not an identifier, or looks like another parameter's."""
    kind: ParameterKind
    """The way in which Python passes it. A model gives `*rest` as an array and `**more` as an object."""
    required: bool
    """True if a call without the parameter is refused."""
    default: Any
    """The object used if it is left out. MISSING without a default, or if a factory makes it."""
    schema: dict[str, Any]
    """Its JSON schema. `$ref` points into the tool's `input_schema`. Empty for a hidden parameter."""
    description: str
    """The author's description; empty without one."""
    annotation: str
    """Its type as Python text, such as `list[dict]`; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentProblem:
    """One problem of a call's arguments."""

    path: str
    """The place, such as `limit` or `rows[0].name`. Empty for the call as a whole."""
    kind: ProblemKind
    """`hidden`: the model must not give it.

    `no_state`: the host has no value for a bound parameter. `refused`: the tool's own check refused the call, and the
    message is its text.
    """
    message: str
    """One sentence for a model: the mistake, the expected value and the given value."""
    place: tuple[str | int, ...] = field(default=(), repr=False, compare=False)
    """The steps of the path, if there are proposals."""
    proposals: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """Values that may be meant. The message does not name them: `add_proposals` tells the first one that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """Arguments that cannot be used, with all of their problems."""

    problems: tuple[ArgumentProblem, ...]
    """The problems, never empty."""
    more: int = 0
    """Number of further problems that are not listed."""
    is_partial: bool = False
    """True if the check ended before it had found all problems."""

    @property
    def text(self) -> str:
        """The problems, one per line."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each problem, and one with the number of further problems."""
        told = tuple(problem.message for problem in self.problems)
        plural = "problems are" if self.more > 1 else "problem is"
        if self.more:
            told = (*told, f"{self.more:,} more {plural} not shown.")
        return (*told, "There may be others: the check ended early.") if self.is_partial else told


@dataclass(slots=True)
class Validated:
    """Arguments that may be used. It is not frozen, because one is built on every call."""

    values: dict[str, Any]
    """Visible arguments by parameter name, as real objects with defaults.

    `*rest` is a tuple and `**more` a dict.
    """
    bound: dict[str, Any]
    """Bound arguments by parameter name: the same objects that state holds."""
    form: Form = field(repr=False, compare=False)


Spread = Callable[[Callable[..., Any], dict[str, Any]], Any]
"""Calls a function with values by name, if `function(**values)` does not work for it."""


class Form(Protocol):
    """A tool's arguments, compiled for one set of hidden parameters."""

    @property
    def hidden(self) -> frozenset[str]:
        """The parameters that are left out."""
        ...

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the visible arguments: an object without additional properties."""
        ...

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """Returns the arguments as real objects with defaults filled in, or all problems."""
        ...

    def is_default(self, name: str, value: Any) -> bool:
        """True if the value equals the parameter's default."""
        ...

    def is_certain(self, name: str) -> bool:
        """True if validating the JSON form of any value of the parameter gives the same value again."""
        ...


OutputCheck = Callable[[Any], str | None]
"""Takes the data of a result. Returns sentences on each misfit with the output schema, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """The output of a tool."""

    schema: dict[str, Any] | None
    """The JSON schema of an object, or None if the tool declares nothing."""
    is_wrapped: bool
    """True if the tool returns another type, which becomes `result` in that object."""
    annotation: str
    """The return type as Python text; empty without one."""
    check: OutputCheck | None = None
    """Checks the data of an outside tool's results; None without an output schema."""


class Shape(Protocol):
    """The parameters and the output of a tool, before any binding."""

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """Every parameter that can be given or bound, in order."""
        ...

    @property
    def never_visible(self) -> Mapping[str, str]:
        """Parameters that no model may give and that cannot be bound, each with the reason."""
        ...

    @property
    def spread(self) -> Spread | None:
        """The way to call the function; None for `function(**values)`."""
        ...

    def misfit(self, name: str, value: Any) -> str | None:
        """Says why a bound value does not fit its parameter, without showing it. None: it fits, or cannot be told."""
        ...

    def takes(self, name: str) -> bool:
        """True if the function accepts a keyword of that name."""
        ...

    def compile(self, hidden: frozenset[str]) -> Form:
        """Compiles the form that leaves out these parameters.

        Raises:
            DefinitionError: A visible parameter cannot be described to a model.
        """
        ...

    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns all parameters in order. The schema of a hidden one is empty."""
        ...

    def output(self) -> OutputShape:
        """Returns the output that the author declared."""
        ...


class StructuredValues(dict[str, Any]):
    """Validated arguments by name, and the model that a tool's extension built from them."""

    __slots__ = ("structured",)

    def __init__(self, values: dict[str, Any], structured: Any) -> None:
        super().__init__(values)
        self.structured = structured
        """The validated model."""
