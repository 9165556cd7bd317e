"""Ways to spell a text that a tool may take for the same."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cf", "Cn", "Co", "Cs"})
_SELECTORS = frozenset(chr(code) for code in (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)))


def fold(text: str) -> str:
    """The text without case, width and what cannot be seen; each run of spaces and control characters is one space.

    Letters that only look alike, a Latin and a Cyrillic `a`, stay different: they are to every tool.
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
