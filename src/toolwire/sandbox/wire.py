"""How one frame is written and read: 4 bytes of length, JSON, and long strings raw behind it.

A frame is a JSON list whose first item names its kind and whose last item is its payload. A frame with strings
of more than `RAW_FROM` characters in its payload is wrapped: `["raw", [size, ...], frame]`, where each string is
`{"$t": "raw", "v": position}` and its bytes follow the header in that order; through JSON they would take four
times as long. `child/wire.py` is this file's twin on the other side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from toolwire.vocabulary.dumping import dumper
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import DEPTH_LIMIT, TAG, tag

HEADER_BYTES = 4
RAW_FROM = 16_384
RAW = "raw"
UNWEIGHED_BYTES = 65_536
"""Bytes of a frame that are read without a look at what they hold: they cannot become more than a few MB."""
WEIGHT_CAP = 25_165_824
"""Bytes that the values of one frame may take in the host's memory: `{"":0},` is 8 bytes of JSON and 250 of Python."""
_WEIGHTS = ((b"{", 250), (b"[", 90), (b",", 40))
kind_of: Callable[[Any], type[Any]] = type
"""`type` with one argument, in words that a type checker follows."""
_VALUE = "v"
SCALARS = frozenset({int, bool, float, type(None), str})
_TAG_TEXT = f'"{TAG}"'


class Oversized(Exception):
    """A frame larger than what the receiving side takes."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(f"{size:,} bytes, at most {cap:,} fit")
        self.size = size
        self.cap = cap


def encode(head: str, payload: Any, cap: int) -> bytes:
    """The frame of a head, as text up to the payload (`["answer",7,`), and a payload, which is tagged.

    Raises:
        Unrepresentable: the payload holds something that no tag stands for.
        Oversized: the frame is larger than `cap` bytes.
    """
    text = _quick(payload)
    if text is None:
        return _encode_tagged(head, payload, cap)
    data = f"{head}{text}]".encode("utf-8", "surrogatepass")
    size = len(data)
    if size > cap:
        raise Oversized(size, cap)
    return size.to_bytes(HEADER_BYTES, "big") + data


def lift(value: Any, raws: list[bytes]) -> Any:
    """The tagged value with its long strings moved to `raws`."""
    kind = kind_of(value)
    if kind is str:
        if len(value) < RAW_FROM:
            return value
        raws.append(value.encode("utf-8", "surrogatepass"))
        return {TAG: RAW, _VALUE: len(raws) - 1}
    if kind is list:
        return [lift(item, raws) for item in value]
    if kind is dict:
        return {key: lift(item, raws) for key, item in value.items()}
    return value


def settle(value: Any, raws: list[str]) -> Any:
    """The value with its long strings back in their places.

    Raises:
        ValueError: a place that names no string.
    """
    kind = kind_of(value)
    if kind is list:
        return [settle(item, raws) for item in value]
    if kind is not dict:
        return value
    if value.get(TAG) != RAW:
        return {key: settle(item, raws) for key, item in value.items()}
    position = value.get(_VALUE)
    if type(position) is not int or not 0 <= position < len(raws):
        raise ValueError("a place that names no string")
    return raws[position]


def needs_untag(text: str) -> bool:
    """Whether the text may hold tags or be nested deeper than values may be; False is certain."""
    if _TAG_TEXT in text:
        return True
    # Each level takes at least a bracket to open and one to close.
    return len(text) >= 2 * DEPTH_LIMIT and text.count("[") + text.count("{") >= DEPTH_LIMIT


def weigh(data: bytes) -> int:
    """About how many bytes a frame's values take once read, at a glance: what stands within strings counts too."""
    return len(data) + sum(data.count(mark) * weight for mark, weight in _WEIGHTS)


def _encode_tagged(head: str, payload: Any, cap: int) -> bytes:
    raws: list[bytes] = []
    text = f"{head}{dump(lift(tag(payload), raws))}]"
    if raws:
        text = f'["{RAW}",{dump([len(raw) for raw in raws])},{text}]'
    data = text.encode("utf-8", "surrogatepass")
    size = len(data) + sum(map(len, raws))
    if size > cap:
        raise Oversized(size, cap)
    return b"".join([len(data).to_bytes(HEADER_BYTES, "big"), data, *raws])


def _quick(payload: Any) -> str | None:
    """The payload's text if it is flat and small, which most calls and answers are; else None."""
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


def _refuse(value: Any) -> Any:
    raise Unrepresentable(f"a value of type {type(value).__name__}", path="")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


dump = dumper(_refuse)
"""JSON text of a value made of JSON types only."""
dump_sorted = dumper(_refuse, sort_keys=True)
"""The same, with the keys of objects in order: equal values give equal texts."""
scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder(parse_constant=_refuse_constant)).scan_once
"""The JSON value at a place of a text, and where it ends. Strict: no NaN, no Infinity.

Raises:
    ValueError: it is no JSON.
    StopIteration: there is none.
"""
