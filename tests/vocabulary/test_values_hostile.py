"""Tagged input that no honest program writes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.strategies import json_values, unhurried
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import DEPTH_LIMIT, untag

TAGS = ("float", "bytes", "datetime", "date", "time", "timedelta", "Decimal", "tuple", "set", "frozenset", "dict")


def of(name: Any, value: Any) -> dict[str, Any]:
    return {"$t": name, "v": value}


def nested(wrap: Any, levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


UNFIT: list[Any] = [
    *[of(name, value) for name in TAGS for value in (None, True, 1, 1.5, {"a": 1}, "\ud800", "é", "x" * 101)],
    *[of(name, "") for name in TAGS if name != "bytes"],
    *[of(name, [[[]]]) for name in TAGS if name != "tuple"],
    of("float", "1e400"),
    of("bytes", "eA="),
    of("timedelta", [10**10, 0, 0]),
    of("timedelta", [1e308, 1e308, 0]),
    of("timedelta", [0] * 8),
    of("datetime", "2024-13-01"),
    of("Decimal", "1e999999999"),
    of("Decimal", "-1e-4201"),
    of("Decimal", "1" * 4201),
    of("set", [[1]]),
    of("set", [{"a": 1}]),
    of("set", [of("tuple", [[1]])]),
    of("frozenset", [of("set", [1])]),
    of("dict", [[[1], 2]]),
    of("dict", [[1, 2, 3]]),
    of("dict", ["ab"]),
    of("dict", {"a": 1}),
    of("set", [i * ((1 << 61) - 1) for i in range(1000)]),
    of("dict", [[i * ((1 << 61) - 1), 0] for i in range(1000)]),
]
UNKNOWN: list[Any] = [
    *[of(name, 1) for name in ("", "object", "list", "Float", "$t", None, 1, ["set"], {"a": 1}, of("bytes", ""))],
    {"$t": "bytes"},
    {"$t": "bytes", "v": "", "w": 1},
    {"$t": "bytes", "w": ""},
]


@pytest.mark.parametrize("value", UNFIT, ids=lambda value: repr(value)[:60])
def test_a_value_that_does_not_fit_its_tag_is_refused(value: Any) -> None:
    with pytest.raises(Unrepresentable) as caught:
        untag([value])
    assert str(caught.value) == f"a value that is not of the type {value['$t']} cannot be written as JSON"


@pytest.mark.parametrize("value", UNKNOWN, ids=repr)
def test_an_unknown_tag_is_refused(value: Any) -> None:
    with pytest.raises(Unrepresentable) as caught:
        untag({"a": value})
    assert str(caught.value) == "an unknown tag cannot be written as JSON"


WRAPS = {
    "list": lambda inner: [inner],
    "object": lambda inner: {"a": inner},
    "tuple": lambda inner: of("tuple", [inner]),
    "frozenset": lambda inner: of("frozenset", [inner]),
    "dict": lambda inner: of("dict", [["a", inner]]),
    "key": lambda inner: of("dict", [[of("tuple", [inner]), 1]]),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("levels", [DEPTH_LIMIT + 1, 20_000])
def test_a_value_nested_too_deeply_is_refused_before_it_exhausts_the_stack(wrap: Any, levels: int) -> None:
    with pytest.raises(Unrepresentable):
        untag(nested(wrap, levels))


@unhurried
@given(st.recursive(json_values, lambda inner: st.builds(of, st.sampled_from(TAGS), inner | st.lists(inner))))
def test_any_tagged_input_is_read_or_refused(value: Any) -> None:
    with suppress(Unrepresentable):
        untag(value)
