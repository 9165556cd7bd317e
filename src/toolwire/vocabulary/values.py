"""The codec for values: plain JSON for models and logs, tags for programs, canonical text and digest.

A value has three forms:

* *plain*: for models and logs. JSON types only; dates as ISO 8601, bytes as base64, models as objects.
* *tagged*: for the exchange with a program. Types that JSON lacks are written as `{"$t": type, "v": ...}` and restored
  to the same type. `sandbox/child/values.py` is the counterpart in the child.
* *canonical*: plain, as one exact text (sorted keys, no spaces), for sending and signing. Digests use the tagged form.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.exact import digest_of_tagged, exact, in_order
from toolwire.vocabulary.foreign.plain_forms import NoForm, is_missing, plain_form

DEPTH_LIMIT = 64
"""Maximum levels of nesting in one value. Deeper values are refused, because readers on the other side recurse."""

COMPARISONS_LIMIT = 16
"""Maximum comparisons of different members with equal hashes, per member. At this limit 1 MB of members costs 20 ms,
and powers of two up to 2**1900 pass. A fixed limit would let many small sets pass.
"""

TAG = "$t"
_VALUE = "v"
_kind: Callable[[Any], object] = type
_TEXT: frozenset[object] = frozenset({str})
_SCALARS: frozenset[object] = frozenset({str, int, bool, type(None)})
_INT_LIMIT = 1 << 14000
"""Python refuses to print integers of more than 4,300 digits; this limit is a little lower."""
_DECIMAL_LIMIT = 4_200
"""Maximum digits of a Decimal, and of its exponent: `int(Decimal("1e999999999"))` would never finish."""


def plain_value(value: Any) -> Any:
    """Returns the value in JSON types.

    Raises:
        Unrepresentable: A part has no JSON form, is nested deeper than `DEPTH_LIMIT`, or contains itself.
    """
    return _walk_value(value, "", DEPTH_LIMIT, _plain_special)


def tag(value: Any) -> Any:
    """Returns the value in JSON types and tags. `untag` restores bytes, dates, sets, tuples and Decimals from them.

    Models and dataclasses become mappings, enum members become their value, paths and UUIDs become text.

    Raises:
        Unrepresentable: See `plain_value`.
    """
    return _walk_value(value, "", DEPTH_LIMIT, _tag_special)


def untag(value: Any) -> Any:
    """Restores the value that `tag` converted.

    Raises:
        Unrepresentable: A tag is unknown, or a value does not fit its tag.
    """
    return _untag(value, DEPTH_LIMIT)


def canonical(value: Any) -> str:
    """Returns the plain value as one exact JSON text: equal values give equal texts."""
    return exact(plain_value(value))


def digest(value: Any) -> str:
    """Returns `sha256:` and the hash of the tagged value.

    Values in JSON types have the digest of their canonical text. Bytes, dates and tuples differ from their JSON
    look-alikes.

    Raises:
        Unrepresentable: See `tag`.
    """
    return digest_of_tagged(in_order(tag(value)))


Special = Callable[[Any, str, int], Any]


def _walk_value(value: Any, path: str, depth: int, special: Special) -> Any:
    kind = _kind(value)
    if kind in _SCALARS:
        return _check_integer(value, path) if kind is int else value
    if kind is float and math.isfinite(value):
        return value
    if kind is dict and _TEXT.issuperset(map(_kind, value)) and TAG not in value:
        return _walk_members(value, path, depth, special)
    if kind is list:
        return _walk_items(value, path, depth, special)
    try:
        return special(value, path, depth)
    except Unrepresentable:
        raise
    except Exception as error:
        # A model's serializer and a mapping's items() run the tool's own code.
        what = f"a value of type {type(value).__name__} (its own code raised {type(error).__name__})"
        raise Unrepresentable(what, path=path) from error


def _inside(depth: int, path: str) -> int:
    """Returns the levels left inside a container."""
    if depth <= 0:
        raise Unrepresentable(f"nested deeper than {DEPTH_LIMIT} levels, or holding itself", path=path)
    return depth - 1


def _check_integer(number: int, path: str) -> int:
    if not -_INT_LIMIT < number < _INT_LIMIT:
        raise Unrepresentable("an integer of more than 4,200 digits", path=path)
    return number


# Most members are texts. They stay as they are, without a call and a path for each.
def _walk_members(values: Mapping[str, Any], path: str, depth: int, special: Special) -> dict[str, Any]:
    inner = _inside(depth, path)
    return {
        key: item if _kind(item) is str else _walk_value(item, f"{path}.{key}", inner, special)
        for key, item in values.items()
    }


def _walk_items(values: Iterable[Any], path: str, depth: int, special: Special) -> list[Any]:
    inner = _inside(depth, path)
    return [
        item if _kind(item) is str else _walk_value(item, f"{path}[{place}]", inner, special)
        for place, item in enumerate(values)
    ]


def _in_order(items: list[Any]) -> list[Any]:
    """Sorts a set's items, which are in JSON types already, so that every run gives the same order."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def _plain_special(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return _base64(cast("bytes", value))
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return None if is_missing(value) else value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return _in_order(_walk_items(cast("set[Any]", value), path, depth, _plain_special))
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[Any, Any]", value), path, depth)
    return _reduce(value, path, depth, _plain_special)


def _plain_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    inner = _inside(depth, path)
    for key, item in value.items():
        text = _key_text(key, path)
        if text in found:
            raise Unrepresentable(f"two keys that both become {text!r}", path=path)
        found[text] = _walk_value(item, f"{path}.{text}", inner, _plain_special)
    return found


def _key_text(key: Any, path: str) -> str:
    """Returns the text of a key: that of its plain form, which is a text, a number, a bool or None."""
    # Base64 is a reading of bytes as a value. As a name, a model could not tell it from other text.
    form: object = [] if isinstance(key, bytes) else _walk_value(key, path, DEPTH_LIMIT, _plain_special)
    if isinstance(form, str):
        return form
    if form is None or isinstance(form, int | float):
        return json.dumps(form)
    raise Unrepresentable(f"a key of type {type(key).__name__}", path=path)


# A datetime is also a date, so the order matters.
_MOMENTS = ((datetime.datetime, "datetime"), (datetime.date, "date"), (datetime.time, "time"))


def _tag_special(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return {TAG: "float", _VALUE: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, bytes | bytearray | memoryview):
        return {TAG: "bytes", _VALUE: _base64(cast("bytes", value))}
    for kind, name in _MOMENTS:
        if isinstance(value, kind):
            return None if is_missing(value) else {TAG: name, _VALUE: value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {TAG: "timedelta", _VALUE: [value.days, value.seconds, value.microseconds]}
    if isinstance(value, Decimal):
        return {TAG: "Decimal", _VALUE: _decimal_text(value, path)}
    if isinstance(value, tuple):
        return {TAG: "tuple", _VALUE: _walk_items(cast("tuple[Any, ...]", value), path, depth, _tag_special)}
    if isinstance(value, set | frozenset):
        return _tag_set(cast("set[Any]", value), path, depth)
    if isinstance(value, Mapping):
        return _tag_mapping(cast("Mapping[Any, Any]", value), path, depth)
    return _reduce(value, path, depth, _tag_special)


def _tag_set(value: set[Any] | frozenset[Any], path: str, depth: int) -> Any:
    """Tags a set. It becomes a list if a program cannot put the members into a set: models arrive there as mappings."""
    items = _in_order(_walk_items(value, path, depth, _tag_special))
    if not all(_is_hashable(item) for item in items):
        return items
    return {TAG: "frozenset" if isinstance(value, frozenset) else "set", _VALUE: items}


def _tag_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    inner = _inside(depth, path)
    if _TEXT.issuperset(map(_kind, value)) and TAG not in value:
        return _walk_members(value, path, depth, _tag_special)
    pairs: list[list[Any]] = []
    for key, item in value.items():
        tagged = _walk_value(key, path, inner, _tag_special)
        if not _is_hashable(tagged):
            raise Unrepresentable(f"a key of type {type(key).__name__}", path=path)
        pairs.append([tagged, _walk_value(item, f"{path}[{key!r}]", inner, _tag_special)])
    return {TAG: "dict", _VALUE: pairs}


def _is_hashable(tagged: Any) -> bool:
    """True if the untagged value can be a member of a set."""
    if type(tagged) is not dict:
        return type(tagged) is not list
    name = cast("dict[str, Any]", tagged).get(TAG)
    if name == "tuple":
        return all(_is_hashable(item) for item in cast("dict[str, Any]", tagged)[_VALUE])
    return name not in (None, "set", "dict")


def _base64(value: bytes) -> str:
    # A memoryview may be non-contiguous; bytes are not.
    return base64.b64encode(bytes(value)).decode("ascii")


def _decimal_text(value: Decimal, path: str) -> str:
    text = str(value)
    if not _is_short(value, text):
        raise Unrepresentable("a Decimal of more than 4,200 digits", path=path)
    return text


def _is_short(value: Decimal, text: str) -> bool:
    return len(text) <= _DECIMAL_LIMIT and abs(value.adjusted()) <= _DECIMAL_LIMIT


def _reduce(value: Any, path: str, depth: int, special: Special) -> Any:
    """Converts objects that stand for a simpler value, in both forms."""
    if isinstance(value, Enum):
        return _walk_value(value.value, path, depth, special)
    if isinstance(value, tuple | list):
        return _walk_items(cast("Iterable[Any]", value), path, depth, special)
    if isinstance(value, str | PurePath | UUID):
        return str(value)
    if isinstance(value, int):
        return _walk_value(int(value), path, depth, special)
    dump: Callable[[Any], Any] | None = getattr(cast("type[Any]", type(value)), "model_dump", None)
    if dump is not None:
        return _walk_value(dump(value), path, depth, special)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _walk_value(fields, path, depth, special)
    try:
        form = plain_form(value, path)
    except NoForm:
        raise Unrepresentable(f"a value of type {type(value).__name__}", path=path) from None
    # One level less: the form of a value must not lead back to the value.
    return _walk_value(form, path, _inside(depth, path), special)


def _duration(value: datetime.timedelta) -> str:
    """Formats a duration as ISO 8601, in the way of pydantic."""
    sign, value = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    text = f"{sign}P{value.days}D" if value.days else f"{sign}P"
    seconds = f"{value.seconds + value.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".")
    return f"{text}T{seconds}S" if value.seconds or value.microseconds or not value.days else text


def _untag(value: Any, depth: int) -> Any:
    kind = _kind(value)
    if kind is list:
        return _members(value, depth)
    if kind is not dict:
        return value
    if TAG not in value:
        inner = _inside(depth, "")
        return {key: _untag(item, inner) for key, item in value.items()}
    make = _UNTAG.get(value[TAG]) if type(value[TAG]) is str else None
    if make is None or len(value) != 2 or _VALUE not in value:
        raise Unrepresentable("an unknown tag", path="")
    try:
        return make(value[_VALUE], depth)
    except Unrepresentable:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise Unrepresentable(f"a value that is not of the type {value[TAG]}", path="") from error


def _members(items: Any, depth: int) -> list[Any]:
    inner = _inside(depth, "")
    return [_untag(item, inner) for item in _list(items)]


def _untag_dict(pairs: Any, depth: int) -> dict[Any, Any]:
    inner = _inside(depth, "")
    found = [(_untag(key, inner), _untag(item, inner)) for key, item in map(_list, _list(pairs))]
    return dict(_apart(found, [key for key, _ in found]))


def _list(held: Any) -> list[Any]:
    if type(held) is not list:
        raise TypeError("no list")
    return cast("list[Any]", held)


def _decimal(text: Any) -> Decimal:
    if type(text) is not str or not _is_short(number := Decimal(text), text):
        raise ValueError("too long")
    return number


_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_UNTAG: dict[str, Callable[[Any, int], Any]] = {
    "float": lambda text, _: _FLOATS[text],
    "bytes": lambda text, _: base64.b64decode(text, validate=True),
    "datetime": lambda text, _: datetime.datetime.fromisoformat(text),
    "date": lambda text, _: datetime.date.fromisoformat(text),
    "time": lambda text, _: datetime.time.fromisoformat(text),
    "timedelta": lambda parts, _: datetime.timedelta(*_list(parts)),
    "Decimal": lambda text, _: _decimal(text),
    "tuple": lambda items, depth: tuple(_members(items, depth)),
    "set": lambda items, depth: set(_apart(found := _members(items, depth), found)),
    "frozenset": lambda items, depth: frozenset(_apart(found := _members(items, depth), found)),
    "dict": _untag_dict,
}


def _apart(members: list[Any], keys: list[Any]) -> list[Any]:
    """Returns the members after checking the hashes of their keys.

    Hashes of numbers are predictable, and a table of 100,000 equal hashes takes minutes to fill.

    Raises:
        ValueError: Too many keys have the same hash.
    """
    hashes = Counter(map(hash, keys))
    if len(hashes) < len(keys):
        # Two long tuples with equal hashes are compared item by item.
        sizes = [_key_size(key) if isinstance(key, tuple | frozenset) else 1 for key in keys]
        compared = sum(size * (hashes[hash(key)] - 1) for key, size in zip(keys, sizes, strict=True)) // 2
        if compared > COMPARISONS_LIMIT * sum(sizes):
            raise ValueError("members that collide")
    return members


def _key_size(key: Any) -> int:
    """Returns the number of values in a key, including those inside its tuples."""
    size = 0
    left = [key]
    while left:
        item = left.pop()
        size += 1
        if isinstance(item, tuple | frozenset):
            left += item
    return size
