"""TOML: a parser that first checks limits on the text, and the strings of damaged documents."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from toolwire.protocols.base import DEPTH_LIMIT, DIGIT_LIMIT, SEGMENT_LIMIT, Refusal
from toolwire.protocols.reading.incoming import line_of

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
    _check_limits(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        # No known text within the limits gets here, but another Python version may have parser limits of its own.
        raise Refusal(f"The reply cannot be read as TOML: {error}. Write `thought` and `[tool_call]`.") from error


def _check_limits(text: str) -> None:
    if len(text) > DIGIT_LIMIT or text.count("[") + text.count("{") > DEPTH_LIMIT or text.count(".") >= SEGMENT_LIMIT:
        _count_marks(text)


def _count_marks(text: str) -> None:
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
                raise _limit_refusal(text, found.start(), dots, depth)
        elif word in "]}":
            depth = max(depth - 1, 0)
        elif word[-1] == "\n":
            dots = 0
        elif len(word) > DIGIT_LIMIT:
            raise Refusal(
                f"A number has {len(word)} digits; the limit is {DIGIT_LIMIT}.", place=line_of(text, found.start())
            )


def _limit_refusal(text: str, position: int, dots: int, depth: int) -> Refusal:
    if depth > DEPTH_LIMIT:
        message = f"Brackets are nested deeper than {DEPTH_LIMIT} levels."
    elif dots >= SEGMENT_LIMIT:
        message = f"A dotted key has more than {SEGMENT_LIMIT} segments."
    else:
        message = "The reply holds far more keys and values than a call needs."
    return Refusal(f"{message} Write `thought` and `[tool_call]`, nothing else.", place=line_of(text, position))


_TRIPLE_END = re.compile(r'\\|"""')
_BASIC_END = re.compile(r'[\\"\n]')
_LITERAL_END = re.compile(r"['\n]")
_MOST_CLOSING_QUOTES = 5  # a triple-quoted string may end in two quotes of its own


def string_end(text: str, position: int) -> int:
    """Returns the end of the string that opens at this quote, including its closing quotes. -1 if it is not closed."""
    quote = text[position]
    if not text.startswith(quote * 3, position):
        return _short_end(text, position + 1, _BASIC_END if quote == '"' else _LITERAL_END)
    end = text.find("'''", position + 3) if quote == "'" else _triple_end(text, position + 3)
    if end < 0:
        return -1
    most = end + _MOST_CLOSING_QUOTES
    end += 3
    while end < most and text.startswith(quote, end):
        end += 1
    return end


def _triple_end(text: str, position: int) -> int:
    while found := _TRIPLE_END.search(text, position):
        if found.group() != "\\":
            return found.start()
        position = found.end() + 1
    return -1


def _short_end(text: str, position: int, end: re.Pattern[str]) -> int:
    while found := end.search(text, position):
        if found.group() == "\n":
            return -1
        if found.group() != "\\":
            return found.end()
        position = found.end() + 1
    return -1


_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[ \t]*+\n[ \t\n]*+|.)?", re.DOTALL)
_PLAIN_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def readings(raw: str) -> tuple[str, ...]:
    """Returns the possible readings of the content of a damaged basic string: with escapes decoded, and unchanged.

    Escapes that TOML does not know stay unchanged in both. Equal readings are returned once.
    """
    if "\\" not in raw:
        return (raw,)
    return tuple(dict.fromkeys((_ESCAPE.sub(_unescape, raw), raw)))


def _unescape(escape: re.Match[str]) -> str:
    text = escape.group()
    if text[1:] in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[text[1:]]
    if len(text) > 2 and text[1] in "uU":
        code = int(text[2:], 16)
        return chr(code) if code < 0xD800 or 0xE000 <= code <= 0x10FFFF else text
    return "" if "\n" in text else text
