"""Plain forms of other libraries' values, found by their methods. No such library is imported.

numpy scalars and arrays, pandas, polars and pyarrow tables, and the standard library's sequences and views have one
obvious reading each. A value with two readings, such as an array whose fields have names, has no form here.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, MappingView, Sequence, Set
from types import GeneratorType
from typing import Any, cast

from toolwire.vocabulary.errors import Unrepresentable

ITEMS_LIMIT = 1_000_000
"""Maximum number of items in a value that is converted here. `range(10**12)` would fill the memory."""

_LISTS = ("tolist", "to_pylist", "to_dicts", "to_list", "item")
"""Methods that give a list, or a number: of numpy and pandas, of pyarrow, of polars, and of single numbers."""
_MISSING = ("NAType", "NaTType")
"""The types of pandas' missing values."""
_ITERATORS = ("builtins", "itertools")
"""The modules of iterators that are read: `map`, `zip`, `chain`. Each can be read once, so it is no part of a value."""


class NoForm(Exception):
    """The value has no plain form."""


def plain_form(value: Any, path: str) -> Any:
    """Returns a list, dict, text, number or None that stands for the value. Its items may need a form themselves.

    Raises:
        NoForm: The value has none.
        Unrepresentable: It has too many items, or would lose some.
    """
    kind = cast("type[Any]", type(value))
    if is_missing(value):
        return None
    if not may_have_form(kind):
        raise NoForm
    _check_size(value, path)
    if _is_table(kind):
        return _records(value, path)
    if _has(kind, "is_unique", "to_dict"):
        return _series(value, path)
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names and _has(kind, "tolist"):
        raise Unrepresentable(f"a {kind.__name__} whose fields have names", path=path)
    for method in _LISTS:
        if _has(kind, method):
            return _list(value, method)
    if _has(kind, "isoformat"):
        return value.isoformat()
    if isinstance(value, Set) and not isinstance(value, MappingView):
        return frozenset(cast("Set[Any]", value))
    return list(cast("Sequence[Any]", value))


def is_missing(value: object) -> bool:
    """True for the missing value of pandas, also for that of dates, which is a datetime."""
    return type(value).__name__ in _MISSING


def read_iterator(value: Any) -> Any:
    """Returns the list of an iterator such as `map`; any other value unchanged. It runs the code of the iterator.

    Raises:
        Unrepresentable: It has more than `ITEMS_LIMIT` items.
    """
    kind = cast("type[Any]", type(value))
    if kind.__module__ not in _ITERATORS or not issubclass(kind, Iterator) or kind is GeneratorType:
        return value
    found: list[Any] = []
    for item in value:
        if len(found) == ITEMS_LIMIT:
            raise Unrepresentable(f"a {kind.__name__} of more than {ITEMS_LIMIT:,} items", path="")
        found.append(item)
    return found


def may_have_form(kind: type[Any]) -> bool:
    """True if `plain_form` may convert values of this type."""
    if kind.__name__ in _MISSING or _is_table(kind) or _has(kind, "isoformat"):
        return True
    return any(_has(kind, method) for method in _LISTS) or issubclass(kind, Set | Sequence | MappingView | deque)


def _has(kind: type[Any], *methods: str) -> bool:
    # On the class: an object that answers to every name, such as a mock, has none of these.
    return all(hasattr(kind, method) for method in methods)


def _is_table(kind: type[Any]) -> bool:
    """True for a class with the method `to_dict("records")` of pandas."""
    if not _has(kind, "to_dict"):
        return False
    try:
        return "orient" in inspect.signature(kind.to_dict).parameters
    except (TypeError, ValueError):
        return False


def _check_size(value: Any, path: str) -> None:
    size = getattr(value, "size", None)
    try:
        count = size if type(size) is int else len(value)
    except (TypeError, OverflowError):
        # `len` of a range beyond the size of a C integer overflows.
        count = ITEMS_LIMIT + 1 if isinstance(value, range) else 0
    if count > ITEMS_LIMIT:
        raise Unrepresentable(f"a {type(value).__name__} of more than {ITEMS_LIMIT:,} items", path=path)


def _records(table: Any, path: str) -> list[Any]:
    """Returns a row as a dict for each row of a DataFrame. An index with meaning becomes the first columns."""
    if not getattr(getattr(table, "columns", None), "is_unique", True):
        raise Unrepresentable(f"a {type(table).__name__} with two columns of one name", path=path)
    if not _is_counted(table):
        table = table.reset_index()
    return table.to_dict("records")


def _series(series: Any, path: str) -> Any:
    """Returns the values of a Series, by the labels of its index if it has some."""
    if _is_counted(series):
        return series.tolist()
    if not series.index.is_unique:
        raise Unrepresentable(f"a {type(series).__name__} whose index has a label twice", path=path)
    return series.to_dict()


def _is_counted(value: Any) -> bool:
    """True if the rows have no labels, or only their numbers."""
    return type(getattr(value, "index", None)).__name__ in ("RangeIndex", "NoneType")


def _list(value: Any, method: str) -> Any:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    # numpy gives dates and durations in nanoseconds as bare numbers.
    if kind == "M":
        value = value.astype(str)
    elif kind == "m":
        value = value.astype("timedelta64[us]")
    make: Callable[[], Any] = getattr(value, method)
    form = make()
    if type(form) is type(value):
        # A number beyond the types of Python, such as numpy's longdouble, stands for itself.
        raise NoForm
    return form
