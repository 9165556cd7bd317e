"""Values as a model or a log sees them."""

from __future__ import annotations

import datetime
import math
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from tests.vocabulary.strategies import json_values, unhurried, with_types
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.values import DEPTH_LIMIT, plain_value


class Colour(Enum):
    RED = "red"
    BOTH = ("red", 1)


class Level(IntEnum):
    HIGH = 3


class Mode(StrEnum):
    FAST = "fast"


class Size(NamedTuple):
    width: int
    height: int


@dataclass
class Point:
    x: int
    when: datetime.date


class City(BaseModel):
    name: str
    seen: set[int]


class Fraction(float):
    """As numpy's float64 is."""


class Name(str):
    """As many libraries' markup classes are."""

    __slots__ = ()


UTC = datetime.UTC
NESTED = {"a": [1, {"b": (Decimal("2.50"), {3})}]}

PLAIN: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (0, 0),
    (-7, -7),
    (1.5, 1.5),
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
    (Fraction(2.5), 2.5),
    (Fraction("inf"), "Infinity"),
    ("text", "text"),
    ("\ud800", "\ud800"),
    (Name("marked"), "marked"),
    (b"\x00\xff", "AP8="),
    (bytearray(b"ab"), "YWI="),
    (memoryview(b"abcd")[::2], "YWM="),
    (datetime.datetime(2024, 5, 1, 12, 30, tzinfo=UTC), "2024-05-01T12:30:00+00:00"),
    (datetime.date(2024, 5, 1), "2024-05-01"),
    (datetime.time(12, 30), "12:30:00"),
    (datetime.timedelta(0), "PT0S"),
    (datetime.timedelta(days=1, seconds=2, microseconds=500_000), "P1DT2.5S"),
    (datetime.timedelta(days=-1), "-P1D"),
    (Decimal("2.50"), "2.50"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Path("/tmp/x"), "/tmp/x"),
    (PurePosixPath("a/b"), "a/b"),
    (Colour.RED, "red"),
    (Colour.BOTH, ["red", 1]),
    (Level.HIGH, 3),
    (Mode.FAST, "fast"),
    ((1, "a"), [1, "a"]),
    (Size(2, 3), [2, 3]),
    ([], []),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", "a"}), ["a", "b"]),
    ({}, {}),
    ({"$t": "bytes", "v": "x"}, {"$t": "bytes", "v": "x"}),
    (OrderedDict(a=1), {"a": 1}),
    (MappingProxyType({"a": (1,)}), {"a": [1]}),
    ({1: "a", None: "b", 2.5: "d"}, {"1": "a", "null": "b", "2.5": "d"}),
    ({datetime.date(2024, 5, 1): 1, Decimal("1.0"): 2}, {"2024-05-01": 1, "1.0": 2}),
    ({Colour.RED: 1, Level.HIGH: 2, Path("x"): 3, UUID(int=2): 4}, {"red": 1, "3": 2, "x": 3, str(UUID(int=2)): 4}),
    (Point(1, datetime.date(2024, 5, 1)), {"x": 1, "when": "2024-05-01"}),
    (City(name="Rome", seen={2, 1}), {"name": "Rome", "seen": [1, 2]}),
    (NESTED, {"a": [1, {"b": ["2.50", [3]]}]}),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=lambda value: type(value).__name__)
def test_a_value_is_shown_in_json_types(value: Any, expected: Any) -> None:
    assert with_types(plain_value(value)) == with_types(expected)


class Raising(BaseModel):
    name: str = "x"

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise KeyError("secret")


class Endless(BaseModel):
    def model_dump(self, **_: Any) -> Any:
        return self


@dataclass
class Unfinished:
    x: int

    def __init__(self) -> None:
        pass


def nested(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


HUGE = 1 << 14000
TOO_DEEP = "nested deeper than 64 levels, or holding itself cannot be written as JSON at "
UNPLAIN: list[tuple[Any, str]] = [
    (object(), "a value of type object cannot be written as JSON"),
    ([1, {"rows": [object()]}], "a value of type object cannot be written as JSON at [1].rows[0]"),
    ({"a": {"b": 1j}}, "a value of type complex cannot be written as JSON at a.b"),
    (Point, "a value of type type cannot be written as JSON"),
    ({(1, 2): 3}, "a key of type tuple cannot be written as JSON"),
    ({"a": {b"k": 3}}, "a key of type bytes cannot be written as JSON at a"),
    ({1: 1, "1": 2}, "two keys that both become '1' cannot be written as JSON"),
    ([HUGE], "an integer of more than 4,200 digits cannot be written as JSON at [0]"),
    (-HUGE, "an integer of more than 4,200 digits cannot be written as JSON"),
    ({HUGE: 1}, "an integer of more than 4,200 digits cannot be written as JSON"),
    ({HUGE}, "an integer of more than 4,200 digits cannot be written as JSON at [0]"),
    ({"m": Raising()}, "a value of type Raising (its own code raised KeyError) cannot be written as JSON at m"),
    (Endless(), "a value of type Endless (its own code raised RecursionError) cannot be written as JSON"),
    (Unfinished(), "a value of type Unfinished (its own code raised AttributeError) cannot be written as JSON"),
    (nested(DEPTH_LIMIT + 1), TOO_DEEP + "[0]" * DEPTH_LIMIT),
]


@pytest.mark.parametrize(("value", "message"), UNPLAIN, ids=lambda value: type(value).__name__)
def test_a_value_without_a_json_form_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(Unrepresentable) as caught:
        plain_value(value)
    assert str(caught.value) == message


def test_the_largest_integer_that_python_prints_is_kept_whole() -> None:
    assert plain_value([HUGE - 1, 1 - HUGE]) == [HUGE - 1, 1 - HUGE]
    assert len(show(HUGE - 1)) == 4215


@pytest.mark.parametrize("leaf", [1, "x", math.nan, b"x", Decimal(1), Colour.RED, Path("x"), Name("x")], ids=repr)
def test_a_leaf_may_stand_inside_of_the_deepest_level(leaf: Any) -> None:
    assert plain_value(nested(DEPTH_LIMIT, leaf)) == nested(DEPTH_LIMIT, plain_value(leaf))


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": x}, lambda x: (x,), lambda x: {1: x}])
def test_every_container_is_a_level(wrap: Any) -> None:
    value: Any = 1
    for _ in range(DEPTH_LIMIT):
        value = wrap(value)
    plain_value(value)
    with pytest.raises(Unrepresentable):
        plain_value(wrap(value))


def test_a_value_that_holds_itself_is_refused() -> None:
    rows: list[Any] = []
    rows.append({"rows": rows})
    with pytest.raises(Unrepresentable) as caught:
        plain_value(rows)
    assert caught.value.what == "nested deeper than 64 levels, or holding itself"


@unhurried
@given(json_values)
def test_a_json_value_is_unchanged(value: Any) -> None:
    assert with_types(plain_value(value)) == with_types(value)


@unhurried
@given(st.timedeltas())
def test_a_duration_is_written_as_pydantic_reads_it(value: datetime.timedelta) -> None:
    assert TypeAdapter(datetime.timedelta).validate_python(plain_value(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (1.0, "1.0"),
        (math.nan, '"NaN"'),
        (["真", "\ud800"], '["真", "\ud800"]'),
        ({"b": 1, "a": [b"x"]}, '{"b": 1, "a": ["eA=="]}'),
        (Mode.FAST, '"fast"'),
    ],
)
def test_a_string_is_shown_as_it_is_and_anything_else_as_json(value: Any, text: str) -> None:
    assert show(value) == text
