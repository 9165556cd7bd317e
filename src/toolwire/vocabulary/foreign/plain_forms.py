"""Plain forms of other libraries' values, found by their methods. No such library is imported.

numpy scalars and arrays, pandas, polars and pyarrow tables, addresses, objects of declared fields, and the standard
library's sequences and views have one obvious reading each. A value with two readings, such as an array whose fields
have names, has no form here.
"""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Iterator, MappingView, Sequence, Set
from types import GeneratorType, SimpleNamespace
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

_TEXTS = frozenset(
    {"ipaddress._IPAddressBase", "fractions.Fraction", "datetime.tzinfo", "collections.UserString"}
    | {"pydantic._BaseUrl", "pydantic._BaseMultiHostUrl", "pydantic_core.Url", "pydantic_core.MultiHostUrl"}
    | {"pydantic.NameEmail", "pandas.Period", "pandas.Interval"}
    | {"yarl.URL", "httpx.URL", "starlette.URL"}
)
"""Classes, by their package, whose values are read as `str` writes them."""
_FIELD_NAMES: tuple[tuple[str, Callable[[Any], list[str]]], ...] = (
    ("__attrs_attrs__", lambda fields: [field.name for field in fields]),
    ("__struct_fields__", list),
)
"""Where the classes of attrs and msgspec list their fields."""


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
    if (single := _single_form(value, kind)) is not None:
        return single
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


def _single_form(value: Any, kind: type[Any]) -> str | dict[str, Any] | None:
    """Returns the text of a value, or the fields of an object. None for a value of another kind."""
    if _is_text(kind):
        return str(value)
    if issubclass(kind, os.DirEntry):
        return str(value.path)
    if (names := _fields(kind)) is not None:
        return {name: getattr(value, name) for name in names}
    return dict(vars(cast("SimpleNamespace", value))) if issubclass(kind, SimpleNamespace) else None


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
    if _is_text(kind) or _fields(kind) is not None or issubclass(kind, os.DirEntry | SimpleNamespace):
        return True
    return any(_has(kind, method) for method in _LISTS) or issubclass(kind, Set | Sequence | MappingView | deque)


def _has(kind: type[Any], *methods: str) -> bool:
    # On the class: an object that answers to every name, such as a mock, has none of these.
    return all(hasattr(kind, method) for method in methods)


def _is_text(kind: type[Any]) -> bool:
    return any(f"{base.__module__.partition('.')[0]}.{base.__name__}" in _TEXTS for base in kind.__mro__)


def _fields(kind: type[Any]) -> list[str] | None:
    """Returns the names of the fields that the class declares; None for a class of another kind."""
    for name, names_in in _FIELD_NAMES:
        listed = getattr(kind, name, None)
        if isinstance(listed, tuple):
            return names_in(listed)
    return None


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
    return _without_missing(table).to_dict("records")


def _series(series: Any, path: str) -> Any:
    """Returns the values of a Series, by the labels of its index if it has some."""
    if _is_counted(series):
        return _without_missing(series).tolist()
    if not series.index.is_unique:
        raise Unrepresentable(f"a {type(series).__name__} whose index has a label twice", path=path)
    return _without_missing(series).to_dict()


def _without_missing(value: Any) -> Any:
    """Returns the table or column with None for each missing value.

    pandas keeps NaN in a column of numbers or texts.
    """
    kind = cast("type[Any]", type(value))
    return value.astype(object).where(value.notna(), None) if _has(kind, "astype", "where", "notna") else value


def _is_counted(value: Any) -> bool:
    """True if the rows have no labels, or only their numbers."""
    return type(getattr(value, "index", None)).__name__ in ("RangeIndex", "NoneType")


def _list(value: Any, method: str) -> Any:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    # numpy gives dates and durations in nanoseconds as bare numbers.
    if kind == "M":
        return _moments(value.astype(str).tolist())
    if kind == "m":
        value = value.astype("timedelta64[us]")
    make: Callable[[], Any] = getattr(value, method)
    form = make()
    if type(form) is type(value):
        # A number beyond the types of Python, such as numpy's longdouble, stands for itself.
        raise NoForm
    return form


def _moments(texts: Any) -> Any:
    """Returns numpy's dates, with None for those that are missing."""
    if isinstance(texts, list):
        return [_moments(text) for text in cast("list[Any]", texts)]
    return None if texts == "NaT" else texts
