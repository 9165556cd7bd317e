"""Lone surrogates: characters that a Python text can hold and UTF-8 cannot encode.

There are three ways, and each has one place. What goes to a provider, a client or telemetry has U+FFFD in their place.
What toolwire writes for itself keeps them, as three bytes each. A portable form is JSON in UTF-8 that still gives the
same value: `toolwire.session.runs.portable_json`.
"""

from __future__ import annotations

import re
from operator import is_
from typing import Any, cast

REPLACEMENT = "\ufffd"

LONE = re.compile("[\ud800-\udfff]")
_KEEP = "surrogatepass"


def find_lone(text: str) -> int | None:
    """Returns the position of the first lone surrogate; None if UTF-8 can encode the text."""
    found = None if text.isascii() else LONE.search(text)
    return found and found.start()


def encodable_text(text: str) -> str:
    """Returns the text with U+FFFD in place of each lone surrogate, so that it can be encoded."""
    return text if text.isascii() else LONE.sub(REPLACEMENT, text)


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


def utf8_bytes(text: str) -> bytes:
    """Returns the text in UTF-8, with three bytes for each lone surrogate. `utf8_text` returns the same text."""
    return text.encode("utf-8", _KEEP)


def utf8_text(data: bytes) -> str:
    """Returns the text of bytes that `utf8_bytes` made.

    Raises:
        UnicodeDecodeError: They are not such bytes.
    """
    return data.decode("utf-8", _KEEP)


def _encodable_members(members: dict[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    is_same = True
    for key, item in members.items():
        name, mended = encodable(key), encodable(item)
        is_same = is_same and name is key and mended is item
        while name is not key and (name in found or name in members):
            name += REPLACEMENT
        found[name] = mended
    return members if is_same else found
