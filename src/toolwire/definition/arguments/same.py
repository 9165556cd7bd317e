"""Identity of values by type and content at every depth, independent of `==`.

`==` treats 1, 1.0 and True as equal, and a class may define it freely. Here two values are the same only if no function
could distinguish their contents. An object that cannot be inspected is the same only as itself.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections import deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, cast

_COMPARED_AS_THEY_ARE = frozenset({str, int, bool, bytes, datetime.date, datetime.timedelta, range})
_HONEST_MODULES = frozenset({"pathlib", "pathlib._local", "uuid", "ipaddress", "fractions", "pydantic.networks"})
"""Modules whose classes compare their whole content."""


def same(one: Any, other: Any) -> bool:
    """True if the values are the same. Two NaN are; 0.0 and -0.0, 1 and 1.0, a list and a tuple are not."""
    kind = cast("Any", type(one))
    if one is other:
        return True
    if kind is not type(other):
        return False
    if kind in _COMPARED_AS_THEY_ARE:
        return one == other
    if kind is float:
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if kind is Decimal:
        return one.as_tuple() == other.as_tuple()
    if kind in (datetime.datetime, datetime.time):
        return one == other and one.fold == other.fold and _zone(one) == _zone(other)
    return _same_in_parts(one, other, kind)


def _same_in_parts(one: Any, other: Any, kind: Any) -> bool:
    if isinstance(one, Enum | type):
        return False
    if isinstance(one, list | tuple | deque):
        return _same_items(one, other) and _same_attributes(one, other)
    if isinstance(one, set | frozenset):
        return _same_mapping(*({item: item for item in items} for items in (cast("Any", one), other)))
    if isinstance(one, Mapping):
        return _same_mapping(one, other)
    if kind.__module__ in _HONEST_MODULES:
        return bool(one == other)
    if kind is re.Pattern:
        return same((one.pattern, one.flags), (other.pattern, other.flags))
    if hasattr(kind, "get_secret_value"):
        return same(one.get_secret_value(), other.get_secret_value())
    if hasattr(kind, "__pydantic_fields__") or dataclasses.is_dataclass(kind):
        return _same_attributes(one, other)
    return False


def _same_items(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def _same_mapping(one: Any, other: Any) -> bool:
    keys = {key: key for key in other}
    return (
        len(one) == len(keys)
        and all(key in keys and same(key, keys[key]) and same(value, other[key]) for key, value in one.items())
        and same(getattr(one, "default_factory", None), getattr(other, "default_factory", None))
    )


_NOTHING = object()
_OF_MODELS = frozenset({"__pydantic_extra__", "__pydantic_private__"})
"""Attributes for which None and absence count as equal."""
_IGNORED = frozenset({"__weakref__", "__dict__", "__pydantic_fields_set__"})
"""A canonical form has defaults filled in, so the set of given fields cannot be part of a value."""


def _same_attributes(one: Any, other: Any) -> bool:
    """True if all attributes are the same: fields, those set by validators, and private ones."""
    # An attribute may be in the object or, as a default, in its class.
    names = {*getattr(one, "__dict__", ()), *getattr(other, "__dict__", ())}
    names |= {name for base in type(one).__mro__ for name in _slots(base)} - _IGNORED
    return all(same(_attribute(one, name), _attribute(other, name)) for name in names)


def _attribute(value: Any, name: str) -> Any:
    found = getattr(value, name, _NOTHING)
    return found or None if name in _OF_MODELS and found is not _NOTHING else found


def _slots(base: type) -> Iterable[str]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _zone(moment: datetime.datetime | datetime.time) -> object:
    """Returns the time zone. All fixed offsets count as one kind of zone, as they come from text."""
    zone = moment.tzinfo
    if zone is None or hasattr(zone, "key"):
        return zone
    return moment.utcoffset()
