"""Kinds of values in rules, and comparison by value of numbers, dates, times, durations and bytes.

Rules see arguments as the tool gets them, and write values as Python objects or as JSON: `Decimal("100")` or 100 for
money, `date(2026, 1, 1)` or `"2026-01-01"` for a day. Both mean the same.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, cast
from uuid import UUID

Kind = Literal[
    "null", "boolean", "number", "decimal", "text", "date", "datetime", "time", "duration", "bytes", "list", "object"
]

NUMBERS: frozenset[Kind] = frozenset({"number", "decimal"})
ORDERED: frozenset[Kind] = NUMBERS | frozenset[Kind]({"date", "datetime", "time", "duration"})
"""The kinds that `<` and `>` compare."""
TYPED: frozenset[Kind] = (ORDERED | frozenset[Kind]({"bytes"})) - frozenset[Kind]({"number"})
"""The kinds of values that JSON writes as a text."""


def kind_of(value: object) -> Kind:
    """Returns the kind of a value. A boolean is not a number."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | tuple():
            return "list"
        case _:
            return _KINDS.get(type(value), "object")


_KINDS: Mapping[type, Kind] = {
    Decimal: "decimal",
    datetime: "datetime",
    date: "date",
    time: "time",
    timedelta: "duration",
    bytes: "bytes",
}


def rule_value(value: Any) -> Any:
    """Returns a value as a rule compares it: members of enumerations as their values, UUIDs and paths as text."""
    match value:
        case Enum():
            return rule_value(value.value)
        case UUID() | PurePath():
            return str(value)
        case tuple() | list():
            return [rule_value(item) for item in cast("list[Any]", value)]
        case Mapping():
            return {key: rule_value(item) for key, item in cast("Mapping[str, Any]", value).items()}
        case _:
            return value


def kinds_compared(value: Any) -> frozenset[Kind]:
    """Returns the kinds of arguments that a rule's value can be compared with."""
    kind = kind_of(value)
    if kind == "text":
        return frozenset[Kind]({"text", *map(kind_of, readings(value))})
    if kind in NUMBERS:
        return NUMBERS
    return frozenset[Kind]({"date", "datetime"}) if kind == "date" else frozenset[Kind]({kind})


def readings(text: str) -> list[Any]:
    """Returns the values that JSON may write as this text, without the text itself."""
    return [value for value in (_value_of_kind(text, kind) for kind in sorted(TYPED)) if value is not None]


def value_for_order(value: Any) -> Any:
    """Returns a rule's value for `<` and `>`: the text of a date, a time or a duration as such."""
    if kind_of(value) != "text":
        return value
    found = [_value_of_kind(value, kind) for kind in ("date", "datetime", "time", "duration")]
    return next((each for each in found if each is not None), value)


def same_kind(value: Any, wanted: Any) -> tuple[Any, Any] | None:
    """Returns an argument and a rule's value as two values that `==` and `<` compare. None if no comparison fits.

    A number and a Decimal are compared exactly as they are written: 0.1 is a tenth. A date is the start of its day. A
    moment with a zone and one without are not compared.
    """
    kind, other = kind_of(value), kind_of(wanted)
    if kind in NUMBERS and other in NUMBERS:
        return _numbers(value, wanted)
    if other == "text" and kind in TYPED:
        wanted, other = _value_of_kind(wanted, kind), kind
    elif kind == "text" and other in TYPED - {"decimal"}:
        value, kind = _value_of_kind(value, other), other
    if kind == "datetime" and other == "date":
        wanted, other = datetime.combine(wanted, time()), kind
    if kind != other or value is None or wanted is None or _has_zone(value) != _has_zone(wanted):
        return None
    return _numbers(value, wanted) if kind == "decimal" else (value, wanted)


def _numbers(value: Any, wanted: Any) -> tuple[Any, Any] | None:
    if isinstance(value, Decimal) or isinstance(wanted, Decimal):
        value, wanted = (Decimal(repr(each)) if isinstance(each, float) else Decimal(each) for each in (value, wanted))
    # A NaN is neither equal to a number nor less, and Decimal's signalling NaN raises.
    return None if any(map(_is_nan, (value, wanted))) else (value, wanted)


def _is_nan(number: Any) -> bool:
    return number.is_nan() if isinstance(number, Decimal) else number != number


def _has_zone(value: Any) -> bool:
    return isinstance(value, datetime | time) and value.utcoffset() is not None


_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)


def _value_of_kind(text: str, kind: Kind) -> Any:
    """Returns the value of this kind that a text in a rule or an argument writes, or None."""
    with suppress(ValueError):
        match kind:
            case "bytes":
                return b64decode(text, validate=True)
            case "decimal" if len(text) <= _TEXT_LIMIT and _DECIMAL.fullmatch(text):
                return Decimal(text)
            case "date":
                return date.fromisoformat(text)
            case "datetime" if len(text) > _DATE_LENGTH:
                return datetime.fromisoformat(text)
            case "time" if ":" in text:
                return time.fromisoformat(text)
            case "duration" if text.lstrip("+-").startswith("P") and len(text) <= _TEXT_LIMIT:
                return _durations().validate_python(text)
            case _:
                return None
    return None


_TEXT_LIMIT = 4_096
_DATE_LENGTH = len("2026-01-01")


@cache
def _durations() -> Any:
    # Imported here: few rules have a duration, and pydantic is slow to import.
    from pydantic import TypeAdapter

    return TypeAdapter(timedelta)
