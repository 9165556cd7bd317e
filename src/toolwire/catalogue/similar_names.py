"""Similar names: the registered name that an unknown one means, and names that readers confuse."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from toolwire.definition.naming import NAME_LIMIT

NEAREST_SHARE = 0.62
"""Minimum share of two names that lies in common words. `delete_user` and `get_user` share 0.47 and are not near;
`weather` and `get_weather` share 0.82.
"""

_SAME_WORD = 0.75
"""Minimum likeness of two words. `serch` and `search` count as one word (0.91), `get` and `set` do not (0.67)."""
_SAME_LETTERS = 0.87
"""Minimum likeness of two names without word boundaries, as in `gitstatus`."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns the name that `name` most likely meant; None if no name is similar enough.

    Letters may be missing, doubled, swapped or wrong. Words may differ in case, order and number, and one word may be
    extra or missing.
    """
    if len(name) > NAME_LIMIT:
        return None
    words = _words(name)
    scored = [(_likeness(words, _words(candidate)), candidate) for candidate in names]
    best = max(scored, default=(0.0, ""), key=lambda pair: pair[0])
    return best[1] if best[0] >= NEAREST_SHARE else None


def suggestion(name: str | None) -> str:
    """Returns `; did you mean 'search'?`, or an empty text."""
    return f"; did you mean {name!r}?" if name else ""


def _likeness(one: list[str], two: list[str]) -> float:
    """Returns 1.0 for the same words in any order, else the share of both names that lies in common words."""
    first, second = "".join(one), "".join(two)
    if not first or not second:
        return 0.0
    alike = _ratio(first, second, _SAME_LETTERS)
    left, shared = list(two), 0.0
    for word in one:
        found = max(left, key=lambda other: _same(word, other), default="")
        weight = _same(word, found)
        if weight:
            left.remove(found)
            shared += weight * (len(word) + len(found))
    return max(alike, shared / (len(first) + len(second)))


def _same(one: str, two: str) -> float:
    """Returns the likeness of two words, from 0.75 up; 0.0 if they differ more."""
    if one == two:
        return 1.0
    if len(one) == len(two) > 2 and one[0] == two[0] and sorted(one) == sorted(two):
        return 0.9
    return _ratio(one, two, _SAME_WORD)


def _ratio(one: str, two: str, least: float) -> float:
    """Returns the share of common letters, or 0.0 if it is below `least`."""
    # The lengths alone decide most pairs, much faster than a comparison.
    if 2 * min(len(one), len(two)) < least * (len(one) + len(two)):
        return 0.0
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    ratio = matcher.ratio() if matcher.quick_ratio() >= least else 0.0
    return ratio if ratio >= least else 0.0


def _words(name: str) -> list[str]:
    """Splits a name into lower-case words: `getUserName` and `get-user.name` give `get user name`.

    `fetchURL` gives `fetch url`.
    """
    spaced = "".join(
        f" {letter}" if letter.isupper() and not name[max(place - 1, 0)].isupper() else letter
        for place, letter in enumerate(name)
    )
    return "".join(letter if letter.isalnum() else " " for letter in spaced.lower()).split()


_LETTERS = str.maketrans(
    {
        **dict(zip("аеорсухіјѕһԁԛԝѵкмтвнгп", "aeopcyxijshdqwvkmtbhrn", strict=True)),
        **dict(zip("αβγεηικνορτυχω", "abyenikvoptuxw", strict=True)),
        **dict(zip("ıɑɡɩʋƅһ", "iagivbh", strict=True)),
        "0": "o",
        "1": "l",
        "i": "l",
        "|": "l",
        "-": None,
        "_": None,
        ".": None,
        "/": None,
        ":": None,
        " ": None,
    }
)
"""Maps letters and digits to the Latin letters they look like, and removes separators."""


def skeleton(name: str) -> str:
    """Returns a text that is equal for names that look alike."""
    if name.isascii():
        return name.lower().translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", name).lower()
    # Translated twice: the Latin letter for a Cyrillic one may itself have a replacement.
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    return bare.translate(_LETTERS).translate(_LETTERS)
