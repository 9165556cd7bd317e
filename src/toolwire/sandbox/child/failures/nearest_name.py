"""Finds the tool that an unknown name means, by the words that both names share.

The host imports it too: it is the one function for all calling formats, so that a program and a direct call get the
same answer.
"""

from collections.abc import Iterable

LONGEST_NAME = 128
"""Maximum number of characters of a name that is compared: the longest name that a tool may have."""

NEAREST_SHARE = 0.62
"""Minimum share of two names that lies in common words. `delete_user` and `get_user` share 0.47 and are not near;
`weather` and `get_weather` share 0.82.
"""

_SHARED_WORDS = 2
"""Number of common words from which words count whatever their length: `calculate_area_of_circle` and
`area_of_circle`. One common word of two is a verb or a noun that many tools have.
"""
WORDS_LIMIT = 16
"""Maximum number of words of a name that are compared, from its start. A name of 128 letters may have 64."""

_SAME_WORD = 0.75
"""Minimum likeness of two words. `serch` and `search` count as one word (0.91), `get` and `set` do not (0.67)."""
_SWAPPED = 0.9
"""The likeness of two words with the same first letter and the same letters in another order."""
_SAME_LETTERS = 0.87
"""Minimum likeness of two names without word boundaries, as in `gitstatus`."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Returns the name that `name` most likely meant; None if no name is similar enough.

    Letters may be missing, doubled, swapped or wrong. Words may differ in case, order and number. One word may be
    extra or missing, or another word of the same meaning if two words or more are the same.
    """
    if len(name) > LONGEST_NAME:
        return None
    wanted = _Wanted(words_of(name))
    best, most = None, 0.0
    for candidate in names:
        share = wanted.share_with(words_of(candidate))
        if share > most:
            best, most = candidate, share
    return best if most >= NEAREST_SHARE else None


def words_of(name: str) -> list[str]:
    """Splits a name into lower-case words: `getUserName` and `get-user.name` give `get user name`.

    `fetchURL` gives `fetch url`. At most `WORDS_LIMIT` words are returned.
    """
    spaced = "".join(
        f" {letter}" if letter.isupper() and not name[max(place - 1, 0)].isupper() else letter
        for place, letter in enumerate(name)
    )
    return "".join(letter if letter.isalnum() else " " for letter in spaced.lower()).split()[:WORDS_LIMIT]


class _Wanted:
    """The words of the unknown name, prepared for many comparisons."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._whole = _Letters("".join(words))
        self._letters = {word: _Letters(word) for word in words}

    def share_with(self, words: list[str]) -> float:
        """Returns 1.0 for the same words in any order, else the share of both names that lies in common words."""
        other = "".join(words)
        first, second = len(self._whole.text), len(other)
        # The lengths alone decide about many names: no more letters can be shared.
        if not first or not second or 2 * min(first, second) < NEAREST_SHARE * (first + second):
            return 0.0
        left, shared, count = list(words), 0.0, 0
        for word in self._words:
            found, likeness = self._closest(word, left)
            if likeness:
                left.remove(found)
                shared += likeness * (len(word) + len(found))
                count += 1
        by_words = 2 * count / (len(self._words) + len(words)) if count >= _SHARED_WORDS else 0.0
        alike = self._whole.likeness(other, _SAME_LETTERS)
        return max(alike, shared / (first + second), by_words)

    def _closest(self, word: str, others: list[str]) -> tuple[str, float]:
        """Returns the word that is most alike, and its likeness: 0.0 if all differ too much."""
        if word in others:
            return word, 1.0
        own = self._letters[word]
        best, most = "", 0.0
        for other in others:
            likeness = own.word_likeness(other)
            if likeness > most:
                best, most = other, likeness
        return best, most


class _Letters:
    """A text, with the places of each of its letters as the bits of a number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._sorted = sorted(text)
        self._places: dict[str, int] = {}
        for place, letter in enumerate(text):
            self._places[letter] = self._places.get(letter, 0) | 1 << place

    def word_likeness(self, other: str) -> float:
        """Returns the likeness of another word that is not the same; 0.0 if they are two words."""
        length = len(self.text)
        if len(other) != length:
            return self.likeness(other, _SAME_WORD)
        if length > 2 and other[0] == self.text[0] and sorted(other) == self._sorted:
            return _SWAPPED
        # One letter at least differs, which is too much for short words.
        return self.likeness(other, _SAME_WORD) if length - 1 >= _SAME_WORD * length else 0.0

    def likeness(self, other: str, least: float) -> float:
        """Returns the share of both texts in their longest common subsequence; 0.0 if it is below `least`."""
        own, total = self.text, len(self.text) + len(other)
        needed = least * total / 2
        if needed > min(len(own), len(other)):
            return 0.0
        # Hyyro's bits: each letter takes one step of whole numbers, so that a pair takes microseconds.
        every = (1 << len(own)) - 1
        row = every
        for letter in other:
            common = row & self._places.get(letter, 0)
            row = (row + common) | (row - common)
        shared = len(own) - (row & every).bit_count()
        return 2 * shared / total if shared >= needed else 0.0
