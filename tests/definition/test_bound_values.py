"""A value that the host binds must fit its parameter: a preset and a default when bound."""

from __future__ import annotations

import collections
import datetime
import enum
import sqlite3
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import pytest
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

from toolwire import BaseTool, Toolkit, ToolParameter, ToolResult, ToolSpec
from toolwire.vocabulary.errors import BindingError

if TYPE_CHECKING:
    from fractions import Fraction


class Connection:
    """A class of the host's, that no model can give."""


class StandIn:
    """Has the members of another class that a test needs."""


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    x: int


class Row(TypedDict):
    x: int


class Speaker(Protocol):
    def speak(self) -> str: ...


class Index:
    def __index__(self) -> int:
        return 3


def _short(text: str) -> str:
    if len(text) > 3:
        raise ValueError(f"{text} is too long")
    return text


Short = Annotated[str, AfterValidator(_short)]

FITTING: list[tuple[Any, Any]] = [
    *((str, "x"), (int, 5), (int, Level.LOW), (int, Index()), (float, 5), (float, Decimal(1)), (bool, True)),
    *((str | None, None), (Any, object()), (object, 5), (bytes, b"x"), (Path, Path("x")), (Colour, Colour.RED)),
    *((Literal["a", "b"], "a"), (Annotated[int, Field(ge=1)], 1), (list[int], [1]), (list[int], (1, 2))),
    *((Sequence[int], collections.deque([1])), (dict[str, int], {"a": 1}), (dict, types.MappingProxyType({}))),
    *((Mapping[str, int], types.MappingProxyType({"a": 1})), (Iterable[int], [1]), (set[int], {1})),
    *((Point, Point(x=1)), (Point, StandIn()), (Pair, Pair(1)), (Pair, StandIn()), (Row, {"x": 1})),
    *((Connection, Connection()), (Connection, StandIn()), (Connection | None, StandIn())),
    *((list[Connection], [StandIn()]), (Speaker, StandIn()), (Callable[[int], int], abs), (Short, "abc")),
    *((datetime.date, datetime.date(2026, 1, 1)), (datetime.datetime, datetime.datetime(2026, 1, 1))),
    *((sqlite3.Connection, StandIn()), (type[int], bool)),
]
WRONG: list[tuple[Any, Any]] = [
    *((str, 5), (str, None), (str, b"x"), (str, object()), (int, "5"), (int, None), (int, 5.5), (float, "1")),
    *((bool, "yes"), (bytes, "x"), (Path, 3), (Colour, "red"), (Literal["a", "b"], "c")),
    *((Annotated[int, Field(ge=1)], 0), (list[int], "1"), (list[int], ["x"]), (dict[str, int], {"a": "x"})),
    *((dict[str, int], "x"), (Point, {"x": 1}), (Point, "x"), (Pair, {"x": 1}), (Row, {"x": "1"}), (Row, {})),
    *((Connection, "postgres://db"), (Connection, None), (Connection | None, 3), (sqlite3.Connection, {})),
    *((datetime.date, "2026-01-01"), (Callable[[int], int], "abs"), (Short, "abcd")),
]


def tool_with(annotation: Any) -> Any:
    def act(action: str, given: Any) -> str:
        return f"{action} {type(given).__name__}"

    act.__annotations__["given"] = annotation
    return act


@pytest.mark.parametrize(("annotation", "value"), FITTING)
def test_a_default_that_fits_is_bound_and_given_as_it_is(annotation: Any, value: Any) -> None:
    spec = ToolSpec.from_function(tool_with(annotation)).bind("given", default=value)
    assert spec(action="got") == f"got {type(value).__name__}"
    Toolkit("agent").register_tool_function(tool_with(annotation), preset_kwargs={"given": value})


@pytest.mark.parametrize(("annotation", "value"), WRONG)
def test_a_value_that_does_not_fit_is_refused_when_it_is_bound(annotation: Any, value: Any) -> None:
    spec = ToolSpec.from_function(tool_with(annotation))
    with pytest.raises(BindingError):
        spec.bind("given", default=value)
    assert spec.binds == {}
    with pytest.raises(BindingError):
        Toolkit("agent").register_tool_function(tool_with(annotation), preset_kwargs={"given": value})


def test_the_error_names_the_place_and_the_types_and_never_shows_the_value() -> None:
    def act(limit: int, rows: list[Annotated[int, Field(ge=1)]], word: Short) -> None: ...

    spec = ToolSpec.from_function(act)
    messages: list[str] = []
    values: list[Any] = ["s3cret", [1, 0], "s3cret"]
    for param, value in zip(("limit", "rows", "word"), values, strict=True):
        with pytest.raises(BindingError) as refused:
            spec.bind(param, default=value)
        messages.append(str(refused.value))
    told = [message.removeprefix("tool 'act': the default of the parameter ") for message in messages]
    assert [message.removesuffix(". Give one that fits.") for message in told] == [
        "'limit' is of type str and does not fit int: Input should be a valid integer",
        "'rows' is of type list and does not fit list[int]: [1]: Input should be greater than or equal to 1",
        "'word' is of type str and does not fit str",
    ]
    assert messages[0].startswith("tool 'act': the default of the parameter 'limit'")


def test_none_fits_where_it_is_the_functions_own_default() -> None:
    def act(limit: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013 - as authors write it
        return str(limit)

    assert ToolSpec.from_function(act).bind("limit", default=None)() == "None"


def test_a_bound_value_whose_type_cannot_be_checked_is_accepted() -> None:
    def act(unsaid, hidden: Fraction) -> str:  # type: ignore[no-untyped-def]
        return f"{unsaid} {hidden}"

    spec = ToolSpec.from_function(act).bind("unsaid", default=1).bind("hidden", default="x")
    assert spec() == "1 x"


def test_a_value_for_more_is_taken() -> None:
    def act(**more: int) -> str:
        return str(more)

    toolkit = Toolkit("agent")
    toolkit.register_tool_function(act, preset_kwargs={"any": "x"})
    assert toolkit.tools["act"].preset_kwargs == {"any": "x"}


SCHEMA = {
    "type": "object",
    "properties": {"limit": {"$ref": "#/$defs/limit"}, "query": {"type": "string"}},
    "required": ["limit", "query"],
    "$defs": {"limit": {"type": "integer", "minimum": 1}},
}


def by_schema() -> ToolSpec:
    return ToolSpec.from_jsonschema(name="act", input_schema=SCHEMA, function=lambda **given: str(given))


@pytest.mark.parametrize("value", ["5", 0, None, 1.5, [1]])
def test_a_value_that_does_not_fit_the_schema_is_refused(value: Any) -> None:
    with pytest.raises(BindingError) as refused:
        by_schema().bind("limit", default=value)
    assert str(refused.value) == (
        f"tool 'act': the default of the parameter 'limit' is of type {type(value).__name__} and does not fit: "
        "it must be an integer (at least 1). Give one that fits."
    )


def test_the_control_a_value_that_fits_the_schema_and_an_object_are_taken() -> None:
    assert by_schema().bind("limit", default=1)(query="q") == "{'query': 'q', 'limit': 1}"
    by_schema().bind("limit", default=Connection())


class Search(BaseTool):
    def __init__(self) -> None:
        super().__init__("search", "Searches.")

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter("limit", "integer", "How many")]

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=params)


def test_a_preset_of_a_base_tool_must_fit_its_parameter() -> None:
    toolkit = Toolkit("agent")
    with pytest.raises(BindingError, match="'limit' is of type str and does not fit: it must be an integer"):
        toolkit.register_tool_function(Search(), preset_kwargs={"limit": "many"})
    toolkit.register_tool_function(Search(), preset_kwargs={"limit": 3})
