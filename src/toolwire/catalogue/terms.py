"""Splits text into search terms: stems of English words, Chinese characters and pairs of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

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


def pieces(text: str) -> list[str]:
    """Splits the text into runs of Chinese characters and words of other scripts."""
    return _PIECE.findall(text)


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
            word = _undoubled(word[: -len(ending)]) if ending in ("ing", "ed") else word[: -len(ending)] + instead
            break
    for ending in ("ion", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word


_ENDINGS = (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ss", "ss"), ("us", "us"), ("s", ""), ("ing", ""), ("ed", ""))


def _undoubled(word: str) -> str:
    """Removes a doubled last letter: `stopp` loses its second p; `call` and `pass` stay."""
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word
