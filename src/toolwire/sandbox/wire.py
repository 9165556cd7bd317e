"""Writes and reads one frame: 4 bytes of length, JSON, and long strings raw behind it.

A frame is a JSON list: its first item names its kind, and its last item is its payload. A frame whose payload has
strings of at least `RAW_FROM` characters is wrapped: `["raw", [size, ...], frame]`. Each such string is `{"$t": "raw",
"v": position}` there, and its bytes follow the header in that order. Through JSON they would take four times as long.
`child/wire.py` is this file's twin on the other side.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, cast

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.exact import dumper
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import DEPTH_LIMIT, TAG, tag

HEADER_BYTES = 4
RAW_FROM = 16_384
RAW = "raw"
LARGE_BYTES = 65_536
"""Frames from this size, in bytes, are weighed, and are decoded outside of an event loop. A smaller one takes a few MB
and a few milliseconds.
"""
WEIGHT_CAP = 25_165_824
"""Bytes that the values of one frame may take in the host's memory. With its bytes, its text, and a second form while
tags are read, a frame stays below 64 MB. It holds up other threads for 0.1 s at most.
"""
INTEGER_DIGITS_CAP = 4300
"""Digits of an integer, as Python's own default: to read 400,000 takes a second in which no other thread runs."""
_SURROGATES_STEP = 65_536
"""Bytes to decode in one piece when lone surrogates are among them: each costs a quarter of a microsecond."""
_WEIGHTS = ((b"{", 130), (b"[", 90), (b",", 40), (b":", 72), (b'"', 20))
_WIDEST = 4
"""Bytes that each character of a text takes if one of them is outside of the basic plane."""
kind_of: Callable[[Any], type[Any]] = type
"""`type` with one argument, with a signature that a type checker follows."""
_VALUE = "v"
SCALARS = frozenset({int, bool, float, type(None), str})
_TAG_TEXT = f'"{TAG}"'


class Oversized(Exception):
    """A frame is larger than the receiver accepts."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(f"{size:,} bytes, at most {cap:,} fit")
        self.size = size
        self.cap = cap


def encode(head: str, payload: Any, cap: int) -> bytes:
    """Returns the frame of a head and a payload, which is tagged. The head is text up to the payload, as
    `["answer",7,`.

    Raises:
        Unrepresentable: the payload holds a value that no tag stands for.
        Oversized: the frame is larger than `cap` bytes.
    """
    text = _quick(payload)
    if text is None:
        return _encode_tagged(head, payload, cap)
    data = utf8_bytes(f"{head}{text}]")
    size = len(data)
    if size > cap:
        raise Oversized(size, cap)
    return size.to_bytes(HEADER_BYTES, "big") + data


def lift(value: Any, raws: list[bytes]) -> Any:
    """Returns the tagged value with its long strings moved to `raws`."""
    kind = kind_of(value)
    if kind is str:
        if len(value) < RAW_FROM:
            return value
        raws.append(utf8_bytes(value))
        return {TAG: RAW, _VALUE: len(raws) - 1}
    if kind is list:
        return [lift(item, raws) for item in value]
    if kind is dict:
        return {key: lift(item, raws) for key, item in value.items()}
    return value


def decode(data: bytes | memoryview) -> str:
    """Returns the text of UTF-8 with lone surrogates. It decodes in pieces, so that other threads can run in between.

    Raises:
        ValueError: the data is not such text.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        pieces: list[str] = []
        start = 0
        while start < len(data):
            end = _character_end(data, start + _SURROGATES_STEP)
            pieces.append(str(data[start:end], "utf-8", "surrogatepass"))
            start = end
        return "".join(pieces)


def settle(value: Any, raws: list[str]) -> Any:
    """Returns the value with its long strings put into their places, each into one.

    Raises:
        ValueError: a place does not name a string, two places name the same one, or a string has no place.
    """
    left: dict[Any, str] = dict(enumerate(raws))
    settled = _settle(value, left)
    if left:
        raise ValueError("a string that no place names")
    return settled


def needs_untag(text: str) -> bool:
    """Returns True if the text may hold tags or be nested deeper than values may be; False is certain."""
    if _TAG_TEXT in text:
        return True
    # Each level takes at least a bracket to open and one to close.
    return len(text) >= 2 * DEPTH_LIMIT and text.count("[") + text.count("{") >= DEPTH_LIMIT


def weigh(data: bytes) -> int:
    """Returns an upper bound of the bytes that reading a frame takes. It counts marks, those within strings too."""
    is_narrow = data.isascii() and b"\\u" not in data
    return len(data) * (1 if is_narrow else _WIDEST) + sum(data.count(mark) * weight for mark, weight in _WEIGHTS)


def weight_of(value: Any) -> int:
    """Returns the bytes that a value takes in memory; an object in several places counts at each of them."""
    weight = 0
    left = [value]
    while left:
        item = left.pop()
        weight += sys.getsizeof(item)
        if isinstance(item, dict):
            left += item
            left += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            left += item
    return weight


def scan_long(text: str) -> tuple[Any, int]:
    """Works as `scan`, from the start of a text that may hold an endless integer.

    Raises:
        ValueError: it is not JSON, or it holds an integer of more than `INTEGER_DIGITS_CAP` digits.
        StopIteration: the text does not begin with a JSON value.
    """
    is_bounded = 0 < sys.get_int_max_str_digits() <= INTEGER_DIGITS_CAP
    return scan(text, 0) if is_bounded else _scan_bounded(text, 0)


def _settle(value: Any, left: dict[Any, str]) -> Any:
    """Changes lists and objects in place: they were just made for this frame, and a copy would take as much memory
    again.
    """
    kind = kind_of(value)
    if kind is list:
        for place, item in enumerate(value):
            if kind_of(item) in _CONTAINERS:
                value[place] = _settle(item, left)
    elif kind is dict:
        if value.get(TAG) == RAW:
            return _raw(value.get(_VALUE), left)
        for key, item in value.items():
            if kind_of(item) in _CONTAINERS:
                value[key] = _settle(item, left)
    return value


def _raw(position: Any, left: dict[Any, str]) -> str:
    if type(position) is not int or position not in left:
        raise ValueError("a place that names no string, or one that is in its place already")
    return left.pop(position)


def _character_end(data: bytes | memoryview, end: int) -> int:
    """Returns the position at or before `end` at which no character is cut in two."""
    if end >= len(data):
        return len(data)
    for place in range(end, end - _WIDEST, -1):
        if data[place] & 0xC0 != 0x80:
            return place
    return end


def _encode_tagged(head: str, payload: Any, cap: int) -> bytes:
    raws: list[bytes] = []
    text = f"{head}{dump(lift(tag(payload), raws))}]"
    if raws:
        text = f'["{RAW}",{dump([len(raw) for raw in raws])},{text}]'
    data = utf8_bytes(text)
    size = len(data) + sum(map(len, raws))
    if size > cap:
        raise Oversized(size, cap)
    return b"".join([len(data).to_bytes(HEADER_BYTES, "big"), data, *raws])


def _quick(payload: Any) -> str | None:
    """Returns the payload's text if it is flat and small, as in most calls and answers; otherwise None."""
    kind = kind_of(payload)
    if kind is dict:
        for key, item in payload.items():
            inner = kind_of(item)
            if (
                inner not in SCALARS
                or (inner is str and len(item) >= RAW_FROM)
                or kind_of(key) is not str
                or key == TAG
            ):
                return None
    elif kind not in SCALARS or (kind is str and len(payload) >= RAW_FROM):
        return None
    try:
        return str(payload) if kind is int else dump(payload)
    except ValueError:  # NaN or an endless integer: the long way has a tag or a good error for it
        return None


def _refuse_type(value: Any) -> Any:
    raise Unrepresentable(f"a value of type {type(value).__name__}", path="")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


dump = dumper(_refuse_type)
"""Returns the JSON text of a value made of JSON types only."""
dump_sorted = dumper(_refuse_type, sort_keys=True)
"""Works as `dump`, with the keys of objects in order: equal values give equal texts."""
_CONTAINERS = frozenset({list, dict})


def _parse_integer(digits: str) -> int:
    if len(digits) > INTEGER_DIGITS_CAP:
        raise ValueError(f"an integer of {len(digits):,} digits")
    return int(digits)


_Scan = Callable[[str, int], tuple[Any, int]]
scan: _Scan = cast("Any", json.JSONDecoder(parse_constant=_refuse_constant)).scan_once
"""Returns the JSON value at a position of a text, and its end position. Strict: no NaN, no Infinity.

Raises:
    ValueError: it is not JSON.
    StopIteration: the text has no JSON value at that position.
"""
_scan_bounded: _Scan = cast(
    "Any", json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_parse_integer)
).scan_once
"""Works as `scan`, for a host that has lifted Python's own bound on digits."""
