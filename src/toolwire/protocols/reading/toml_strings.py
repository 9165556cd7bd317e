"""TOML strings in damaged text: their end, and the possible readings of their escapes."""

from __future__ import annotations

import re

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
    return tuple(dict.fromkeys((_ESCAPE.sub(_unescaped, raw), raw)))


def _unescaped(escape: re.Match[str]) -> str:
    text = escape.group()
    if text[1:] in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[text[1:]]
    if len(text) > 2 and text[1] in "uU":
        code = int(text[2:], 16)
        return chr(code) if code < 0xD800 or 0xE000 <= code <= 0x10FFFF else text
    return "" if "\n" in text else text
