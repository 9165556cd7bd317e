"""Values of other libraries have a plain form by their methods."""

from __future__ import annotations

import datetime
from collections import UserList, deque
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.foreign.plain_forms import ITEMS_LIMIT, read_iterator
from toolwire.vocabulary.values import plain_value, tag, untag


class RangeIndex:
    """The index of a table whose rows are only counted, as pandas names it."""


class Labels:
    def __init__(self, *labels: str) -> None:
        self.labels, self.is_unique = labels, len(set(labels)) == len(labels)


class Frame:
    """A table with the methods of a pandas DataFrame."""

    def __init__(self, columns: Labels, rows: list[list[Any]], index: Any = None) -> None:
        self.columns, self._rows = columns, rows
        self.index: Any = index or RangeIndex()
        self.size = len(rows) * len(columns.labels)

    def to_dict(self, orient: str = "dict") -> Any:
        assert orient == "records"
        return [dict(zip(self.columns.labels, row, strict=True)) for row in self._rows]

    def reset_index(self) -> Frame:
        rows = [[label, *row] for label, row in zip(self.index.labels, self._rows, strict=True)]
        return Frame(Labels("index", *self.columns.labels), rows)


class Series:
    """A column with the methods of a pandas Series."""

    is_unique = True

    def __init__(self, values: list[Any], index: Any = None) -> None:
        self._values = values
        self.index: Any = index or RangeIndex()

    def tolist(self) -> list[Any]:
        return self._values

    def to_dict(self) -> dict[str, Any]:
        return dict(zip(self.index.labels, self._values, strict=True))


class Moment:
    """A point in time that is no datetime."""

    def isoformat(self) -> str:
        return "2026-01-02T03:04:05+00:00"


class Scalar:
    """A number that only says what it holds."""

    def item(self) -> float:
        return 1.5


class NaTType(datetime.datetime):
    """The missing date of pandas."""


class Polars:
    columns = ("a",)

    def to_dicts(self) -> list[dict[str, int]]:
        return [{"a": 1}, {"a": 2}]


class Arrow:
    def to_pylist(self) -> list[int]:
        return [1, 2]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(5), 5),
        (np.ma.array([1, 2], mask=[False, True]), [1, None]),
        (np.datetime64("2026-01-02T03:04:05", "ns"), "2026-01-02T03:04:05.000000000"),
        (np.array(["2026-01-02"], dtype="M8[D]"), ["2026-01-02"]),
        (np.timedelta64(90, "s"), "PT90S"),
        ({np.int64(1): [np.int8(2)]}, {"1": [2]}),
        (Scalar(), 1.5),
        (Moment(), "2026-01-02T03:04:05+00:00"),
        (NaTType(1, 1, 1), None),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ({"b": 1, "a": 2}.items(), [["b", 1], ["a", 2]]),
        (deque([1, 2]), [1, 2]),
        (UserList(["a"]), ["a"]),
        (Frame(Labels("a", "b"), [[1, "x"], [2, "y"]]), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
        (Frame(Labels("n"), [[1]], index=Labels("Oslo")), [{"index": "Oslo", "n": 1}]),
        (Series([1, 2]), [1, 2]),
        (Series([1, 2], index=Labels("x", "y")), {"x": 1, "y": 2}),
        (Polars(), [{"a": 1}, {"a": 2}]),
        (Arrow(), [1, 2]),
    ],
)
def test_a_value_with_one_reading_has_a_plain_form(value: Any, form: Any) -> None:
    assert plain_value({"of": [value]}) == {"of": [form]}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (np.int64(3), 3),
        (np.array([1, 2]), [1, 2]),
        (np.timedelta64(90, "s"), datetime.timedelta(seconds=90)),
        (range(2), [0, 1]),
        ({(1, 2): 3}.items(), [((1, 2), 3)]),
        (NaTType(1, 1, 1), None),
    ],
)
def test_a_program_receives_the_same_form(value: Any, form: Any) -> None:
    assert untag(tag(value)) == form


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (range(10**30), "a range of more than 1,000,000 items"),
        (np.zeros(ITEMS_LIMIT + 1), "a ndarray of more than 1,000,000 items"),
        (np.array([(1, 2)], dtype=[("a", int), ("b", int)]), "a ndarray whose fields have names"),
        (np.complex64(1), "a value of type complex"),
        (np.longdouble(1), "a value of type longdouble"),
        (Frame(Labels("a", "a"), [[1, 2]]), "a Frame with two columns of one name"),
        (Series([1, 2], index=Labels("x", "x")), "a Series whose index has a label twice"),
        (object(), "a value of type object"),
        (map(str, [1]), "a value of type map"),
    ],
)
def test_a_value_with_no_or_two_readings_has_none(value: Any, message: str) -> None:
    with pytest.raises(Unrepresentable) as caught:
        plain_value([value])
    assert str(caught.value) == f"{message} cannot be written as JSON at [0]"


@pytest.mark.parametrize(
    ("iterator", "items"),
    [
        (lambda: map(str, [1, 2]), ["1", "2"]),
        (lambda: zip([1], "a", strict=True), [(1, "a")]),
        (lambda: filter(None, [0, 1]), [1]),
        (lambda: enumerate("a"), [(0, "a")]),
        (lambda: reversed([1, 2]), [2, 1]),
        (lambda: iter([1, 2]), [1, 2]),
        (lambda: chain([1], [2]), [1, 2]),
    ],
)
def test_an_iterator_of_builtins_is_a_list(iterator: Callable[[], Any], items: list[Any]) -> None:
    assert read_iterator(iterator()) == items


def test_an_endless_iterator_ends_at_the_limit() -> None:
    with pytest.raises(Unrepresentable, match="a map of more than 1,000,000 items"):
        read_iterator(map(str, iter(int, 1)))
