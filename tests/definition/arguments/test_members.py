"""Members of enumerations and literals whose values JSON lacks: read from the form that the schema lists."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.definition.from_function import from_function
from toolwire.definition.shape import Invalid, Validated
from toolwire.definition.tool import Tool, canonical

MOMENT = dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC)


class Several(Enum):
    PAIR = (1, 2)
    NESTED = ((1, "x"), (2, "y"))
    DAY = dt.timedelta(days=1)
    DATE = dt.date(2026, 1, 1)
    MOMENT = MOMENT
    NOON = dt.time(12)
    PRICE = Decimal("1.50")
    TEXT = b"hi"
    BYTES = b"\xff\x00"
    ID = UUID(int=5)
    NAMES = frozenset({"a"})
    COMPLEX = 1j
    WORD = "word"
    NUMBER = 7
    NOTHING = None


class Day(dt.date, Enum):
    FIRST = (2026, 1, 1)


class Twins(Enum):
    DECIMAL = Decimal(1)
    TEXT = "1"


class Level(IntEnum):
    LOW = 1


def tool_of(annotation: Any) -> Tool:
    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    return from_function(take)


def value_of(tool: Tool, given_value: Any) -> Any:
    validated = tool.validate({"it": given_value})
    assert not isinstance(validated, Invalid), validated.lines
    return validated.values["it"]


@pytest.mark.parametrize("member", list(Several), ids=lambda member: member.name)
def test_each_member_is_read_from_its_text_in_the_schema_and_has_that_canonical_form(member: Several) -> None:
    tool = tool_of(Several)
    listed = tool.input_schema["$defs"]["Several"]["enum"][list(Several).index(member)]
    assert value_of(tool, listed) is member
    validated = tool.validate({"it": member})
    assert isinstance(validated, Validated)
    assert canonical(validated) == {"it": listed}


@pytest.mark.parametrize(
    ("given_value", "member"),
    [
        ("PT24H", Several.DAY),
        ("1.5", Several.PRICE),
        (1.5, Several.PRICE),
        ("2026-01-02T04:04:00+01:00", Several.MOMENT),
        ("aGk=", Several.TEXT),
        ("12:00", Several.NOON),
        ("00000000000000000000000000000005", Several.ID),
    ],
)
def test_another_spelling_of_a_members_value_means_this_member(given_value: Any, member: Several) -> None:
    assert value_of(tool_of(Several), given_value) is member


@pytest.mark.parametrize("given_value", ["PAIR", "P3D", 86_400, [2, 1], [1, 2, 3], {"a": 1}, "", "2026-01-02"])
def test_what_means_no_member_is_refused(given_value: Any) -> None:
    assert isinstance(tool_of(Several).validate({"it": given_value}), Invalid)


@pytest.mark.parametrize(
    ("annotation", "given_value", "expected"),
    [
        (list[Several], ["P1D"], [Several.DAY]),
        (dict[Several, int], {"P1D": 1}, {Several.DAY: 1}),
        (set[Several], [[1, 2]], {Several.PAIR}),
        (Several | int, "P1D", Several.DAY),
        (Several | int, 3, 3),
        (Several | None, "P1D", Several.DAY),
        (Literal[Several.DAY], "P1D", Several.DAY),
        (Literal[b"hi"], "hi", b"hi"),
        (Literal[Level.LOW], 1, Level.LOW),
        (Day, "2026-01-01", Day.FIRST),
        (Twins, "1", Twins.TEXT),
    ],
)
def test_members_are_read_wherever_a_type_holds_them(annotation: Any, given_value: Any, expected: Any) -> None:
    assert value_of(tool_of(annotation), given_value) == expected


@given(st.lists(st.one_of(st.tuples(st.integers(), st.text()), st.dates(), st.decimals(allow_nan=False)), min_size=1))
@settings(max_examples=50, deadline=None)
def test_any_listed_value_is_taken(values: list[Any]) -> None:
    made: Any = Enum("made", {f"M{number}": value for number, value in enumerate(values)})
    tool = tool_of(made)
    definitions = tool.input_schema["$defs"]["made"]
    for listed in definitions.get("enum", [definitions.get("const")]):
        assert value_of(tool, listed) in made


def test_two_parameters_share_an_enumeration_whose_values_json_lacks() -> None:
    def plan(start: Several, end: list[Several]) -> None: ...

    read = from_function(plan).validate({"start": "P1D", "end": ["2026-01-01", "word"]})
    assert isinstance(read, Validated)
    assert read.values == {"start": Several.DAY, "end": [Several.DATE, Several.WORD]}
