"""Values that JSON lacks, as tags and back. Twin of the host's codec, for what a program can hold."""

import base64
import datetime
import math
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from decimal import Decimal
from typing import Any, cast

TAG = "$t"
VALUE = "v"
DEPTH_LIMIT = 64
_INT_LIMIT = 1 << 14000
_SCALARS = frozenset({str, int, bool, type(None)})
_LAZY = (map, filter, zip, enumerate, reversed, range, deque, KeysView, ValuesView, ItemsView)
"""Views and iterators of built-in kinds: a program that hands one over means its items."""


class NotData(Exception):
    """A value that cannot leave the program. The text says which, and where in the whole."""


def tag(value: Any) -> Any:
    """The value in JSON types and tags.

    Raises:
        NotData: something in it is no data, is nested deeper than `DEPTH_LIMIT`, or holds itself.
    """
    return _tag(value, "", DEPTH_LIMIT)


def untag(value: Any) -> Any:
    """The value that was tagged. The host wrote it: it is well formed."""
    kind = type(value)
    if kind is list:
        return [untag(item) for item in value]
    if kind is not dict:
        return value
    if TAG not in value:
        return {key: untag(item) for key, item in value.items()}
    return _UNTAG[value[TAG]](untag(value[VALUE]))


def _tag(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        if kind is int and not -_INT_LIMIT < value < _INT_LIMIT:
            raise NotData(f"an integer of more than 4,200 digits{_at(path)}")
        return value
    if kind is float and math.isfinite(value):
        return value
    if depth <= 0:
        raise NotData(f"something nested deeper than {DEPTH_LIMIT} levels, or holding itself")
    if kind is list:
        return [_tag(item, f"{path}[{place}]", depth - 1) for place, item in enumerate(value)]
    if kind is dict and all(type(key) is str for key in value) and TAG not in value:
        return {key: _tag(item, f"{path}.{key}", depth - 1) for key, item in value.items()}
    return _special(value, path, depth)


def _special(value: Any, path: str, depth: int) -> Any:
    for base, name, write in _SIMPLE:
        if isinstance(value, base):
            return {TAG: name, VALUE: write(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: "float", VALUE: str(float(value))}
    for base, name, ordered in _MANY:
        if isinstance(value, base):
            return {TAG: name, VALUE: _items(_in_order(value) if ordered else value, path, depth)}
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), path, depth)
    for base in (str, int, list):
        if isinstance(value, base):
            return _tag(base(value), path, depth)
    if isinstance(value, _LAZY):
        return _items(cast("Iterable[Any]", value), path, depth)
    raise NotData(f"{_named(value)}{_at(path)}")


def _items(values: Iterable[Any], path: str, depth: int) -> list[Any]:
    return [_tag(item, f"{path}[{place}]", depth - 1) for place, item in enumerate(values)]


def _in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=lambda item: (type(item).__name__, repr(item)))


def _mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    if all(type(key) is str for key in value) and TAG not in value:
        return {key: _tag(item, f"{path}.{key}", depth - 1) for key, item in value.items()}
    pairs = [[_tag(key, path, depth - 1), _tag(item, f"{path}[{key!r}]", depth - 1)] for key, item in value.items()]
    return {TAG: "dict", VALUE: pairs}


def _named(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _at(path: str) -> str:
    return f" at {path.lstrip('.')}" if path else ""


def _isoformat(value: Any) -> str:
    return value.isoformat()


_SIMPLE: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    ((bytes, bytearray, memoryview), "bytes", lambda value: base64.b64encode(value).decode("ascii")),
    (datetime.datetime, "datetime", _isoformat),
    (datetime.date, "date", _isoformat),
    (datetime.time, "time", _isoformat),
    (datetime.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (Decimal, "Decimal", str),
)
_MANY: tuple[tuple[type, str, bool], ...] = (
    (tuple, "tuple", False),
    (frozenset, "frozenset", True),
    (set, "set", True),
)
_UNTAG: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": base64.b64decode,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda parts: datetime.timedelta(*parts),
    "Decimal": Decimal,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
}
