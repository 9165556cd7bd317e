"""A strict JSON parser. It refuses ambiguous JSON that the standard library accepts."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from toolwire.protocols.base import DEPTH_LIMIT, DIGIT_LIMIT, Refusal
from toolwire.vocabulary.texts.lone_surrogates import find_lone

KEY_LIMIT = 256
"""Maximum length of one key in characters."""

_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str, *, depth: int = DEPTH_LIMIT, surrogates: bool = False) -> Any:
    """Parses a JSON text. With `surrogates`, an escape may represent a lone surrogate.

    Raises:
        JSONDecodeError: The text is not JSON.
        Refusal: The JSON is ambiguous or exceeds a limit: a repeated key, NaN, a lone surrogate, more than `depth`
            levels or a number of more than 4,300 digits.
    """
    check_characters(text)
    check_depth(text, depth)
    value = _DECODER.decode(text)
    if not surrogates and _MAYBE_SURROGATE.search(text):
        check_characters(json.dumps(value, ensure_ascii=False))
    return value


def load_prefix(text: str, position: int) -> tuple[Any, int]:
    """Parses the value that begins at `position`, and returns it with its end. The caller has checked the characters.

    Raises:
        JSONDecodeError: No value begins there, or the value is malformed.
        Refusal: As in `load_json`.
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
    """Returns the refusal of a value with too many levels."""
    return Refusal(f"Brackets are nested deeper than {DEPTH_LIMIT} levels. Write a flatter value.")


def check_depth(text: str, depth: int) -> None:
    """Checks the nesting of brackets outside of strings, so that no parser recurses too deeply.

    Raises:
        Refusal: More than `depth` brackets are open at once.
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
    """Refuses text that UTF-8 cannot encode.

    Raises:
        Refusal: The text holds a lone surrogate.
    """
    found = find_lone(text)
    if found is not None:
        raise Refusal(f"A string holds a lone surrogate, U+{ord(text[found]):04X}. Write the whole character.")


def integer(text: str) -> int:
    """Parses an integer.

    Raises:
        Refusal: The integer has too many digits.
    """
    if len(text) > DIGIT_LIMIT:
        raise Refusal(f"A number has {len(text)} digits; the limit is {DIGIT_LIMIT}.")
    return int(text)


def real(text: str) -> float:
    """Parses a floating point number.

    Raises:
        Refusal: The number is too large for a float.
    """
    value = float(text)
    if not math.isfinite(value):
        raise Refusal(f"The number {text[:40]} is too large. Write a smaller one, or a string.")
    return value


def no_number(word: str) -> NoReturn:
    """Refuses NaN and infinities.

    Raises:
        Refusal: Always. JSON has no such number.
    """
    raise Refusal(f"JSON has no {word}. Write a number, a string or null.")


def check_key(key: str) -> None:
    """Checks the length of a key.

    Raises:
        Refusal: The key is longer than `KEY_LIMIT`.
    """
    if len(key) > KEY_LIMIT:
        raise Refusal(f"The key {key[:20]!r}... has {len(key)} characters; the limit is {KEY_LIMIT}.")


def duplicate_key_refusal(key: str) -> Refusal:
    """Returns the refusal of a repeated key."""
    return Refusal(f"The key {key[:40]!r} is given twice. Write it once.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        raise duplicate_key_refusal(next(key for key, _ in pairs if key in seen or seen.add(key)))
    for key in found:
        check_key(key)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=integer, parse_float=real, parse_constant=no_number)
