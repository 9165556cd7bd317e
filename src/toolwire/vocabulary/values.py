"""The one codec for values: plain JSON for models and logs, tags for programs, canonical text and digest.

Three forms of one value:

* *plain*: what a model or a log sees. JSON types only; dates as ISO 8601, bytes as base64, models as objects.
* *tagged*: what travels to and from a program. Types that JSON lacks stand as `{"$t": type, "v": ...}`
  and come back as themselves. `sandbox/child/values.py` is its twin on the other side.
* *canonical*: plain, as one exact text (sorted keys, no spaces), for digests and comparison.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from toolwire.vocabulary.errors import Unrepresentable

CODEC_VERSION = 1
"""Raised when a tag or the canonical form changes meaning: digests of two versions are not compared."""

DEPTH_LIMIT = 64
"""Levels of nesting in one value. Deeper values are refused: readers on the other side recurse."""

TAG = "$t"
_VALUE = "v"
_kind: Callable[[Any], object] = type
_SCALARS: frozenset[object] = frozenset({str, int, bool, type(None)})
_INT_LIMIT = 1 << 14000
"""Python refuses to print integers of more than 4,300 digits; this is a little less."""


def plain(value: Any) -> Any:
    """The value in JSON types only.

    Raises:
        Unrepresentable: something in it has no JSON form, is nested deeper than `DEPTH_LIMIT`, or holds itself.
    """
    return _walk(value, "", DEPTH_LIMIT, _plain_special)


def tag(value: Any) -> Any:
    """The value in JSON types and tags, so that `untag` gives bytes, dates, sets, tuples and Decimals back.

    Models and dataclasses become mappings, enum members their value, paths and UUIDs their text.

    Raises:
        Unrepresentable: as `plain`.
    """
    return _walk(value, "", DEPTH_LIMIT, _tag_special)


def untag(value: Any) -> Any:
    """The value that `tag` was given.

    Raises:
        Unrepresentable: an unknown tag, or a value that does not fit its tag.
    """
    return _untag(value, DEPTH_LIMIT)


def canonical(value: Any) -> str:
    """The plain value as one exact JSON text: equal values give equal texts."""
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """`sha256:` and the hash of the canonical text."""
    text = canonical(value).encode("utf-8", "surrogatepass")
    return "sha256:" + hashlib.sha256(text).hexdigest()


def show(value: Any) -> str:
    """The value as text for a model: a string as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return json.dumps(plain(value), ensure_ascii=False)


Special = Callable[[Any, str, int], Any]


def _walk(value: Any, path: str, depth: int, special: Special) -> Any:
    kind = _kind(value)
    if kind in _SCALARS:
        if kind is int and not -_INT_LIMIT < value < _INT_LIMIT:
            raise Unrepresentable("an integer of more than 4,200 digits", path=path)
        return value
    if kind is float and math.isfinite(value):
        return value
    if depth <= 0:
        raise Unrepresentable(f"nested deeper than {DEPTH_LIMIT} levels, or holding itself", path=path)
    if kind is dict and all(type(key) is str for key in value) and TAG not in value:
        return {key: _walk(item, f"{path}.{key}", depth - 1, special) for key, item in value.items()}
    if kind is list:
        return [_walk(item, f"{path}[{place}]", depth - 1, special) for place, item in enumerate(value)]
    return special(value, path, depth)


def _items(values: Iterable[Any], path: str, depth: int, special: Special) -> list[Any]:
    return [_walk(item, f"{path}[{place}]", depth - 1, special) for place, item in enumerate(values)]


def _in_order(values: Iterable[Any]) -> list[Any]:
    """A set in an order that does not change from run to run."""
    return sorted(values, key=lambda item: (type(item).__name__, repr(item)))


def _plain_special(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", value)).decode("ascii")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return _items(_in_order(cast("set[Any]", value)), path, depth, _plain_special)
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[Any, Any]", value), path, depth)
    return _reduce(value, path, depth, _plain_special)


def _plain_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        text = _key_text(key, path)
        if text in found:
            raise Unrepresentable(f"two keys that read {text!r}", path=path)
        found[text] = _walk(item, f"{path}.{text}", depth - 1, _plain_special)
    return found


def _key_text(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool | int | float):
        return json.dumps(key)
    if isinstance(key, datetime.datetime | datetime.date | datetime.time):
        return key.isoformat()
    if isinstance(key, Decimal | UUID | PurePath):
        return str(key)
    raise Unrepresentable(f"a key of type {type(key).__name__}", path=path)


def _tag_special(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, float):
        return {TAG: "float", _VALUE: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, bytes | bytearray | memoryview):
        return {TAG: "bytes", _VALUE: base64.b64encode(cast("bytes", value)).decode("ascii")}
    if isinstance(value, datetime.datetime):
        return {TAG: "datetime", _VALUE: value.isoformat()}
    if isinstance(value, datetime.date):
        return {TAG: "date", _VALUE: value.isoformat()}
    if isinstance(value, datetime.time):
        return {TAG: "time", _VALUE: value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {TAG: "timedelta", _VALUE: [value.days, value.seconds, value.microseconds]}
    if isinstance(value, Decimal):
        return {TAG: "Decimal", _VALUE: str(value)}
    if isinstance(value, tuple):
        return {TAG: "tuple", _VALUE: _items(cast("tuple[Any, ...]", value), path, depth, _tag_special)}
    if isinstance(value, frozenset):
        return {TAG: "frozenset", _VALUE: _items(_in_order(cast("frozenset[Any]", value)), path, depth, _tag_special)}
    if isinstance(value, set):
        return {TAG: "set", _VALUE: _items(_in_order(cast("set[Any]", value)), path, depth, _tag_special)}
    if isinstance(value, Mapping):
        return _tag_mapping(cast("Mapping[Any, Any]", value), path, depth)
    return _reduce(value, path, depth, _tag_special)


def _tag_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    if all(type(key) is str for key in value) and TAG not in value:
        return {key: _walk(item, f"{path}.{key}", depth - 1, _tag_special) for key, item in value.items()}
    pairs = [
        [_walk(key, path, depth - 1, _tag_special), _walk(item, f"{path}[{key!r}]", depth - 1, _tag_special)]
        for key, item in value.items()
    ]
    return {TAG: "dict", _VALUE: pairs}


def _reduce(value: Any, path: str, depth: int, special: Special) -> Any:
    """Objects that stand for something simpler, in both forms."""
    if isinstance(value, Enum):
        return _walk(value.value, path, depth - 1, special)
    if isinstance(value, tuple | list):
        return _items(cast("Iterable[Any]", value), path, depth, special)
    if isinstance(value, str | PurePath | UUID):
        return str(value)
    if isinstance(value, int):
        return _walk(int(value), path, depth, special)
    dump: Callable[[Any], Any] | None = getattr(cast("type[Any]", type(value)), "model_dump", None)
    if dump is not None:
        return _walk(dump(value), path, depth - 1, special)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _walk(fields, path, depth, special)
    raise Unrepresentable(f"a value of type {type(value).__name__}", path=path)


def _duration(value: datetime.timedelta) -> str:
    """ISO 8601, as pydantic reads and writes it."""
    sign, value = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    text = f"{sign}P{value.days}D" if value.days else f"{sign}P"
    seconds = f"{value.seconds + value.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".")
    return f"{text}T{seconds}S" if value.seconds or value.microseconds or not value.days else text


_UNTAG: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda parts: datetime.timedelta(*parts),
    "Decimal": Decimal,
    "tuple": tuple,
    "set": lambda items: set(_spread(items, items)),
    "frozenset": lambda items: frozenset(_spread(items, items)),
    "dict": lambda pairs: dict(_spread(pairs, [pair[0] for pair in pairs])),
}

_FEW = 256


def _spread(members: Any, keys: Any) -> Any:
    """The members, unless their keys were chosen to collide: hashes of numbers are no secret, and a table of
    100,000 equal hashes takes minutes to fill."""
    if len(keys) - len({hash(key) for key in keys}) > _FEW:
        raise ValueError("members that collide")
    return members


def _untag(value: Any, depth: int) -> Any:
    kind = _kind(value)
    if depth <= 0:
        raise Unrepresentable(f"nested deeper than {DEPTH_LIMIT} levels", path="")
    if kind is list:
        return [_untag(item, depth - 1) for item in value]
    if kind is not dict:
        return value
    if TAG not in value:
        return {key: _untag(item, depth - 1) for key, item in value.items()}
    make = _UNTAG.get(value[TAG]) if type(value[TAG]) is str else None
    if make is None or len(value) != 2 or _VALUE not in value:
        raise Unrepresentable("an unknown tag", path="")
    try:
        return make(_untag(value[_VALUE], depth - 1))
    except Unrepresentable:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise Unrepresentable(f"a value that is no {value[TAG]}", path="") from error
