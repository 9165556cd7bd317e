"""Text roughly as a person sees it on a terminal: hidden characters are gone, controls have taken effect."""

from __future__ import annotations

import re
import unicodedata

COLUMNS = 80
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][A-Z0-9]|c)")
_ERASES = ("\x1b[2K", "\x1b[1K")
_FOLDED = str.maketrans("асеорхуіѕԁοАВЕΑΒа", "aceopxyisdoABEABa")
_NOTHING = "\u034f\u115f\u1160\u17b4\u2800\u3164\uffa0"


def seen(text: str) -> str:
    """The text as it looks; two that give the same are not told apart."""
    return "\n".join(_row(row) for row in _rows(text))


def _rows(text: str) -> list[str]:
    rows: list[str] = []
    for row in re.split(r"[\n\u2028\u2029\x85\x0b\x0c]", text):
        if rows and row.startswith("\x1b[1A"):
            rows.pop()
            row = row[4:]
        rows.append(row)
    return rows


def _row(row: str) -> str:
    for erase in _ERASES:
        row = row.rpartition(erase)[2]
    row = re.sub(r"\x1b\[8m.*?\x1b\[0m", "", row)
    drawn: list[str] = []
    place = 0
    for character in _ESCAPE.sub("", _reordered(row)):
        if character == "\r":
            place = 0
        elif character == "\b":
            place = max(0, place - 1)
        elif not _is_unseen(character):
            drawn[place : place + 1] = [character]
            place += 1
    look = unicodedata.normalize("NFKC", "".join(drawn)).translate(_FOLDED)
    return look.rstrip(" ")


def _is_unseen(character: str) -> bool:
    code = ord(character)
    return (
        unicodedata.category(character) in ("Cf", "Cc", "Cn", "Co")
        or character in _NOTHING
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE01EF
    )


def _reordered(row: str) -> str:
    return re.sub("[\u202e\u2067]([^\u202c\u2069]*)[\u202c\u2069]?", lambda found: found[1][::-1], row)
