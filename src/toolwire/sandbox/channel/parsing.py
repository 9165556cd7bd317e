"""Turns the bytes of one frame into values; every defect becomes a ProtocolViolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolwire.sandbox.wire import INTEGER_DIGITS_CAP, WEIGHT_CAP, decode, kind_of, needs_untag, scan, scan_long
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.texts.lone_surrogates import utf8_text
from toolwire.vocabulary.values import untag


class ProtocolViolation(Exception):
    """The program's process sent bytes that our stubs never send; the text names the defect."""


def parse_frame(data: bytes) -> tuple[list[Any], bool]:
    """Returns a frame as JSON, and True if its values may have tags. The text is freed before the tags are read."""
    try:
        text = decode(data) if len(data) > INTEGER_DIGITS_CAP else utf8_text(data)
        parts, end = scan(text, 0) if len(text) <= INTEGER_DIGITS_CAP else scan_long(text)
    except (ValueError, RecursionError, StopIteration):
        raise ProtocolViolation("a frame that is not JSON") from None
    if end != len(text) or kind_of(parts) is not list or not parts:
        raise ProtocolViolation("a frame that is not one JSON list")
    return parts, needs_untag(text)


def too_heavy(weight: int) -> ProtocolViolation:
    """Returns the violation for a frame of this weight."""
    return ProtocolViolation(f"a frame that takes about {weight:,} bytes once read, at most {WEIGHT_CAP:,}")


def raw_strings(view: memoryview, sizes: list[int]) -> list[str]:
    """Returns the long strings that follow a frame."""
    raws: list[str] = []
    start = 0
    for size in sizes:
        raws.append(guard_read(lambda start=start, size=size: decode(view[start : start + size])))
        start += size
    return raws


def untag_value(value: Any) -> Any:
    """Returns the value that the tags stand for; a defect is a violation."""
    return guard_read(lambda: untag(value))


def guard_read(read: Callable[[], Any]) -> Any:
    """Returns the value of `read()`; its ValueError, RecursionError or Unrepresentable becomes a violation."""
    try:
        return read()
    except Unrepresentable as error:
        raise ProtocolViolation(f"a value that cannot be read: {error.what}") from None
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"a value that cannot be read: {error}") from None
