"""Values of other libraries have a plain form by their methods."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections import UserList, UserString, deque
from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import httpx
import numpy as np
import pydantic
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


class Column(Series):
    """A column that may lack values, as pandas writes None over them."""

    def notna(self) -> list[bool]:
        return [value == value for value in self._values]

    def astype(self, kind: type) -> Column:
        assert kind is object
        return self

    def where(self, is_there: list[bool], other: None) -> Column:
        values = [value if is_kept else other for value, is_kept in zip(self._values, is_there, strict=True)]
        return Column(values, None if isinstance(self.index, RangeIndex) else self.index)


@attrs.define
class Place:
    name: str
    address: Any = None


class Struct:
    """An object with fields as msgspec lists them."""

    __struct_fields__ = ("a",)
    a = 1


class Server(pydantic.BaseModel):
    url: pydantic.HttpUrl


class Period:
    """A month of pandas."""

    __module__ = "pandas._libs.tslibs.period"

    def __str__(self) -> str:
        return "2026-01"


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
        (np.array(["2026-01-02", "NaT"], dtype="M8[D]"), ["2026-01-02", None]),
        (np.datetime64("NaT"), None),
        (Column(["a", float("nan")]), ["a", None]),
        (Column([1.5, float("nan")], index=Labels("x", "y")), {"x": 1.5, "y": None}),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (ipaddress.ip_interface("::1/64"), "::1/64"),
        (pydantic.AnyUrl("https://a.example/b"), "https://a.example/b"),
        (pydantic.PostgresDsn("postgres://h/d"), "postgres://h/d"),
        (pydantic.NameEmail("Ann", "ann@a.example"), "Ann <ann@a.example>"),
        (httpx.URL("https://a.example/b"), "https://a.example/b"),
        (Server.model_validate({"url": "https://a.eu"}), {"url": "https://a.eu/"}),
        (Fraction(1, 3), "1/3"),
        (ZoneInfo("Europe/Oslo"), "Europe/Oslo"),
        (datetime.UTC, "UTC"),
        (UserString("a"), "a"),
        (Period(), "2026-01"),
        (SimpleNamespace(a=[ipaddress.ip_address("::1")]), {"a": ["::1"]}),
        (Place("home", ipaddress.ip_address("::1")), {"name": "home", "address": "::1"}),
        (Struct(), {"a": 1}),
        ({ipaddress.ip_address("::1"): 1}, {"::1": 1}),
        ({pydantic.AnyUrl("https://a.example/b"): 1}, {"https://a.example/b": 1}),
        ({datetime.timedelta(days=1): 1}, {"P1D": 1}),
    ],
)
def test_a_value_with_one_reading_has_a_plain_form(value: Any, form: Any) -> None:
    assert plain_value({"of": [value]}) == {"of": [form]}


def test_an_entry_of_a_folder_is_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert plain_value(list(os.scandir(tmp_path))) == [str(tmp_path / "a.txt")]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (np.int64(3), 3),
        (np.array([1, 2]), [1, 2]),
        (np.timedelta64(90, "s"), datetime.timedelta(seconds=90)),
        (range(2), [0, 1]),
        ({(1, 2): 3}.items(), [((1, 2), 3)]),
        (NaTType(1, 1, 1), None),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        (pydantic.AnyUrl("https://a.example/b"), "https://a.example/b"),
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
        (pydantic.SecretStr("k"), "a value of type SecretStr"),
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
