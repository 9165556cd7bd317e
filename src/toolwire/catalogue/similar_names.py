"""Similar names: the registered name that an unknown one means, and names that readers confuse."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from toolwire.definition.naming import NAME_LIMIT
from toolwire.vocabulary.texts.normal_forms import normalized

NEAREST_SHARE = 0.62
"""Minimum share of two names that lies in common words. `delete_user` and `get_user` share 0.47 and are not near;
`weather` and `get_weather` share 0.82.
"""

_SAME_WORD = 0.75
"""Minimum likeness of two words. `serch` and `search` count as one word (0.91), `get` and `set` do not (0.67)."""
_SWAPPED = 0.9
"""The likeness of two words with the same first letter and the same letters in another order."""
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
    # Imported here: the library takes 24 ms, and few calls have a wrong name.
    from rapidfuzz.distance import Indel

    first, second = "".join(one), "".join(two)
    # The lengths alone decide about many names: no more letters can be shared.
    if not first or not second or 2 * min(len(first), len(second)) < NEAREST_SHARE * (len(first) + len(second)):
        return 0.0
    alike = Indel.normalized_similarity(first, second, score_cutoff=_SAME_LETTERS)
    left, letters, shared = list(two), list(map(_letters, two)), 0.0
    for word in one:
        place, weight = _closest(word, left, letters)
        if weight:
            shared += weight * (len(word) + len(left.pop(place)))
            letters.pop(place)
    return max(alike, shared / (len(first) + len(second)))


def _closest(word: str, others: list[str], letters: list[str]) -> tuple[int, float]:
    """Returns the place of the word that is most alike, and its likeness: 0.0 if all differ too much.

    `letters` holds the letters of each of the others. The comparisons are one call of the library, because a name may
    have many words.
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import extractOne

    if word in others:
        return others.index(word), 1.0
    if len(word) > 2 and (own := _letters(word)) in letters:
        return letters.index(own), _SWAPPED
    found = extractOne(word, others, scorer=Indel.normalized_similarity, score_cutoff=_SAME_WORD)
    return (0, 0.0) if found is None else (found[2], found[1])


def _letters(word: str) -> str:
    """Returns a text that is equal for words that begin alike and have the same letters."""
    return word[0] + "".join(sorted(word))


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
    plain = normalized("NFKD", name).lower()
    # Translated twice: the Latin letter for a Cyrillic one may itself have a replacement.
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    return bare.translate(_LETTERS).translate(_LETTERS)
