"""What a query asks for: for each of its words, the terms that say it, in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from toolwire.catalogue.terms import is_chinese, pieces, stem, terms
from toolwire.catalogue.words import same_sense

OTHER_WORD = 0.8
"""What another word of the same sense counts, against the word itself."""
ONE_CHARACTER = 0.25
"""What a Chinese character counts that is no word of the table, against two in a row."""
ACROSS_WORDS = 0.3
"""What two characters count of which each belongs to another word."""

LONGEST_WORD = 5
"""Characters of the longest Chinese word that is looked for in the table."""

Sense = Mapping[str, float]
"""Terms that say one thing, each with what it counts; the first is the query's own."""


def senses(query: str) -> Iterator[Sense]:
    """What each word of the query can be said by."""
    for piece in pieces(query):
        if is_chinese(piece):
            yield from _chinese(piece)
        else:
            for term in dict.fromkeys(terms(piece)):
                yield {term: 1.0, **_by_stem().get(term, {})}


def _chinese(run: str) -> Iterator[Sense]:
    """A sense for each word of the table, then for what is between them, then for what joins them."""
    end = 0
    for start, word in _known_words(run):
        yield from _of_word(word)
        yield from _of_rest(run[end:start])
        if start:
            yield from ({term: ACROSS_WORDS} for term in terms(run[start - 1 : start + 1]) if len(term) > 1)
        end = start + len(word)
    yield from _of_rest(run[end:])


def _known_words(run: str) -> Iterator[tuple[int, str]]:
    """The longest words of the table, from left to right, each with its place."""
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
    """The one term that a word is; empty for a longer Chinese word, no part of which means it alone."""
    if not is_chinese(word):
        return stem(word)
    return word if len(word) <= 2 else ""


@cache
def _by_stem() -> Mapping[str, Sense]:
    """For each English word of the table, by its stem, the terms of the same sense."""
    found: dict[str, dict[str, float]] = {}
    for word, others in same_sense().items():
        if not is_chinese(word):
            found.setdefault(stem(word), {}).update(_terms_of(others))
    return found
