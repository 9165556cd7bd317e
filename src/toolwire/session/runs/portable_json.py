"""JSON text of values with lone surrogates, which UTF-8 cannot encode: reading the text gives exactly the same value.

A lone surrogate is written as an escape. Readers of JSON join the escapes of a high and a low surrogate, so that two
lone ones side by side are written apart: `{"$halves": ["\\ud83d", "\\ude00"]}`. A mapping with such a key, or with the
key `$halves`, is `{"$halves": {"keys": [...], "values": [...]}}`.
"""

from __future__ import annotations

import re
from typing import Any, cast

from toolwire.vocabulary.texts.lone_surrogates import LONE
from toolwire.vocabulary.values import canonical

LONE_SURROGATES_KEY = "$halves"

_BETWEEN = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


def portable_json(value: Any) -> str:
    """Returns the canonical JSON of the value, which UTF-8 can encode. `from_portable` gives the value back.

    Raises:
        Unrepresentable: JSON cannot hold the value.
    """
    text = canonical(value)
    if _BETWEEN.search(text) or LONE_SURROGATES_KEY in text:
        text = canonical(_split_surrogates(value))
    return LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def from_portable(value: Any) -> Any:
    """Returns the value that `portable_json` was given, from the parsed text. It changes no other JSON."""
    if isinstance(value, list):
        return [from_portable(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    keyed = cast("dict[str, Any]", value)
    if keyed.keys() != {LONE_SURROGATES_KEY}:
        return {key: from_portable(item) for key, item in keyed.items()}
    match keyed[LONE_SURROGATES_KEY]:
        case [*parts] if all(type(part) is str for part in parts):
            return "".join(cast("list[str]", parts))
        case {"keys": [*keys], "values": [*values], **more} if not more and len(keys) == len(values):
            names = [from_portable(key) for key in keys]
            if all(type(name) is str for name in names):
                return dict(zip(names, map(from_portable, values), strict=True))
        case _:
            pass
    return keyed


def _split_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        parts = _BETWEEN.split(value)
        return {LONE_SURROGATES_KEY: parts} if len(parts) > 1 else value
    if isinstance(value, list | tuple):
        return [_split_surrogates(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    keyed = cast("dict[str, Any]", value)
    if any(key == LONE_SURROGATES_KEY or _BETWEEN.search(key) for key in keyed):
        return {
            LONE_SURROGATES_KEY: {
                "keys": [_split_surrogates(key) for key in keyed],
                "values": [_split_surrogates(item) for item in keyed.values()],
            }
        }
    return {key: _split_surrogates(item) for key, item in keyed.items()}
