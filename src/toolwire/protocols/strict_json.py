"""JSON by the book: what the standard library lets pass and no two readers agree on is refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from toolwire.protocols.base import DEPTH_LIMIT, DIGIT_LIMIT, Refusal

KEY_LIMIT = 256
"""Characters of one key."""

_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str, *, depth: int = DEPTH_LIMIT) -> Any:
    """The value that the text is.

    Raises:
        JSONDecodeError: it is not JSON, in the plain sense that a reader stops somewhere.
        Refusal: it is JSON that has no one meaning or passes a limit: a key given twice, NaN, half a character, more
            than `depth` levels, a number of more than 4,300 digits.
    """
    check_characters(text)
    check_depth(text, depth)
    value = _DECODER.decode(text)
    if _MAYBE_SURROGATE.search(text):
        check_characters(json.dumps(value, ensure_ascii=False))
    return value


def load_prefix(text: str, position: int) -> tuple[Any, int]:
    """The value that begins exactly here, and where it ends. Characters are taken for checked.

    Raises:
        JSONDecodeError: no value begins here, or it is not JSON to its end.
        Refusal: as `load_json`.
    """
    try:
        value, end = _DECODER.raw_decode(text, position)
    except RecursionError as error:
        raise too_deep() from error
    piece = text[position:end]
    check_depth(piece, DEPTH_LIMIT)
    if _MAYBE_SURROGATE.search(piece):
        check_characters(json.dumps(value, ensure_ascii=False))
    return value, end


def too_deep() -> Refusal:
    """What is said of a value with too many levels."""
    return Refusal(f"Brackets are nested deeper than {DEPTH_LIMIT} levels. Write a flatter value.")


def check_depth(text: str, depth: int) -> None:
    """Counts brackets outside of strings, so that no reader recurses deeper than it can.

    Raises:
        Refusal: more than `depth` are open at once.
    """
    if text.count("[") + text.count("{") <= depth:
        return
    is_open = 0
    for found in _BRACKET.finditer(text):
        mark = found.group()
        if mark in "[{":
            is_open += 1
            if is_open > depth:
                raise too_deep()
        elif mark in "]}":
            is_open -= 1


def check_characters(text: str) -> None:
    """Refuses text that UTF-8 cannot hold.

    Raises:
        Refusal: half a character.
    """
    if half := (None if text.isascii() else _SURROGATE.search(text)):
        raise Refusal(f"A string holds half a character, U+{ord(half[0]):04X}. Write the whole character.")


def integer(text: str) -> int:
    """The number.

    Raises:
        Refusal: it has too many digits.
    """
    if len(text) > DIGIT_LIMIT:
        raise Refusal(f"A number has {len(text)} digits and may have {DIGIT_LIMIT}.")
    return int(text)


def real(text: str) -> float:
    """The number.

    Raises:
        Refusal: it is larger than any number that a program can hold.
    """
    value = float(text)
    if not math.isfinite(value):
        raise Refusal(f"The number {text[:40]} is too large. Write a smaller one, or a string.")
    return value


def no_number(word: str) -> NoReturn:
    """Raises:
    Refusal: always; JSON has no such number.
    """
    raise Refusal(f"JSON has no {word}. Write a number, a string or null.")


def check_key(key: str) -> None:
    """Raises:
    Refusal: the key is too long to be the name of anything.
    """
    if len(key) > KEY_LIMIT:
        raise Refusal(f"The key {key[:20]!r}... has {len(key)} characters and may have {KEY_LIMIT}.")


def repeated(key: str) -> Refusal:
    """What is said of a key that is given twice."""
    return Refusal(f"The key {key[:40]!r} is given twice. Write it once.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        raise repeated(next(key for key, _ in pairs if key in seen or seen.add(key)))
    for key in found:
        check_key(key)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=integer, parse_float=real, parse_constant=no_number)
