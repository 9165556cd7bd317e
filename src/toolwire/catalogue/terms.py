"""Terms of texts, and senses of queries: for each word of a query, the terms that mean the same in English and Chinese.

Terms are stems of English words, Chinese characters and pairs of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

_CHINESE = "㐀-鿿"
_PIECE = re.compile(rf"[{_CHINESE}]+|[^\W_{_CHINESE}]+")
_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_STOP = """
a an the of to in on at for and or but is are was were be been this that these those my your our his her its their
me i you we they he she it him us them with by from as into onto about please can could would will shall should do
does did how whom when where why there here some any if so not no than then too very also just only
have has had let want need s t ve re ll d
"""
STOP_WORDS = frozenset(_STOP.split())
"""English words that do not describe a tool."""

STOP_CHARACTERS = frozenset("的了吗呢把给请我你您他她吧啊")
"""Chinese characters that do not describe a tool."""

STEM_CACHE = 8_192
"""Number of cached stems: more words than the descriptions of a few thousand tools contain."""


def terms(text: str) -> Iterator[str]:
    """Yields the terms of a text in order: `listUserFiles` gives `listuserfil`, `list`, `user` and `fil`."""
    for piece in _PIECE.findall(text):
        yield from _characters(piece) if is_chinese(piece) else _words(piece)


def is_chinese(piece: str) -> bool:
    """True if a piece of text is Chinese."""
    return "㐀" <= piece[0] <= "鿿"


def _words(piece: str) -> Iterator[str]:
    parts = _PART.findall(piece) if piece.isascii() else ()
    whole = piece.lower()
    if whole not in STOP_WORDS:
        yield stem(whole)
    if len(parts) > 1:
        yield from (stem(part) for part in map(str.lower, parts) if part not in STOP_WORDS)


def _characters(run: str) -> Iterator[str]:
    last = ""
    for character in run:
        if character in STOP_CHARACTERS:
            last = ""
            continue
        yield character
        if last:
            yield last + character
        last = character


@lru_cache(maxsize=STEM_CACHE)
def stem(word: str) -> str:
    """Returns the common stem of a word's forms: `copi` for `copies`, `copied` and `copying`. It need not be a word."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = _undouble(word[: -len(ending)]) if ending in ("ing", "ed") else word[: -len(ending)] + instead
            break
    for ending in ("ion", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word


_ENDINGS = (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ss", "ss"), ("us", "us"), ("s", ""), ("ing", ""), ("ed", ""))


def _undouble(word: str) -> str:
    """Removes a doubled last letter: `stopp` loses its second p; `call` and `pass` stay."""
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


# -- senses -----------------------------------------------------------------------------------------------------

OTHER_WORD = 0.8
"""Weight of a synonym, compared with the word itself."""
ONE_CHARACTER = 0.25
"""Weight of a single Chinese character outside the table, compared with two adjacent ones."""
ACROSS_WORDS = 0.3
"""Weight of two adjacent characters that belong to different words."""

THESAURUS = Path(__file__).with_name("thesaurus.txt")
"""The table of senses: one a line, its words separated by spaces; a line with `#` is a comment."""

LONGEST_WORD = 5
"""Maximum characters of a Chinese word that is looked up in the table."""

Sense = Mapping[str, float]
"""Terms with the same sense and their weights. The first term is the query's own."""


def senses(query: str) -> Iterator[Sense]:
    """Yields the sense of each word of the query."""
    for piece in _PIECE.findall(query):
        if is_chinese(piece):
            yield from _chinese(piece)
        else:
            for term in dict.fromkeys(terms(piece)):
                yield {term: 1.0, **_by_stem().get(term, {})}


def _chinese(run: str) -> Iterator[Sense]:
    """Yields a sense for each known word, for the text between known words, and for the pairs across their borders."""
    end = 0
    for start, word in _find_words(run):
        yield from _of_word(word)
        yield from _of_rest(run[end:start])
        if start:
            yield from ({term: ACROSS_WORDS} for term in terms(run[start - 1 : start + 1]) if len(term) > 1)
        end = start + len(word)
    yield from _of_rest(run[end:])


def _find_words(run: str) -> Iterator[tuple[int, str]]:
    """Yields the longest known words from left to right, each with its position."""
    known, start = same_sense(), 0
    while start < len(run):
        sizes = range(LONGEST_WORD, 0, -1)
        word = next((run[start : start + size] for size in sizes if run[start : start + size] in known), "")
        if word:
            yield start, word
        start += len(word) or 1


def _of_word(word: str) -> Iterator[Sense]:
    own = _term(word)
    others = _terms_of(same_sense()[word])
    yield {own: 1.0, **others} if own else others
    if not own:
        yield from ({term: OTHER_WORD} for term in terms(word) if len(term) > 1)


def _of_rest(run: str) -> Iterator[Sense]:
    for term in dict.fromkeys(terms(run)):
        yield {term: 1.0 if len(term) > 1 else ONE_CHARACTER}


def _terms_of(words: Iterable[str]) -> Sense:
    return {term: OTHER_WORD for term in map(_term, words) if term}


def _term(word: str) -> str:
    """Returns the single term of a word; empty for a longer Chinese word, because no part of it means the same."""
    if not is_chinese(word):
        return stem(word)
    return word if len(word) <= 2 else ""


@cache
def _by_stem() -> Mapping[str, Sense]:
    """Maps the stem of each English word in the table to the terms with the same sense."""
    found: dict[str, dict[str, float]] = {}
    for word, others in same_sense().items():
        if not is_chinese(word):
            found.setdefault(stem(word), {}).update(_terms_of(others))
    return found


@cache
def same_sense() -> Mapping[str, tuple[str, ...]]:
    """Maps each word to the other words of its senses, in the order of the table. Reads the table at the first call."""
    found: dict[str, dict[str, None]] = {}
    for line in THESAURUS.read_text("utf-8").splitlines():
        words = () if line.startswith("#") else line.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}
