"""Unicode's normal forms, at a cost that grows with the text alone.

`unicodedata` sorts the marks of one letter by insertion: 40,000 marks take 14 seconds. Here a run of more than
`MARKS_LIMIT` marks is normalised in parts, as Unicode's stream-safe format (UAX 15) does. No script has such a run.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Literal

MARKS_LIMIT = 30
"""Maximum marks in a row that are sorted together: the limit of Unicode's stream-safe format."""

_SCRIPTS_END = 0x20000
"""The code points below it hold all marks and all letters that compose. Above are ideographs."""
_BECOME_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"
"""Characters that are no marks, and become some."""

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def normalize_text(form: Form, text: str) -> str:
    """Returns the text in a normal form."""
    if text.isascii():
        return text
    parts: list[str] = []
    done = 0
    for run in _long_runs().finditer(text):
        for end in range(run.start() + MARKS_LIMIT, run.end(), MARKS_LIMIT):
            parts.append(unicodedata.normalize(form, text[done:end]))
            done = end
    return "".join((*parts, unicodedata.normalize(form, text[done:])))


@lru_cache(4_096)
def joins(character: str) -> bool:
    """True if the character may become one with the character before it, as a mark or a part of a syllable does."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) != 0 or "\u1160" <= first <= "\u11ff" or first in _second_parts()


@cache
def _long_runs() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(_SCRIPTS_END) if unicodedata.combining(chr(code)))
    return re.compile(f"[{marks}{_BECOME_MARKS}]{{{MARKS_LIMIT + 1},}}")


@cache
def _second_parts() -> frozenset[str]:
    found = (unicodedata.decomposition(chr(code)).split() for code in range(_SCRIPTS_END))
    return frozenset(chr(int(parts[1], 16)) for parts in found if len(parts) == 2 and not parts[0].startswith("<"))
