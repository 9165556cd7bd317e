"""Invisible characters in texts of strangers. Models read them, and people do not see them."""

from __future__ import annotations

import re
import unicodedata

_RANGES = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u180b-\u180d\u180f\ud800-\uf8ff\ufe00-\ufe0f\U00040000-\U0010ffff]"
)
"""Controls without tab and line ends, lone surrogates, private characters, selectors, and the planes without letters.

Tags (U+E0000 to U+E007F) are in the last of these ranges.
"""
_UNNAMED = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are invisible, but are in no Unicode category of invisible characters."""
_CATEGORIES = frozenset({"Cf", "Cn"})
_JOINERS = "\u200c\u200d"
_JOINED = rf"[^\0-\x7f{_JOINERS}]"
_LOOSE_JOINERS = re.compile(rf"(?<!{_JOINED})[{_JOINERS}]+|[{_JOINERS}]+(?!{_JOINED})|[{_JOINERS}]{{2,}}")
"""Joiners that are not single between two characters beyond ASCII: Persian, Indic scripts and emojis need those."""


def visible_text(text: str) -> str:
    """Returns the text without its invisible characters.

    It leaves out controls other than tab and line ends, characters without width or of direction alone, tags, selectors
    of variants, private and unassigned characters, and lone surrogates. A single joiner between two characters beyond
    ASCII stays.
    """
    found = _RANGES.sub("", text)
    if found.isascii():
        return found
    removed = [ord(character) for character in set(found) if _is_invisible(character)]
    if removed:
        found = found.translate(dict.fromkeys(removed))
    return _LOOSE_JOINERS.sub("", found)


def _is_invisible(character: str) -> bool:
    return character in _UNNAMED or (unicodedata.category(character) in _CATEGORIES and character not in _JOINERS)


_HIDDEN = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Controls without tab and line ends, characters of direction, those without width, and tags."""


def remove_hidden(text: str) -> str:
    """Returns the text of a result without its hidden characters.

    It leaves out less than `visible_text`, because results have words of people: the characters that choose the form
    of an emoji, and private ones, stay.
    """
    if text.isascii() and text.isprintable():
        return text
    found = _HIDDEN.sub("", text)
    return found if found.isascii() else _LOOSE_JOINERS.sub("", found)
