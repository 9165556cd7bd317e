"""Prepares text for a model: cuts long texts and replaces characters that cannot be encoded."""

from __future__ import annotations

import re
from operator import is_
from typing import Any, cast

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable_text(text: str) -> str:
    """Returns the text with U+FFFD in place of each lone surrogate, so that it can be encoded."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def encodable(value: Any) -> Any:
    """Returns the JSON value with `encodable_text` applied to every text. Returns the same object if nothing changes.

    Two keys that become equal stay distinct: the later one gets another U+FFFD.
    """
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        mended = [encodable(item) for item in items]
        return items if all(map(is_, mended, items)) else mended
    if isinstance(value, dict):
        return _encodable_members(cast("dict[Any, Any]", value))
    return value


def _encodable_members(members: dict[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    is_same = True
    for key, item in members.items():
        name, mended = encodable(key), encodable(item)
        is_same = is_same and name is key and mended is item
        while name is not key and (name in found or name in members):
            name += "\ufffd"
        found[name] = mended
    return members if is_same else found


def cut_text(text: str, limit_bytes: int) -> str:
    """Returns the text, or the part of its beginning that fits plus a note with the kept and the total bytes.

    It cuts between characters.
    """
    kept = kept_text(text, limit_bytes)
    if kept is text:
        return text
    kept_bytes, total_bytes = (len(part.encode("utf-8", "replace")) for part in (kept, text))
    return f"{kept}\n[cut: the first {kept_bytes:,} of {total_bytes:,} bytes are shown]"


def kept_text(text: str, limit_bytes: int) -> str:
    """Returns the text if its UTF-8 form fits, else the part of its beginning that fits."""
    if len(text) * 4 <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit_bytes else encoded[:limit_bytes].decode("utf-8", "ignore")


def page_of(text: str, offset: int, limit_bytes: int) -> str:
    """Returns one page of a text, starting at a character offset.

    The page ends after the last line end in its second half, if it has one. It has at least one character, so that
    reading always reaches the end.
    """
    rest = text[offset : offset + limit_bytes]
    length = len(kept_text(rest, limit_bytes)) or 1
    if offset + length < len(text):
        line_end = rest.rfind("\n", 0, length) + 1
        if line_end > length // 2:
            length = line_end
    return rest[:length]
