"""A TOML parser that first checks limits on depth, dotted keys, digits and amount of structure."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from toolwire.protocols.base import DEPTH_LIMIT, DIGIT_LIMIT, SEGMENT_LIMIT, Refusal
from toolwire.protocols.reading.incoming import line
from toolwire.protocols.reading.toml_strings import string_end

MARK_LIMIT = 2_048
"""Maximum number of the characters `= , . [ {` outside of strings.

The parser takes up to 20 microseconds for each; a reply needs ten.
"""

_MARKS = "=,.[{"
_WORD = re.compile(r"['\"=,.\[\]{}]|(?:#[^\n]*+)?\n|#|[0-9][0-9_]*+")


def load_toml(text: str) -> dict[str, Any]:
    """Parses a TOML document.

    Raises:
        TOMLDecodeError: The text is not TOML.
        Refusal: The text exceeds a limit.
    """
    _check(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        # No known text within the limits gets here, but another Python version may have parser limits of its own.
        raise Refusal(f"The reply cannot be read as TOML: {error}. Write `thought` and `[tool_call]`.") from error


def _check(text: str) -> None:
    if len(text) > DIGIT_LIMIT or text.count("[") + text.count("{") > DEPTH_LIMIT or text.count(".") >= SEGMENT_LIMIT:
        _walk(text)


def _walk(text: str) -> None:
    depth = marks = dots = position = 0
    while found := _WORD.search(text, position):
        word, position = found.group(), found.end()
        if word in "'\"":
            position = string_end(text, found.start())
            if position < 0:
                return  # the parser stops here too
        elif word == "#":
            return  # a comment up to the end
        elif word in _MARKS:
            marks += 1
            dots = dots + 1 if word == "." else 0
            depth += word in "[{"
            if marks > MARK_LIMIT or dots >= SEGMENT_LIMIT or depth > DEPTH_LIMIT:
                raise _refusal(text, found.start(), dots, depth)
        elif word in "]}":
            depth = max(depth - 1, 0)
        elif word[-1] == "\n":
            dots = 0
        elif len(word) > DIGIT_LIMIT:
            raise Refusal(
                f"A number has {len(word)} digits and may have {DIGIT_LIMIT}.", place=line(text, found.start())
            )


def _refusal(text: str, position: int, dots: int, depth: int) -> Refusal:
    if depth > DEPTH_LIMIT:
        message = f"Brackets are nested deeper than {DEPTH_LIMIT} levels."
    elif dots >= SEGMENT_LIMIT:
        message = f"A dotted key has more than {SEGMENT_LIMIT} segments."
    else:
        message = "The reply holds far more keys and values than a call needs."
    return Refusal(f"{message} Write `thought` and `[tool_call]`, nothing else.", place=line(text, position))
