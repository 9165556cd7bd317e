"""Values as they travel to and from a program."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from pydantic import BaseModel

from tests.vocabulary.strategies import json_values, unhurried, values, with_types
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import DEPTH_LIMIT, tag, untag


@dataclass(frozen=True)
class Point:
    x: int


class City(BaseModel, frozen=True):
    name: str


class Colour(Enum):
    RED = "red"


TAGGED: list[tuple[Any, Any]] = [
    ("x", "x"),
    (2.5, 2.5),
    ({"a": [1, None]}, {"a": [1, None]}),
    (math.nan, {"$t": "float", "v": "nan"}),
    (math.inf, {"$t": "float", "v": "inf"}),
    (-math.inf, {"$t": "float", "v": "-inf"}),
    (b"\x00\xff", {"$t": "bytes", "v": "AP8="}),
    (datetime.datetime(2024, 5, 1, 1, 2, 3), {"$t": "datetime", "v": "2024-05-01T01:02:03"}),
    (datetime.date(2024, 5, 1), {"$t": "date", "v": "2024-05-01"}),
    (datetime.time(1, 2), {"$t": "time", "v": "01:02:00"}),
    (datetime.timedelta(1, 2, 3), {"$t": "timedelta", "v": [1, 2, 3]}),
    (Decimal("1.50"), {"$t": "Decimal", "v": "1.50"}),
    ((1, (2,)), {"$t": "tuple", "v": [1, {"$t": "tuple", "v": [2]}]}),
    ({2, 1}, {"$t": "set", "v": [1, 2]}),
    (frozenset({b"x"}), {"$t": "frozenset", "v": [{"$t": "bytes", "v": "eA=="}]}),
    ({1: "a"}, {"$t": "dict", "v": [[1, "a"]]}),
    ({"$t": 1}, {"$t": "dict", "v": [["$t", 1]]}),
    ({(1, 2): {"a": 1}}, {"$t": "dict", "v": [[{"$t": "tuple", "v": [1, 2]}, {"a": 1}]]}),
    (Colour.RED, "red"),
    (Path("a/b"), "a/b"),
    (UUID(int=0), "00000000-0000-0000-0000-000000000000"),
    (Point(1), {"x": 1}),
    (City(name="Rome"), {"name": "Rome"}),
    ({Point(1)}, [{"x": 1}]),
    (frozenset({(City(name="Rome"),)}), [{"$t": "tuple", "v": [{"name": "Rome"}]}]),
]


@pytest.mark.parametrize(("value", "expected"), TAGGED, ids=lambda value: type(value).__name__)
def test_a_value_is_tagged_where_json_lacks_its_type(value: Any, expected: Any) -> None:
    assert with_types(tag(value)) == with_types(expected)


@unhurried
@given(values)
def test_untag_gives_back_what_was_tagged(value: Any) -> None:
    assert with_types(untag(tag(value))) == with_types(value)


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(untag(tag([math.nan]))[0])


@unhurried
@given(json_values)
def test_json_without_tags_is_untagged_to_itself(value: Any) -> None:
    if "$t" not in repr(value):
        assert with_types(untag(value)) == with_types(value)


def nested(wrap: Any, levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf


WRAPS = {
    "list": lambda inner: [inner],
    "dict": lambda inner: {"a": inner},
    "tuple": lambda inner: (inner,),
    "frozenset": lambda inner: frozenset({inner}),
    "keyed": lambda inner: {1: inner},
    "key": lambda inner: (inner, {inner: 1})[0:1],
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("leaf", ["x", b"x", math.inf, Decimal(1)], ids=repr)
def test_the_deepest_value_that_is_tagged_is_also_untagged(wrap: Any, leaf: Any) -> None:
    value = nested(wrap, DEPTH_LIMIT, leaf)
    assert untag(tag(value)) == value


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_a_value_one_level_deeper_is_refused(wrap: Any) -> None:
    with pytest.raises(Unrepresentable) as caught:
        tag(nested(wrap, DEPTH_LIMIT + 1))
    assert caught.value.what == "nested deeper than 64 levels, or holding itself"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({Point(1): 2}, "a key of type Point cannot be written as JSON"),
        ({"a": {(1, Point(1)): 2}}, "a key of type tuple cannot be written as JSON at a"),
        ({1 << 14000: 1}, "an integer of more than 4,200 digits cannot be written as JSON"),
        ({1 << 14000}, "an integer of more than 4,200 digits cannot be written as JSON at [0]"),
        (Decimal("1E+4201"), "a Decimal of more than 4,200 digits cannot be written as JSON"),
        ({"a": (object(),)}, "a value of type object cannot be written as JSON at a[0]"),
        ({1: object()}, "a value of type object cannot be written as JSON at [1]"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_no_tag_fits_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(Unrepresentable) as caught:
        tag(value)
    assert str(caught.value) == message
