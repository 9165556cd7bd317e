"""Hypothesis strategies for the values that tools take and give."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

unhurried = settings(deadline=None)
"""How long one example takes says nothing here: the machine is shared."""

_TEXT = st.text(st.characters(), max_size=8) | st.sampled_from(["$t", "v", "\ud800", "\x00", "真"])
_OFFSETS = st.builds(
    datetime.timezone, st.timedeltas(min_value=datetime.timedelta(hours=-23), max_value=datetime.timedelta(hours=23))
)
_NUMBERS = (
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, min_value="-1e300", max_value="1e300"),
)
_MOMENTS = (
    st.datetimes(timezones=st.none() | _OFFSETS),
    st.dates(),
    st.times(timezones=st.none() | _OFFSETS),
    st.timedeltas(),
)

json_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
leaves = st.one_of(st.none(), st.booleans(), _TEXT, st.binary(max_size=8), *_NUMBERS, *_MOMENTS)
hashables = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(_TEXT, inner, max_size=3),
        st.dictionaries(hashables, inner, max_size=3),
        st.sets(hashables, max_size=3),
    )


values = st.recursive(leaves | hashables, _containers, max_leaves=8)
"""Everything that a program and its host can hand each other."""

json_values = st.recursive(
    json_leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
"""Values that a JSON text can hold, including accidental tags."""


def with_types(value: Any) -> Any:
    """The value with each part's type, hashable, for comparisons that tell 1 from True and a tuple from a list."""
    if isinstance(value, dict):
        return dict, tuple((with_types(key), with_types(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(with_types, value))
    if isinstance(value, set | frozenset):
        return type(value), frozenset(map(with_types, value))
    return type(value), repr(value) if isinstance(value, float) else value
