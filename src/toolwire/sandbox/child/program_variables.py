"""Variables of earlier programs at a program's start, and its own at its end, for the next program."""

import datetime
import json
from decimal import Decimal
from types import FunctionType, ModuleType
from typing import Any

from .values import DEPTH_LIMIT, TAG, VALUE, NotData, kind_of, tag, untag
from .wire import dump, encode, size_of
from .world import dates
from .world.source import FILENAME, Earlier

SOURCE = "source"
"""The tag of a function's source."""
LEFT_OUT_CAP = 100
"""Names that are told as left out."""
WEIGHT_CAP = 16_777_216
"""Bytes of memory that the variables may take in the host, as it estimates them."""
NAME_CAP = 100
"""Characters of a name that is told as left out, and of its reason."""
_FRAME_CAP = 1 << 23
_WEIGHTS = (("{", 130), ("[", 90), (",", 40), (":", 72), ('"', 20))
"""The host's own estimate of what a mark in JSON takes."""
_SCALARS = frozenset(
    {bool, int, float, type(None), datetime.datetime, datetime.date, datetime.time, datetime.timedelta, Decimal}
)
_NOTHING = object()


class _LeftOut(Exception):
    """A variable is not kept. The text is the reason."""


class ProgramVariables:
    """The variables that this program shares with earlier and later ones."""

    def __init__(self, texts: dict[str, str], limit_bytes: int) -> None:
        found = {name: json.loads(text) for name, text in texts.items()}
        functions = tuple(item[VALUE] for item in found.values() if _is_source(item))
        self.earlier = Earlier(functions=functions, names=frozenset(found))
        self._values = {name: untag(item) for name, item in found.items() if not _is_source(item)}
        self._limit_bytes = limit_bytes
        self._there: dict[str, Any] = {}
        """What a program has without any variables."""

    def enter(self, names: dict[str, Any]) -> None:
        """Adds the values to a program's names."""
        self._there = dict(names)
        names.update(self._values)

    def frame(self, names: dict[str, Any], own: dict[str, Any]) -> bytes:
        """Returns the frame with the variables of a program that has ended. `own` are the program's builtins."""
        room = _Room(self._limit_bytes)
        values, functions, left_out = list[str](), dict[str, int](), dict[str, str]()
        for name, value in list(names.items()):
            if not _is_name(name) or self._there.get(name, _NOTHING) is value or own.get(name, _NOTHING) is value:
                continue
            if _is_function(name, value):
                functions[name] = value.__code__.co_firstlineno
                continue
            try:
                values.append(room.take(name, value))
            except _LeftOut as reason:
                left_out[name] = str(reason)
            except Exception as error:  # noqa: BLE001 - no variable may keep the others, or the result, from the host
                left_out[name] = kind_of(error).__name__
        told = {name[:NAME_CAP]: reason[:NAME_CAP] for name, reason in list(left_out.items())[:LEFT_OUT_CAP]}
        return encode('["variables",', f"[{{{','.join(values)}}},{dump(functions)},{dump(told)}]", _FRAME_CAP)


class _Room:
    """The bytes that are left for values."""

    def __init__(self, limit_bytes: int) -> None:
        self._bytes = limit_bytes
        self._weight = WEIGHT_CAP

    def take(self, name: str, value: Any) -> str:
        """Returns the variable as a member of a JSON object. Raises _LeftOut if it is not plain or does not fit."""
        # Each part takes at least one byte, so that a value far too large is not written out.
        self._count(value, self._bytes, DEPTH_LIMIT)
        try:
            text = f"{dump(name)}:{dump(tag(value))}"
        except NotData:
            raise _LeftOut("too large") from None
        size = size_of(text)
        weight = size * (1 if text.isascii() else 4) + sum(text.count(mark) * each for mark, each in _WEIGHTS)
        if size > self._bytes or weight > self._weight:
            raise _LeftOut("too large")
        self._bytes -= size
        self._weight -= weight
        return text

    def _count(self, value: Any, left: int, depth: int) -> int:
        """Returns the bytes that are left after the value, at most."""
        if depth < 0:
            raise _LeftOut("nested too deeply")
        kind = kind_of(value)
        left -= 1
        if kind is str or kind is bytes:
            left -= len(value)
        elif kind is dict:
            for key, item in value.items():
                left = self._count(item, self._count(key, left, depth - 1), depth - 1)
        elif kind in (list, tuple, set, frozenset):
            for item in value:
                left = self._count(item, left, depth - 1)
        elif reason := _reason_against(value):
            raise _LeftOut(reason)
        if left < 0:
            raise _LeftOut("too large")
        return left


def _reason_against(value: Any) -> str:
    """Returns why a value without parts cannot be kept; empty if it can."""
    kind = kind_of(value)
    if value is dates.datetime or issubclass(kind, ModuleType):
        return "module"
    if kind not in _SCALARS:
        return kind.__name__
    if kind in (datetime.datetime, datetime.time):
        # Its text has the offset of a zone, and neither the name nor the rules.
        if value.tzinfo is not None and not _is_offset(value.tzinfo):
            return f"{kind.__name__} with a named zone"
        if value.fold:
            return f"{kind.__name__} with fold=1"
    return ""


def _is_offset(zone: datetime.tzinfo) -> bool:
    """True if the zone is nothing but an offset from UTC. Zones with the same offset are equal; their `repr` is not."""
    if kind_of(zone) is not datetime.timezone:
        return False
    return repr(zone) == repr(datetime.timezone(zone.utcoffset(None) or datetime.timedelta()))


def _is_source(item: Any) -> bool:
    return kind_of(item) is dict and item.get(TAG) == SOURCE


def _is_name(name: Any) -> bool:
    return kind_of(name) is str and name.isidentifier() and not (name.startswith("__") and name.endswith("__"))


def _is_function(name: str, value: Any) -> bool:
    """True if the program's own `def` at its top made the function, and it needs no other scope."""
    if kind_of(value) is not FunctionType:
        return False
    code = value.__code__
    return code.co_filename == FILENAME and code.co_qualname == name and not code.co_freevars
