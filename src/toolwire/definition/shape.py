"""What passes between a tool and its validator: parameters, validated arguments, and what was wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

ParameterKind = Literal["positional_only", "either", "keyword_only", "var_positional", "var_keyword"]
ProblemKind = Literal["missing", "unexpected", "hidden", "invalid", "no_state", "refused"]


class Missing:
    """The type of `MISSING`: no default, where None would be one."""

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
    """As the model gives it: the key in the arguments."""
    kind: ParameterKind
    """How Python's own call passes it. A model gives `*rest` as an array and `**more` as an object."""
    required: bool
    """Whether a call without it is refused."""
    default: Any
    """The object used when it is left out; MISSING when there is none, or when a factory makes it."""
    schema: dict[str, Any]
    """Its JSON schema; `$ref` points into the tool's `input_schema`. Empty for a hidden parameter."""
    description: str
    """What its author says of it; empty when nothing."""
    annotation: str
    """Its type as a reader of Python wants it, `list[dict]`; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentProblem:
    """One thing that is wrong with a call's arguments."""

    path: str
    """Where, as `limit` or `rows[0].name`; empty when it is about the call as a whole."""
    kind: ProblemKind
    """`hidden`: not the model's to give. `no_state`: the host has no value for a bound parameter. `refused`: the tool's
    own check refused the call, and the message is its text."""
    message: str
    """One sentence for a model: what was wrong, what is expected, what was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """Arguments that cannot be used, with everything that is wrong with them."""

    problems: tuple[ArgumentProblem, ...]
    """Never empty."""
    more: int = 0
    """How many others there are, which are not told."""
    is_partial: bool = False
    """Whether the check ended before it had found all."""

    @property
    def text(self) -> str:
        """The problems, one a line."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each problem, and one that says how many are not told."""
        told = tuple(problem.message for problem in self.problems)
        plural = "problems are" if self.more > 1 else "problem is"
        if self.more:
            told = (*told, f"{self.more:,} more {plural} not shown.")
        return (*told, "There may be others: the check ended early.") if self.is_partial else told


class Validated:
    """Arguments that may be used. A plain class: one is built on every call."""

    __slots__ = ("bound", "form", "values")

    def __init__(self, values: dict[str, Any], bound: dict[str, Any], form: Form) -> None:
        self.values = values
        """Visible arguments by parameter name: real objects, defaults filled in; `*rest` a tuple, `**more` a dict."""
        self.bound = bound
        """Bound arguments by parameter name: the very objects that state holds."""
        self.form = form

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Validated):
            return NotImplemented
        return self.values == other.values and self.bound == other.bound

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # mutable values

    def __repr__(self) -> str:
        return f"Validated(values={self.values!r}, bound={self.bound!r})"


Spread = Callable[[Callable[..., Any], dict[str, Any]], Any]
"""Calls a function with values by name, where `function(**values)` is not how it can be called."""


class Form(Protocol):
    """A tool's arguments, compiled for one set of hidden parameters."""

    @property
    def hidden(self) -> frozenset[str]:
        """The parameters that are left out of it."""
        ...

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the visible arguments: an object that allows nothing else."""
        ...

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """The arguments as real objects with defaults filled in, or everything that is wrong with them."""
        ...

    def is_default(self, name: str, value: Any) -> bool:
        """Whether the value is the same as the parameter's default."""
        ...

    def is_certain(self, name: str) -> bool:
        """Whether every value of the parameter is read again, the same, from its JSON form."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a tool gives."""

    schema: dict[str, Any] | None
    """JSON schema of an object, or None when nothing is promised."""
    is_wrapped: bool
    """Whether the tool gives something else, which stands under `result` in that object."""
    annotation: str
    """The type as a reader of Python wants it; empty when there is none."""


class Shape(Protocol):
    """What a tool takes and gives, before anything is bound."""

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """Every parameter that can be given or bound, in order."""
        ...

    @property
    def never_visible(self) -> Mapping[str, str]:
        """Parameters that no model may give and no binding can reach, each with the reason."""
        ...

    @property
    def spread(self) -> Spread | None:
        """How the function is called; None for `function(**values)`."""
        ...

    def takes(self, name: str) -> bool:
        """Whether the function can be given a keyword of that name."""
        ...

    def compile(self, hidden: frozenset[str]) -> Form:
        """The form that leaves these parameters out.

        Raises:
            DefinitionError: a parameter that stays visible cannot be described to a model.
        """
        ...

    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """All parameters in order; the schema of one that the form leaves out is empty."""
        ...

    def output(self) -> Output:
        """What the tool gives, as far as its author said."""
        ...
