"""A text in one way of writing: NFKC, straight quotes, one dash, no blanks at line ends. Its places lead back."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from toolwire.vocabulary.texts.normal_forms import joins, normalize_text

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
"""Quotes and dashes that models and word processors write for one another."""
_BLANKS = " \t\r\f\v"


class NormalText:
    """A text as `text`, and the places of the given text for those of `text`."""

    def __init__(self, given: str) -> None:
        self._lines = given.split("\n")
        # A line end joins nothing, so the whole text has the forms of its lines.
        normal = [line.rstrip(_BLANKS) for line in _normal(given).split("\n")]
        self.text = "\n".join(normal)
        # Arrays, because a text may be line ends alone.
        self._starts = array("q", (0, *accumulate(len(line) + 1 for line in self._lines)))
        self._normal_starts = array("q", (0, *accumulate(len(line) + 1 for line in normal)))

    def original_start(self, at: int) -> int:
        """Returns the start in the given text of what begins at a place of `text`."""
        number, column = self._line_of(at)
        line = self._lines[number]
        if line.isascii():
            return self._starts[number] + column
        # The blanks at the end of a line have no place in its normal form.
        found = next((start for start, _, _, end in _pieces(line) if column < end), len(line.rstrip()))
        return self._starts[number] + found

    def original_end(self, at: int) -> int:
        """Returns the end in the given text of what ends at a place of `text`."""
        number, column = self._line_of(at)
        if column == 0 or self._lines[number].isascii():
            return self._starts[number] + column
        return self._starts[number] + next(stop for _, stop, _, end in _pieces(self._lines[number]) if column <= end)

    def _line_of(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._normal_starts, at) - 1
        return number, at - self._normal_starts[number]


def _normal(text: str) -> str:
    return text if text.isascii() else normalize_text("NFKC", text.translate(_SAME)).translate(_SAME)


def _pieces(line: str) -> Iterator[tuple[int, int, int, int]]:
    """Yields the parts of a line that change together: start and end in the line, start and end in its normal form."""
    start = place = 0
    for at in range(1, len(line) + 1):
        if at < len(line) and joins(line[at]):
            continue
        end = place + len(_normal(line[start:at]))
        yield start, at, place, end
        start, place = at, end
