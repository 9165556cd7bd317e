"""Normalises spellings that a tool may treat as equal."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cf", "Cn", "Co", "Cs"})
_SELECTORS = frozenset(chr(code) for code in (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)))


def fold(text: str) -> str:
    """Removes case, width and invisible characters. A run of spaces and control characters becomes one space.

    Letters that only look alike, such as a Latin and a Cyrillic `a`, stay different: every tool treats them as
    different.
    """
    if not text.isascii():
        visible = (
            letter
            for letter in unicodedata.normalize("NFKC", text)
            if letter not in _SELECTORS and unicodedata.category(letter) not in _INVISIBLE
        )
        text = unicodedata.normalize("NFKC", "".join(visible).casefold())
    spaced = "".join(letter if letter.isprintable() and not letter.isspace() else " " for letter in text.lower())
    while "  " in spaced:
        spaced = spaced.replace("  ", " ")
    return spaced
