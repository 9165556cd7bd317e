"""Turns values that JSON lacks into tags and back. Twin of the host's codec, for the values that a program can hold."""

import base64
import dataclasses
import datetime
import enum
import itertools
import json
import math
import uuid
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from decimal import Decimal
from types import GeneratorType
from typing import Any, cast

TAG = "$t"
VALUE = "v"
DEPTH_LIMIT = 64
_INT_LIMIT = 1 << 14000
_DECIMAL_LIMIT = 4_200
kind_of: Callable[[Any], type[Any]] = type
"""`type` with one argument, with a signature that a type checker follows."""
_SCALARS = frozenset({str, int, bool, type(None)})
_AS_LIST = (
    list, map, filter, zip, enumerate, reversed, range, deque, GeneratorType, KeysView, ValuesView, ItemsView,
    itertools.accumulate, itertools.chain, itertools.combinations, itertools.islice, itertools.pairwise,
    itertools.permutations, itertools.product, itertools.starmap, itertools.takewhile, itertools.zip_longest,
)  # fmt: skip
"""Views and iterators of built-in kinds: a program that passes one means its items."""


class NotData(Exception):
    """A value cannot leave the program. The text names the value and its place in the whole."""


def tag(value: Any) -> Any:
    """Returns the value in JSON types and tags.

    Raises:
        NotData: a part of it is not data, is nested deeper than `DEPTH_LIMIT`, or contains itself.
    """
    return _tag(value, "", DEPTH_LIMIT)


def untag(value: Any) -> Any:
    """Returns the value that was tagged. The host wrote it, so it is well formed."""
    kind = kind_of(value)
    if kind is list:
        return [untag(item) for item in value]
    if kind is not dict:
        return value
    if TAG not in value:
        return {key: untag(item) for key, item in value.items()}
    return _UNTAG[value[TAG]](untag(value[VALUE]))


def _tag(value: Any, path: str, depth: int) -> Any:
    kind = kind_of(value)
    if kind in _SCALARS:
        return _check_integer(value, path) if kind is int else value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return _tag_items(value, path, depth)
    if kind is dict and all(type(key) is str for key in value) and TAG not in value:
        inner = _inside(depth, path)
        return {key: _tag(item, f"{path}.{key}", inner) for key, item in value.items()}
    return _special(value, path, depth)


def _inside(depth: int, path: str) -> int:
    if depth <= 0:
        raise NotData(f"something nested deeper than {DEPTH_LIMIT} levels, or holding itself{_at(path)}")
    return depth - 1


def _check_integer(number: int, path: str) -> int:
    if not -_INT_LIMIT < number < _INT_LIMIT:
        raise NotData(f"an integer of more than 4,200 digits{_at(path)}")
    return number


def _special(value: Any, path: str, depth: int) -> Any:
    for base, name, write in _SIMPLE:
        if isinstance(value, base):
            return {TAG: name, VALUE: write(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: "float", VALUE: str(float(value))}
    if isinstance(value, Decimal):
        return {TAG: "Decimal", VALUE: _decimal_text(value, path)}
    if isinstance(value, set | frozenset):
        name = "frozenset" if isinstance(value, frozenset) else "set"
        return {TAG: name, VALUE: _in_order(_tag_items(cast("set[Any]", value), path, depth))}
    if isinstance(value, tuple):
        return {TAG: "tuple", VALUE: _tag_items(cast("tuple[Any, ...]", value), path, depth)}
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), path, depth)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return _check_integer(int(value), path)
    if isinstance(value, _AS_LIST):
        return _tag_items(cast("Iterable[Any]", value), path, depth)
    return _record(value, path, depth)


def _record(value: Any, path: str, depth: int) -> Any:
    """Returns the data of an enum member, a UUID or a dataclass instance, tagged."""
    if isinstance(value, enum.Enum):
        return _tag(value.value, path, _inside(depth, path))
    if isinstance(value, uuid.UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _mapping(fields, path, depth)
    raise NotData(f"{_type_name(value)}{_at(path)}")


def _tag_items(values: Iterable[Any], path: str, depth: int) -> list[Any]:
    inner = _inside(depth, path)
    return [_tag(item, f"{path}[{place}]", inner) for place, item in enumerate(values)]


def _in_order(items: list[Any]) -> list[Any]:
    """Returns a set's tagged items in an order that is the same in every run."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def _mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    inner = _inside(depth, path)
    if all(type(key) is str for key in value) and TAG not in value:
        return {key: _tag(item, f"{path}.{key}", inner) for key, item in value.items()}
    pairs = [[_tag(key, path, inner), _tag(item, f"{path}[{key!r}]", inner)] for key, item in value.items()]
    return {TAG: "dict", VALUE: pairs}


def _decimal_text(value: Decimal, path: str) -> str:
    text = str(value)
    if len(text) > _DECIMAL_LIMIT or abs(value.adjusted()) > _DECIMAL_LIMIT:
        raise NotData(f"a Decimal of more than 4,200 digits{_at(path)}")
    return text


def _type_name(value: Any) -> str:
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
