"""Texts of twenty shapes, each of which has been dear to some algorithm."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts of one shape and about one size."""

    text: str
    other: str
    """The text with changes."""
    part: str
    """A part of the text."""
    lines: list[str]
    """Lines of the text, in any order."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of texts.

    Attributes:
        name: The name of the shape.
        text: Returns a text of at least so many characters.
        other: Returns the text with changes.
    """

    name: str
    text: Callable[[int], str]
    other: Callable[[str], str]

    def made(self, size: int) -> Texts:
        """Returns texts of at most `size` bytes."""
        text = self.text(size)[:size].encode()[:size].decode(errors="ignore")
        other = self.other(text)[: len(text)]
        lines = text.split("\n")
        part = lines[len(lines) // 2] or text[len(text) // 2 :][:40]
        return Texts(text=text, other=other, part=part, lines=lines)


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: piece * (size // len(piece) + 1)


def _numbered(line: str) -> Callable[[int], str]:
    def text(size: int) -> str:
        return "".join(islice((line.format(number) for number in count()), size // len(line) + 1))

    return text


def _reversed(text: str) -> str:
    return "\n".join(reversed(text.split("\n")))


def _shuffled(text: str) -> str:
    lines = text.split("\n")
    random.Random(1).shuffle(lines)
    return "\n".join(lines)


def _each_line_edited(text: str) -> str:
    return text.replace("\n", "!\n")


def _one_edit(text: str) -> str:
    half = len(text) // 2
    return f"{text[:half]}!{text[half + 1 :]}"


def _words(size: int) -> str:
    chance = random.Random(2)
    return " ".join(f"{chance.randrange(10**6):x}" for _ in range(size // 6 + 1))


def _nested(opened: str, closed: str) -> Callable[[int], str]:
    def text(size: int) -> str:
        depth = size // (len(opened) + len(closed))
        return opened * depth + closed * depth

    return text


SHAPES = (
    Shape("numbered lines", _numbered("{:07} some words of a line\n"), _one_edit),
    Shape("numbered lines, each edited", _numbered("{:07} some words of a line\n"), _each_line_edited),
    Shape("numbered lines, reversed", _numbered("{:07}\n"), _reversed),
    Shape("numbered lines, shuffled", _numbered("{:07}\n"), _shuffled),
    Shape("one line again and again", _repeated("the same line\n"), _one_edit),
    Shape("two lines in turn", _repeated("a\nb\n"), lambda text: text[2:] + "a\n"),
    Shape("line ends", _repeated("\n"), _one_edit),
    Shape("line ends of Windows", _repeated("\r\n"), _one_edit),
    Shape("blanks at line ends", _repeated("    \n"), lambda text: text.replace("    \n", "   \n")),
    Shape("one long line", _repeated("a"), _one_edit),
    Shape("a long line of words", _words, _one_edit),
    Shape("lines that are nearly equal", _numbered("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{:03x}\n"), _shuffled),
    Shape(
        "typographic quotes",
        _repeated("\u201cWell\u201d \u2013 \u2018so\u2019\n"),
        lambda text: text.translate({0x201C: '"'}),
    ),
    Shape("marks on one letter", _repeated("\u0301\u0316"), _one_edit),
    Shape("Korean syllables in parts", _repeated("\u1112\u1161\u11ab"), _one_edit),
    Shape("wide characters", _repeated("\U0001f600\ufdfa\n"), _one_edit),
    Shape("brackets", _nested("(", ")"), _one_edit),
    Shape("nested tags", _nested("<div>", "</div>"), _one_edit),
    Shape("paragraphs", _numbered("<p>{:07} <a href='/x'>some words</a> of it.</p>\n"), _each_line_edited),
    Shape("control and format characters", _repeated("\x01\u202e\u200b\U000e0041\n"), _one_edit),
)
